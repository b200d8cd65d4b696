//! Reader of one line: the values of names of secrets in it, and the other strings of a line that names a secret.

use crate::lexemes::{is_blank, is_word};
use crate::randomness::runs;
use crate::secrets::names::{Strength, holds_name, is_sure, is_sure_name, is_value_name, name_in, strength};
use crate::secrets::texts::{commands, comment, has_place, inside, is_words, names, setting};
use std::ops::Range;

/// Parts of the names of calls and tables that look secrets up.
const LOOKUPS: [&str; 8] = ["get", "env", "header", "cookie", "setting", "config", "arg", "param"];

/// Parts of the names of fields that hold a secret's name.
const NAMING: [&str; 11] = ["name", "key", "id", "env", "var", "param", "field", "header", "attr", "option", "secret"];

/// Names of arguments and fields beside a secret's name that hold no secret.
const HARMLESS: [&str; 18] = [
    "action",
    "desc",
    "description",
    "dest",
    "doc",
    "env",
    "envvar",
    "format",
    "help",
    "host",
    "kind",
    "label",
    "metavar",
    "region",
    "title",
    "type",
    "usage",
    "user",
];

/// Calls with a password as an argument.
const LOGINS: [&str; 5] = ["login", "Login", "authenticate", "Authenticate", "getConnection"];

/// Fields of records that hold a value alone, before or after its name.
const VALUES: [&str; 3] = ["value", "parametervalue", "stringvalue"];

/// Directives that begin with the sign of a comment.
const DIRECTIVES: [&str; 8] = ["define", "include", "if", "el", "endif", "pragma", "undef", "error"];

/// Name of a secret that was just read.
#[derive(Clone, Copy)]
struct Name {
    quoted: bool,
    strength: Strength,
    /// Words read since the name.
    words: usize,
    sure: bool,
}

/// Assignment to a secret's name.
#[derive(Clone, Copy)]
struct Armed {
    depth: i32,
    /// The value is arguments, which end with a bracket at this depth.
    call: bool,
    /// A word is not the value.
    weak: bool,
    /// The value may continue in the next line without a bracket.
    from_quoted: bool,
    /// The values of several targets go on after a comma.
    spread: bool,
}

impl Armed {
    fn new(depth: i32) -> Self {
        Self { depth, call: false, weak: false, from_quoted: false, spread: false }
    }
}

/// String of the line.
struct Quoted<'t> {
    content: Range<usize>,
    /// Word or string before the sign that the string follows.
    key: Option<&'t str>,
    /// True if the string is a secret as a whole.
    cut: bool,
    /// The string follows a secret's name and a comma.
    paired: bool,
    /// Brackets around it, and the character before it.
    depth: i32,
    before: char,
}

/// State between two lines: the part of a secret that the next one may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    #[default]
    Plain,
    /// Block of a private key.
    Key,
    /// Rest of a secret string, up to this quote.
    Text(&'static str),
    /// Value of a secret's name, so many brackets deep.
    Value(u16),
    /// Other fields or arguments after the name of a secret.
    Beside,
    /// Default of a secret that was looked up, if the line begins with a sign.
    Chained,
}

/// Reader of the line.
pub(crate) struct Reader<'t> {
    line: &'t str,
    at: usize,
    depth: i32,
    name: Option<Name>,
    armed: Option<Armed>,
    /// Depth at which an argument with another name began inside of a value.
    other: Option<i32>,
    word: &'t str,
    /// Last word or string.
    term: &'t str,
    /// Word or string before the last sign of an assignment, while a value is read; of the whole line.
    key: Option<&'t str>,
    field: Option<&'t str>,
    /// Word before the last opening bracket, if nothing has followed the bracket.
    opened_by: Option<&'t str>,
    /// Last character that is no blank.
    last: char,
    quoted: Vec<Quoted<'t>>,
    unclosed: Option<&'static str>,
    comment: Option<usize>,
    /// An assignment or a comma outside of brackets was read.
    assigned: bool,
    listed: bool,
    /// A word names a secret and has no value of its own here.
    loose: bool,
    /// A string gives the name of a secret whose value is elsewhere: the number of strings up to it, and its depth.
    told: Option<(usize, i32)>,
    /// A call or a pair was read.
    paired: bool,
    /// A string in the brackets of a lookup names a secret.
    looked_up: bool,
    /// A comment names a secret.
    commented: bool,
}

