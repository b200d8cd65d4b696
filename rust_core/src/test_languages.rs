//! Small hand-made languages, and plain twins of the layers, for their tests.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::grammar::rules::{END_OF_RULE, Rules};
use crate::ids::{AcceptId, DotId, LexemeId, SymbolId};
use crate::language::compiled::Language;
use crate::spec::LanguageSpec;
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::{Anchored, Input, MatchKind};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reproducible pseudo-random numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below a bound (xorshift; Marsaglia 2003).
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// All texts over some bytes, up to a length, shorter ones first.
pub(crate) fn texts(alphabet: &[u8], longest: usize) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    let mut layer = found.clone();
    for _ in 0..longest {
        layer = layer
            .iter()
            .flat_map(|text| alphabet.iter().map(move |&byte| [text.as_slice(), &[byte]].concat()))
            .collect();
        found.extend(layer.iter().cloned());
    }
    found
}

/// A definition: lexemes as `NAME text` for a literal and `NAME /pattern/` for a pattern; those whose names begin with `_` are
/// ignored. Rules as `lhs -> A b C | D |`.
pub(crate) fn define(lexemes: &[&str], rules: &[&str]) -> LanguageSpec {
    let lexeme = |line: &&str| {
        let (name, text) = line.split_once(' ').unwrap_or((line, ""));
        match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
            Some(pattern) => json!({"name": name, "pattern": pattern}),
            None if text.is_empty() => json!({"name": name}),
            None => json!({"name": name, "literal": text}),
        }
    };
    let rule = |line: &&str| {
        let (lhs, expansions) = line.split_once(" -> ").expect("a rule");
        let rule = |one: &str| json!({"lhs": lhs, "rhs": one.split_whitespace().collect::<Vec<_>>()});
        expansions.split('|').map(rule).collect::<Vec<_>>()
    };
    let lexemes: Vec<_> = lexemes.iter().map(lexeme).collect();
    let name = |lexeme: &serde_json::Value| lexeme["name"].as_str().expect("a name").to_string();
    let ignore: Vec<String> = lexemes.iter().map(name).filter(|name| name.starts_with('_')).collect();
    let rules: Vec<_> = rules.iter().flat_map(rule).collect();
    let start = rules[0]["lhs"].clone();
    let definition = json!({"name": "small", "start": start, "lexemes": lexemes, "ignore": ignore, "rules": rules});
    serde_json::from_value(definition).expect("a definition")
}

pub(crate) fn compile(spec: &LanguageSpec) -> Arc<Language> {
    Arc::new(Language::compile(spec, None).expect("a language"))
}

/// The branches after L, for any R.
pub(crate) fn stepped(engine: &mut Engine, left: &[u8]) -> Vec<Branch> {
    let mut branches = engine.parser.first_branches();
    let mut next = Vec::new();
    for &byte in left {
        engine.parser.step_all(&branches, byte, &mut next);
        std::mem::swap(&mut branches, &mut next);
    }
    branches
}

/// The branches after L that the requirements let reach R.
pub(crate) fn opened(engine: &mut Engine, left: &[u8]) -> Vec<Branch> {
    let mut branches = stepped(engine, left);
    branches.retain(|branch| engine.viable_by_requirements(branch));
    branches
}

/// Sums of names, with brackets and blanks.
pub(crate) fn sums() -> LanguageSpec {
    let lexemes = ["NAME /a+/", "PLUS +", "OPEN (", "CLOSE )", "_BLANK / +/"];
    let mut spec = define(&lexemes, &["sum -> sum PLUS part | part", "part -> NAME | OPEN sum CLOSE | OPEN CLOSE"]);
    spec.brackets = vec![("OPEN".into(), "CLOSE".into())];
    spec
}

/// Words of `a`, `aba` and `b`, with nothing to keep them apart.
pub(crate) fn words() -> LanguageSpec {
    define(&["A a", "ABA aba", "B b"], &["words -> word words |", "word -> A B B | ABA A | A B A | B"])
}

/// Statements `a`, and `if:` with a block.
pub(crate) fn blocks() -> LanguageSpec {
    let mut spec = define(
        &[
            "NEWLINE /\\n/",
            "_BLANK / +/",
            "_COMMENT /#[^\\n]*/",
            "NAME /[a-e]+/",
            "IF if",
            "COLON :",
            "INDENT",
            "DEDENT",
        ],
        &[
            "file -> | lines",
            "lines -> line | lines line",
            "line -> NAME NEWLINE | IF COLON block",
            "block -> NEWLINE INDENT lines DEDENT",
        ],
    );
    let layout = json!({
        "newline": "NEWLINE", "indent": "INDENT", "dedent": "DEDENT", "blank": "_BLANK", "comment": "_COMMENT",
        "block_opener": ":", "step": 1
    });
    spec.layout = Some(serde_json::from_value(layout).expect("a layout"));
    spec
}

