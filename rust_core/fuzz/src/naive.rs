//! A parser of the small language, written by hand: layout line by line, then recursive descent.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbol {
    Name,
    If,
    Colon,
    Open,
    Close,
    Newline,
    Indent,
    Dedent,
}

/// Return whether a text is a program; `None` for texts with characters outside of the fuzzer's pieces.
pub fn parses(text: &str) -> Option<bool> {
    if text.chars().any(|character| !"aif: \n()#é".contains(character)) {
        return None;
    }
    let symbols = symbols(text);
    Some(symbols.is_some_and(|symbols| Parser { symbols: &symbols, at: 0 }.file()))
}

/// The symbols of a text, with those of layout; `None` where lexing fails.
fn symbols(text: &str) -> Option<Vec<Symbol>> {
    let (mut found, mut columns, mut depth) = (Vec::new(), vec![0], 0usize);
    for line in text.split('\n') {
        let code = line.split('#').next().unwrap_or_default();
        if depth == 0 {
            if code.trim().is_empty() {
                continue;
            }
            let column = code.len() - code.trim_start().len();
            if column > *columns.last()? {
                columns.push(column);
                found.push(Symbol::Indent);
            }
            while column < *columns.last()? {
                columns.pop();
                found.push(Symbol::Dedent);
            }
            if column != *columns.last()? {
                return None;
            }
        }
        let mut rest = code.trim_start_matches(' ');
        while let Some(first) = rest.chars().next() {
            let length = rest.find(|other: char| !other.is_ascii_lowercase()).unwrap_or(rest.len()).max(1);
            found.push(match first {
                ':' => Symbol::Colon,
                '(' => Symbol::Open,
                ')' => Symbol::Close,
                'a'..='z' if &rest[..length] == "if" => Symbol::If,
                'a'..='z' => Symbol::Name,
                _ => return None,
            });
            depth = match first {
                '(' => depth + 1,
                ')' => depth.checked_sub(1)?,
                _ => depth,
            };
            rest = rest[length..].trim_start_matches(' ');
        }
        if depth == 0 {
            found.push(Symbol::Newline);
        }
    }
    if depth > 0 {
        return None;
    }
    found.extend(columns.iter().skip(1).map(|_| Symbol::Dedent));
    Some(found)
}

struct Parser<'a> {
    symbols: &'a [Symbol],
    at: usize,
}

impl Parser<'_> {
    fn file(&mut self) -> bool {
        while self.at < self.symbols.len() {
            if !self.line() {
                return false;
            }
        }
        true
    }

    fn take(&mut self, symbol: Symbol) -> bool {
        let taken = self.symbols.get(self.at) == Some(&symbol);
        self.at += usize::from(taken);
        taken
    }

    fn line(&mut self) -> bool {
        if self.take(Symbol::If) {
            return self.value() && self.take(Symbol::Colon) && self.block();
        }
        self.value() && self.take(Symbol::Newline)
    }

    fn block(&mut self) -> bool {
        if !(self.take(Symbol::Newline) && self.take(Symbol::Indent) && self.line()) {
            return false;
        }
        while !self.take(Symbol::Dedent) {
            if !self.line() {
                return false;
            }
        }
        true
    }

    fn value(&mut self) -> bool {
        self.take(Symbol::Name) || (self.take(Symbol::Open) && self.value() && self.take(Symbol::Close))
    }
}