impl<'t> Reader<'t> {
    /// Read on at a place of a line, in the value of a secret's name where a number of brackets is inherited.
    pub(crate) fn new(line: &'t str, at: usize, inherited: Option<u16>) -> Self {
        Self {
            line,
            at,
            depth: 0,
            name: None,
            armed: inherited.map(|depth| Armed::new(-i32::from(depth))),
            other: None,
            word: "",
            term: "",
            key: None,
            field: None,
            opened_by: None,
            last: '\n',
            quoted: Vec::new(),
            unclosed: None,
            comment: None,
            assigned: false,
            listed: false,
            loose: false,
            told: None,
            paired: false,
            looked_up: false,
            commented: false,
        }
    }

    /// Collect the secrets of the line. `beside`: the number of lines since a secret's name, where its value may be
    /// here.
    pub(crate) fn read(&mut self, beside: Option<u8>, found: &mut Vec<Range<usize>>) {
        while let Some(char) = self.line[self.at..].chars().next() {
            if is_blank(char) {
                self.at += 1;
                continue;
            }
            if is_word(char) {
                self.read_word();
                continue;
            }
            if matches!(char, '"' | '\'' | '`') {
                self.read_string(char, found);
                continue;
            }
            self.read_sign(char);
            self.last = char;
            self.at += char.len_utf8();
        }
        if let Some(at) = self.comment {
            comment(&self.line[at..], at, found);
        }
        self.others(beside, found);
        commands(self.line, found);
        setting(self.line, beside.is_some(), found);
        let quoted: Vec<Range<usize>> = self.quoted.iter().map(|one| one.content.clone()).collect();
        runs(self.line, &quoted, found);
    }

    fn read_word(&mut self) {
        let start = self.at;
        let rest = &self.line[start..];
        let end = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
        self.word = &rest[..end];
        self.at += end;
        self.opened_by = None;
        let is_prefix = end <= 3 && rest[end..].starts_with(['"', '\'']);
        if is_prefix {
            return;
        }
        self.last = 'a';
        self.term = self.word;
        let sure = is_sure(self.word);
        let is_path = rest[end..].starts_with("::") && strength(self.word) != Some(Strength::Strong);
        if sure && !is_path && !is_key(&rest[end..]) {
            self.loose = true;
            self.key = None;
        }
        if self.armed.is_some() {
            return;
        }
        match strength(self.word) {
            Some(strength) => self.name = Some(Name { quoted: false, strength, words: 0, sure }),
            None => {
                if let Some(name) = &mut self.name {
                    name.words += 1;
                }
            }
        }
    }

    fn read_sign(&mut self, char: char) {
        let rest = &self.line[self.at + char.len_utf8()..];
        let follows = rest.chars().next();
        let opened_by = self.opened_by.take();
        self.begin_comment(char, rest);
        match char {
            '=' => {
                let compares = follows == Some('=') || matches!(self.last, '=' | '!' | '<' | '>');
                self.arm(2, !compares && follows != Some('>'));
            }
            '>' if self.last == '=' => self.key = None,
            ':' if follows == Some(':') || self.last == ':' => self.name = None,
            ':' => self.arm(0, follows == Some('=')),
            ',' => self.comma(),
            ';' => {
                self.name = None;
                self.key = None;
                self.assigned = false;
                self.armed = self.armed.filter(|armed| self.depth > armed.depth);
            }
            '(' | '[' | '{' => self.open(char, opened_by),
            ')' | ']' | '}' => {
                self.depth -= 1;
                self.other = self.other.filter(|&depth| depth <= self.depth);
                self.armed = self.armed.filter(|armed| self.depth >= armed.depth + i32::from(armed.call));
                if char != ']' {
                    self.name = None;
                }
            }
            '.' => self.name = None,
            _ => {}
        }
    }