/// Names, and strings with names in fields: `"bb{a}b"`.
pub(crate) fn strings() -> LanguageSpec {
    let mut spec = define(
        &["NAME /[ab]+/", "START <", "TEXT /[ab]+/", "END >", "FIELD {", "CLOSE }", "_BLANK / +/"],
        &["value -> NAME | string", "string -> START parts END", "parts -> | parts TEXT | parts FIELD value CLOSE"],
    );
    let mode = json!({"name": "text", "lexemes": ["TEXT", "END", "FIELD"], "open": ["FIELD"]});
    spec.modes = vec![serde_json::from_value(mode).expect("a mode")];
    spec
}

/// Divisions and regular expressions, which begin alike, in statements; and strings that hold them: `a/(b)/a;`,
/// `` `a{/b/}`; ``. Text of a string may hold brackets.
pub(crate) fn slashes() -> LanguageSpec {
    let mut spec = define(
        &[
            "NAME /[ab]/",
            "OPEN (",
            "CLOSE )",
            "END ;",
            "RIGHT }",
            "TICK `",
            "DIVIDE /\\//",
            "REGEX /\\/[ab)]+\\//",
            "T_OPEN /[ab()]*\\{/",
            "T_END /[ab()]*`/",
            "_BLANK / +/",
        ],
        &[
            "file -> | file sum END",
            "sum -> value | sum DIVIDE value",
            "value -> NAME | REGEX | OPEN sum CLOSE | TICK rest",
            "rest -> T_END | T_OPEN sum RIGHT rest",
        ],
    );
    spec.brackets = vec![("OPEN".into(), "CLOSE".into())];
    let modes = json!([
        {"name": "division", "lexemes": ["DIVIDE"], "code": true},
        {"name": "regex", "lexemes": ["REGEX"], "code": true},
        {"name": "text", "lexemes": ["T_OPEN", "T_END"]},
    ]);
    spec.modes = serde_json::from_value(modes).expect("modes");
    spec
}

/// Opening brackets, after each of which a division and a regular expression may stand.
pub(crate) fn openings() -> LanguageSpec {
    let mut spec = define(
        &["OPEN (", "DIVIDE /\\//", "REGEX /\\/[ab]+\\//", "_BLANK / +/"],
        &["file -> | OPEN file | DIVIDE file | REGEX file"],
    );
    let modes = json!([
        {"name": "division", "lexemes": ["DIVIDE"], "code": true},
        {"name": "regex", "lexemes": ["REGEX"], "code": true},
    ]);
    spec.modes = serde_json::from_value(modes).expect("modes");
    spec
}

/// Grammars over the symbols `a`, `b` and `c`, a byte each: recursive on every side, ambiguous, with empty parts.
pub(crate) fn letters() -> Vec<LanguageSpec> {
    let grammars: [&[&str]; 9] = [
        &["s -> s A | B"],
        &["s -> A s | B |"],
        &["s -> s s | A | B C"],
        &["s -> s s | A |"],
        &["s -> A s A | B s B | C |"],
        &["s -> n s A | B", "n -> | C"],
        &["s -> x n n x", "x -> A | B y", "y -> x | n C", "n -> | m", "m -> n | C"],
        &["s -> p s | ", "p -> A q B | A", "q -> | q C | s C"],
        &["s -> t C | u", "t -> u | t A t", "u -> A | B u"],
    ];
    grammars.iter().map(|rules| define(&["A a", "B b", "C c"], rules)).collect()
}

/// More languages: lists in lists, and lists that may begin with a separator of their elements.
pub(crate) fn lists() -> Vec<LanguageSpec> {
    let grammars: [&[&str]; 3] = [
        &["s -> A t", "t -> B i | t B i", "i -> C | A t C"],
        &["s -> B r", "r -> A t | r A t", "t -> x C | x x C", "x -> B | C B"],
        &["s -> s A e | e", "e -> C | B r A e | B A e", "r -> C q", "q -> | q B e"],
    ];
    grammars.iter().map(|rules| define(&["A a", "B b", "C c"], rules)).collect()
}