    fn begin_comment(&mut self, char: char, rest: &str) {
        let begins = match char {
            '#' => {
                self.line[..self.at].chars().next_back().is_none_or(is_blank)
                    && !rest.starts_with(['[', '!'])
                    && !DIRECTIVES.iter().any(|word| rest.starts_with(word))
            }
            '/' => self.last == '/' && self.line[..self.at].ends_with('/') && !self.line[..self.at].ends_with(":/"),
            '*' => (self.last == '\n' && rest.starts_with(is_blank)) || self.line[..self.at].ends_with('/'),
            '-' => self.last == '-' && self.line[..self.at].trim() == "-",
            _ => false,
        };
        if begins && self.comment.is_none() {
            self.comment = Some(self.at + 1);
        }
    }

    fn open(&mut self, char: char, opened_by: Option<&'t str>) {
        self.depth += 1;
        self.key = None;
        let after_word = self.last == 'a' || self.last == '!';
        self.paired |= char == '(';
        // A bracket inside of another one has the same name.
        self.opened_by = if after_word { Some(self.word) } else { opened_by };
        let names = |name: Name| !name.quoted && (name.sure || name.strength == Strength::Strong);
        let calls = (self.name.is_some_and(names) || LOGINS.contains(&self.word)) && self.last == 'a';
        if char == '{' && self.armed.is_some_and(|armed| armed.depth == self.depth - 1) && self.last == 'a' {
            self.armed = None; // a block
        } else if char == '(' && calls && self.armed.is_none() {
            self.armed = Some(Armed { call: true, ..Armed::new(self.depth - 1) });
            self.name = None;
        } else if char != '[' {
            self.name = None;
        }
    }

    /// Begin a value after the sign behind its name, with at most so many words between them.
    fn arm(&mut self, words: usize, assigns: bool) {
        self.key = Some(self.term);
        self.field = self.key;
        let first = assigns && self.depth == 0 && !self.assigned;
        self.assigned |= assigns;
        if let Some(armed) = self.armed {
            // In a call that makes the value, other arguments are not secret.
            let is_value = self.word.is_empty() || strength(self.word).is_some() || is_value_name(self.word);
            if self.depth > armed.depth && self.last == 'a' && !is_value && self.other.is_none() {
                self.other = Some(self.depth);
            }
            return;
        }
        let name = self.name.take().filter(|name| name.words <= words);
        let spread = first && (self.loose || (self.listed && name.is_some_and(|name| name.sure)));
        if name.is_none() && !spread {
            return;
        }
        let weak = !spread && name.is_some_and(|name| name.strength == Strength::Weak);
        let from_quoted = name.is_some_and(|name| name.quoted);
        self.armed = Some(Armed { weak, from_quoted, spread, ..Armed::new(self.depth) });
    }

    fn comma(&mut self) {
        self.key = None;
        self.listed |= self.depth == 0;
        self.other = self.other.filter(|&depth| depth < self.depth);
        if let Some(armed) = self.armed {
            if self.depth <= armed.depth && !armed.spread {
                self.armed = None;
            }
            self.name = None;
        } else if self.name.take().is_some_and(|name| name.quoted) {
            // Part of a pair; in a list of names, words follow.
            self.armed = Some(Armed { weak: true, ..Armed::new(self.depth) });
        }
    }

    fn read_string(&mut self, quote: char, found: &mut Vec<Range<usize>>) {
        let rest = &self.line[self.at..];
        let triple = ["\"\"\"", "'''"].into_iter().find(|triple| rest.starts_with(triple));
        let mark = triple.unwrap_or(match quote {
            '"' => "\"",
            '`' => "`",
            _ => "'",
        });
        let opened_by = self.opened_by.take();
        let start = self.at + mark.len();
        // An apostrophe, or a mark outside of strings.
        let is_apostrophe = quote == '\'' && triple.is_none() && {
            let before = self.line[..self.at].chars().next_back();
            let prefix = self.line[..self.at].chars().rev().take_while(|&char| is_word(char)).count();
            matches!(before, Some('&' | '<' | '+')) || prefix > 3
        };
        let end = if is_apostrophe { None } else { end_of(&self.line[start..], mark) };
        let Some(length) = end else {
            let whole = start..start + self.line[start..].trim_end().len();
            let goes_on = triple.is_some() || quote == '`';
            if self.armed.is_some() && self.other.is_none() && !is_apostrophe && (goes_on || quote == '"') {
                if whole.end > whole.start {
                    found.push(whole);
                }
                self.unclosed = goes_on.then_some(mark);
                self.at = self.line.len();
            } else {
                self.at = start;
            }
            self.last = quote;
            return;
        };
        let content = start..start + length;
        let text = &self.line[content.clone()];
        let before = self.last;
        self.at = content.end + mark.len();
        let told = self.name.filter(|name| !name.quoted && name.words == 0 && self.last == 'a' && self.armed.is_none());
        let told = told.map(|_| Armed { weak: true, ..Armed::new(self.depth) });
        let armed = self.armed.filter(|_| self.other.is_none()).or(told);
        let is_looked_up = opened_by.is_some_and(is_lookup);
        let paired = before == ',' && self.armed.is_some_and(|armed| armed.weak);
        let is_word = armed.is_some_and(|armed| armed.weak) && (is_words(text) || (!paired && is_sure_name(text)));
        let cut = armed.is_some() && !(is_looked_up && is_plain_name(text)) && !is_word;
        if cut && !text.is_empty() {
            found.push(content.clone());
        } else if !cut {
            inside(text, content.start, found);
            self.name_string(text, before, is_looked_up);
        }
        self.quoted.push(Quoted { content, key: self.key, cut, paired, depth: self.depth, before });
        self.term = text;
        self.last = quote;
    }

    /// Record a string that is the name of a secret.
    fn name_string(&mut self, text: &str, before: char, is_looked_up: bool) {
        if self.told.is_none() && has_place(text) {
            self.told = Some((self.quoted.len() + 1, self.depth));
        }
        let Some(strength) = name_in(text) else { return };
        let sure = is_sure_name(text);
        if self.armed.is_none() {
            self.name = Some(Name { quoted: true, strength, words: 0, sure });
        }
        let rest = self.line[self.at..].trim_start_matches(is_blank);
        if !sure || is_key(rest) {
            return;
        }
        let is_index = before == '[' && rest.starts_with(']');
        if is_index && is_key(&rest[1..]) {
            return;
        }
        if is_index || (is_looked_up && rest.starts_with(')')) {
            self.loose = true;
            self.looked_up = true;
        } else if self.key.is_none_or(names_a_name) && self.told.is_none() {
            self.told = Some((self.quoted.len() + 1, self.depth));
        }
    }

    /// Find the other strings of a line that names a secret.
    fn others(&mut self, beside: Option<u8>, found: &mut Vec<Range<usize>>) {
        self.commented = self.comment.is_some_and(|at| names(&self.line[at..]).next().is_some());
        let told = self.told.is_some() || self.commented || beside == Some(0);
        if let Some(content) = self.lone_value() {
            found.push(content);
            return;
        }
        if (!told && !self.loose && beside.is_none()) || self.is_list_of_names() {
            return;
        }
        for index in 0..self.quoted.len() {
            let one = &self.quoted[index];
            let text = &self.line[one.content.clone()];
            let after = self.line[one.content.end..].trim_start_matches(['"', '\'', '`']).trim_start_matches(is_blank);
            let is_kept = match one.key {
                Some(key) if told => HARMLESS.contains(&key.to_ascii_lowercase().as_str()),
                Some(key) => !is_value_name(key) && (one.depth > 0 || !self.loose),
                None => !told && !self.loose,
            };
            let keeps_name = holds_name(text) && !one.paired;
            if one.cut
                || is_kept
                || keeps_name
                || says_nothing(text)
                || ("\n{[(,;-".contains(one.before) && is_key(after))
            {
                continue;
            }
            found.push(one.content.clone());
            self.quoted[index].cut = true;
        }
    }