/// A dotted rule and the place where it began.
pub(crate) type NaiveItem = (DotId, usize);

/// Earley's sets for an input with several symbols at each place, as plain least fixpoints that include predicted and
/// completed items. The first set predicts one symbol.
pub(crate) fn earley(rules: &Rules, from: SymbolId, input: &[Vec<SymbolId>]) -> Vec<BTreeSet<NaiveItem>> {
    let first_dots = |symbol: SymbolId| {
        (0..rules.rules().len()).filter(move |&rule| rules.rules()[rule].lhs == symbol).map(|rule| rules.dot(rule, 0))
    };
    let mut sets: Vec<BTreeSet<NaiveItem>> = vec![first_dots(from).map(|dot| (dot, 0)).collect()];
    for at in 0..=input.len() {
        loop {
            let mut new = Vec::new();
            for &(dot, origin) in &sets[at] {
                let next = rules.next(dot);
                if next == END_OF_RULE {
                    let waiting = sets[origin].iter().filter(|item| rules.next(item.0) == rules.lhs(dot));
                    new.extend(waiting.map(|item| (DotId(item.0.0 + 1), item.1)));
                } else if !rules.is_lexeme(next) {
                    new.extend(first_dots(next).map(|dot| (dot, at)));
                }
            }
            let before = sets[at].len();
            sets[at].extend(new);
            if sets[at].len() == before {
                break;
            }
        }
        if let Some(symbols) = input.get(at) {
            let read = sets[at].iter().filter(|item| symbols.contains(&rules.next(item.0)));
            let next = read.map(|item| (DotId(item.0.0 + 1), item.1)).collect();
            sets.push(next);
        }
    }
    sets
}

/// Return whether a symbol derives an input.
pub(crate) fn derives(rules: &Rules, symbol: SymbolId, input: &[Vec<SymbolId>]) -> bool {
    if rules.is_lexeme(symbol) {
        return input.len() == 1 && input[0].contains(&symbol);
    }
    let sets = earley(rules, symbol, input);
    sets[input.len()]
        .iter()
        .any(|&(dot, origin)| origin == 0 && rules.next(dot) == END_OF_RULE && rules.lhs(dot) == symbol)
}

/// The symbol of a name.
pub(crate) fn symbol(rules: &Rules, name: &str) -> SymbolId {
    (0..rules.symbol_count()).map(SymbolId::from_index).find(|&symbol| rules.name(symbol) == name).expect("a symbol")
}

/// The symbols of a text of the languages of letters.
pub(crate) fn spelled(text: &[u8]) -> Vec<Vec<SymbolId>> {
    text.iter().map(|&byte| vec![SymbolId(u16::from(byte - b'a'))]).collect()
}

/// The accept set of a byte, in the languages of letters.
pub(crate) fn accept_of(language: &Language, byte: u8) -> AcceptId {
    language.lexer.accept(language.lexer.step(language.lexer.start(), byte))
}

/// A symbol as which a text was lexed, with its beginning and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lexed {
    pub(crate) lexemes: Vec<LexemeId>,
    pub(crate) begin: usize,
    pub(crate) end: usize,
}

/// Plain recogniser of a language, with one automaton for each lexeme, lexing of whole texts and Earley's sets. For
/// languages without modes.
pub(crate) struct Twin {
    pub(crate) spec: LanguageSpec,
    pub(crate) language: Arc<Language>,
    patterns: Vec<Option<dense::DFA<Vec<u32>>>>,
    known: BTreeMap<Vec<u8>, bool>,
}

impl Twin {
    pub(crate) fn new(spec: LanguageSpec) -> Self {
        let pattern = |lexeme: &crate::spec::LexemeSpec| {
            let literal = lexeme.literal.as_ref().map(|text| regex_syntax::escape(text));
            let pattern = literal.or_else(|| lexeme.pattern.clone())?;
            let config = dense::Config::new().match_kind(MatchKind::All).start_kind(StartKind::Anchored);
            Some(dense::Builder::new().configure(config).build(&pattern).expect("a pattern"))
        };
        let patterns = spec.lexemes.iter().map(pattern).collect();
        Self { language: compile(&spec), patterns, spec, known: BTreeMap::new() }
    }