    /// Return the value of a line that is a record's field `value` alone: the name of the secret may follow.
    fn lone_value(&self) -> Option<Range<usize>> {
        let value = self.quoted.last().filter(|one| !one.cut && !one.content.is_empty() && self.quoted.len() <= 2)?;
        let key = value.key.filter(|key| VALUES.contains(&key.to_ascii_lowercase().as_str()))?;
        let start = self.line.trim_start_matches(|char: char| is_blank(char) || "-{\"'".contains(char));
        let after = start.strip_prefix(key)?.trim_start_matches(['"', '\'']).trim_start_matches(is_blank);
        after.starts_with(':').then(|| value.content.clone())
    }

    /// Return whether the strings are a list of names without values.
    fn is_list_of_names(&self) -> bool {
        let text = |one: &Quoted<'_>| &self.line[one.content.clone()];
        let is_name = |one: &Quoted<'_>| one.key.is_none() && is_plain_name(text(one));
        !self.paired && !self.loose && self.quoted.len() >= 3 && self.quoted.iter().all(is_name)
    }

    /// Return the state in which the next line begins.
    pub(crate) fn next(&self) -> Mode {
        if let Some(quote) = self.unclosed {
            return Mode::Text(quote);
        }
        if let Some(armed) = self.armed {
            let deep = self.depth - armed.depth;
            let goes_on = matches!(self.last, '=' | '\\' | '+') || (armed.from_quoted && self.last == ':');
            if deep > 0 || goes_on {
                return Mode::Value(deep.clamp(0, 99) as u16);
            }
        }
        match self.is_told_alone() {
            true => Mode::Beside,
            false if self.looked_up || self.told.is_some() => Mode::Chained,
            false => Mode::Plain,
        }
    }

    /// Return whether the line gives the name of a secret, and the value is to follow.
    fn is_told_alone(&self) -> bool {
        let is_mark = |char: char| is_blank(char) || "#/*-".contains(char);
        if self.commented && self.comment.is_some_and(|at| self.line[..at].chars().all(is_mark)) {
            return true;
        }
        if let Some((strings, depth)) = self.told {
            let has_value = self.quoted.iter().skip(strings).any(|one| one.cut);
            let is_field = self.key.is_some() && self.quoted.len() == strings && self.depth == 0;
            return !has_value
                && self.depth >= depth
                && (self.last == ',' || (is_field && matches!(self.last, '"' | '\'')));
        }
        // A field without quotes.
        self.quoted.is_empty()
            && self.last == 'a'
            && self.field.is_some_and(names_a_name)
            && self.line.trim_end().ends_with(self.word)
            && is_sure(self.word)
    }

    /// Return whether the line closes more brackets than it opens, or has a string that is a secret.
    pub(crate) fn ends_beside(&self) -> bool {
        self.depth < 0 || self.quoted.iter().any(|one| one.cut)
    }
}

/// Return whether a text behind a name makes the name that of a value: an assignment, or a colon.
fn is_key(rest: &str) -> bool {
    let rest = rest.trim_start_matches(is_blank);
    match rest.chars().next() {
        Some('=') => !rest[1..].starts_with(['=', '>']),
        Some(':') => !rest[1..].starts_with(':') && !rest[1..].trim().is_empty(),
        _ => false,
    }
}

/// Return where a string ends, from its first character on; a backslash escapes the next one.
fn end_of(text: &str, quote: &str) -> Option<usize> {
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote != "`" {
            at += 2;
        } else if text.as_bytes()[at..].starts_with(quote.as_bytes()) {
            return Some(at);
        } else {
            at += 1;
        }
    }
    None
}

/// Return whether a field of this name may hold the name of a secret.
fn names_a_name(key: &str) -> bool {
    let small = key.to_ascii_lowercase();
    NAMING.iter().any(|part| small.contains(part))
}

/// Return whether a call or a table of this name takes names as arguments.
fn is_lookup(word: &str) -> bool {
    let small = word.to_ascii_lowercase();
    LOOKUPS.iter().any(|part| small.contains(part))
}

/// Return whether a text is a name without digits.
fn is_plain_name(text: &str) -> bool {
    text.chars().all(|char| char.is_alphabetic() || "_-.".contains(char))
}

/// Return whether a text has at most one letter or digit besides escapes.
fn says_nothing(text: &str) -> bool {
    let escapes = text.matches('\\').count();
    text.chars().filter(|char| char.is_alphanumeric()).count() < 2 + escapes
}