    /// Return whether a lexeme's pattern matches a text as a whole.
    pub(crate) fn matches(&self, lexeme: usize, text: &[u8]) -> bool {
        let Some(dfa) = &self.patterns[lexeme] else { return false };
        let found = dfa.try_search_fwd(&Input::new(text).anchored(Anchored::Yes)).expect("a plain search");
        !text.is_empty() && found.is_some_and(|found| found.offset() == text.len())
    }

    /// The lexemes of a whole text: the best, and the next best behind a soft keyword.
    pub(crate) fn winners(&self, text: &[u8]) -> Vec<LexemeId> {
        let mut matched: Vec<usize> = (0..self.patterns.len()).filter(|&lexeme| self.matches(lexeme, text)).collect();
        let lexeme = |&id: &usize| &self.spec.lexemes[id];
        matched.sort_by_key(|id| (lexeme(id).literal.is_none(), std::cmp::Reverse(lexeme(id).priority), *id));
        let hard = matched.iter().position(|id| !self.spec.soft_keywords.contains(&lexeme(id).name));
        matched.truncate(hard.map_or(matched.len(), |at| at + 1));
        matched.sort_unstable();
        matched.into_iter().map(LexemeId::from_index).collect()
    }

    /// The text's symbols, each the longest match; `None` where nothing matches.
    pub(crate) fn lex(&self, text: &[u8]) -> Option<Vec<Lexed>> {
        let mut found = Vec::new();
        let mut begin = 0;
        while begin < text.len() {
            let ends = (begin + 1..=text.len()).rev();
            let (end, lexemes) =
                ends.map(|end| (end, self.winners(&text[begin..end]))).find(|(_, lexemes)| !lexemes.is_empty())?;
            found.push(Lexed { lexemes, begin, end });
            begin = end;
        }
        Some(found)
    }

    fn is(&self, lexed: &Lexed, name: &str) -> bool {
        self.spec.lexemes[lexed.lexemes[0].index()].name == name
    }

    /// Return whether what was lexed is not passed on.
    pub(crate) fn is_ignored(&self, lexed: &Lexed) -> bool {
        self.spec.ignore.contains(&self.spec.lexemes[lexed.lexemes[0].index()].name)
    }

    /// The symbols that the parser gets from a text. With layout, indentations are of spaces, and there are no
    /// brackets.
    pub(crate) fn symbols(&self, text: &[u8]) -> Option<Vec<Vec<SymbolId>>> {
        let lexed = self.lex(text)?;
        let own = |lexed: &Lexed| lexed.lexemes.iter().map(|&lexeme| SymbolId::from(lexeme)).collect::<Vec<SymbolId>>();
        let passed_on = lexed.iter().filter(|lexed| !self.is_ignored(lexed));
        let Some(layout) = &self.spec.layout else { return Some(passed_on.map(own).collect()) };
        let rules = &self.language.grammar;
        let (indent, dedent) = (symbol(rules, &layout.indent), symbol(rules, &layout.dedent));
        let mut found = Vec::new();
        let mut stack = vec![0];
        let mut begun = false;
        for lexed in passed_on {
            let newline = self.is(lexed, &layout.newline);
            if newline && !begun {
                continue;
            }
            if !begun {
                let line = text[..lexed.begin].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                let column = text[line..].iter().take_while(|&&byte| byte == b' ').count();
                if column > *stack.last()? {
                    stack.push(column);
                    found.push(vec![indent]);
                }
                while column < *stack.last()? {
                    stack.pop();
                    found.push(vec![dedent]);
                }
                if column != *stack.last()? {
                    return None;
                }
            }
            begun = !newline;
            found.push(own(lexed));
        }
        if begun {
            // The end of a file ends its last line.
            found.push(vec![symbol(rules, &layout.newline)]);
        }
        found.extend(stack[1..].iter().map(|_| vec![dedent]));
        Some(found)
    }

    /// Return whether a text is one of the language.
    pub(crate) fn whole(&mut self, text: &[u8]) -> bool {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let rules = &self.language.grammar;
        let found = self.symbols(text).is_some_and(|input| derives(rules, rules.start, &input));
        self.known.insert(text.to_vec(), found);
        found
    }

    /// The middles among those tried that complete the contexts.
    pub(crate) fn completing<'a>(&mut self, left: &str, right: &str, middles: &'a [Vec<u8>]) -> Vec<&'a [u8]> {
        let whole = |middle: &&Vec<u8>| self.whole(&[left.as_bytes(), middle, right.as_bytes()].concat());
        middles.iter().filter(whole).map(Vec::as_slice).collect()
    }
}
