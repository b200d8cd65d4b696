//! Spelling of a language: texts from which completions of a middle are put together. All of it is data of its
//! definition.

use crate::error::Error;
use crate::ids::{AcceptId, ModeId};
use crate::lexing::lexer::{DEAD, Lexer};
use crate::lexing::roles::Role;
use crate::spec::{BlockLineSpec, CommentSpec, LanguageSpec};
use std::sync::OnceLock;

/// Texts that a search combines.
pub(crate) type Texts = Box<[Box<[u8]>]>;

/// An opening and a closing text.
type Pair = (Box<[u8]>, Box<[u8]>);

/// A kind of bracket: the index of the first pair with the same closing text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BracketKind(u32);

/// Kind of a bracket without a pair; equal to itself alone.
const NO_PAIR: BracketKind = BracketKind(u32::MAX);

/// A line that opens a block, or finishes one whose end is due.
#[derive(Debug, Clone)]
pub(crate) struct BlockLine {
    /// The line.
    pub text: String,
    /// True if a block has to follow it.
    pub opens: bool,
    /// Words with which the line after its block begins; if empty, every line may follow.
    pub before: Vec<String>,
    /// Words with which the lines of its block begin; if empty, every line may be in it.
    pub holds: Vec<String>,
}

/// Texts of a language from which plans are made.
#[derive(Debug)]
pub(crate) struct Spelling {
    /// Text of a name or a value.
    pub placeholder: Option<Box<[u8]>>,
    /// Beginnings of comments that take up the rest of their line.
    pub line_comments: Texts,
    /// Beginnings and ends of string literals.
    pub quotes: Texts,
    /// Texts to try before R where brackets alone do not complete a middle.
    pub openings: Texts,
    pub block_lines: Box<[BlockLine]>,
    /// End of a line that opens a block.
    pub block_opener: Option<Box<[u8]>>,
    /// Columns by which a new block is indented.
    pub step: u32,
    /// Symbols of more than one byte or of a letter, each in its shortest text, once a search has asked for them.
    pub words: OnceLock<Texts>,
    /// Opening and closing texts, pairwise.
    brackets: Box<[Pair]>,
    operators: Box<[u8]>,
    /// Bytes with which only line joins begin.
    joining: Vec<u8>,
}

impl Spelling {
    /// Read the spelling of a definition.
    ///
    /// # Errors
    /// A text that the language has no use for, with the key that holds it.
    pub(crate) fn read(spec: &LanguageSpec, lexer: &Lexer, roles: &[Role], strings: &[bool]) -> Result<Self, Error> {
        let check = Check { spec, lexer, roles };
        for (index, comment) in spec.comments.iter().enumerate() {
            check.comment(index, comment)?;
        }
        if let Some(text) = &spec.placeholder
            && !check.is_symbol(text)
        {
            return Err(check.error("placeholder", &format!("{text:?} is no symbol of the language")));
        }
        for (index, text) in spec.quotes.iter().enumerate() {
            if !check.begins(text, |lexeme| strings[lexeme]) {
                return Err(check.error(&format!("quotes[{index}]"), &format!("no string begins with {text:?}")));
            }
        }
        if let Some(other) = spec.operators.chars().find(|character| !character.is_ascii()) {
            return Err(check.error("operators", &format!("{other:?} is not ASCII")));
        }
        for (index, text) in spec.openings.iter().enumerate() {
            if text.is_empty() {
                return Err(check.error(&format!("openings[{index}]"), "is empty"));
            }
        }
        let layout = spec.layout.as_ref();
        if let Some(text) = layout.and_then(|layout| layout.block_opener.as_ref())
            && !spec.lexemes.iter().any(|lexeme| lexeme.literal.as_ref() == Some(text))
        {
            return Err(check.error("layout.block_opener", &format!("no rule uses the literal {text:?}")));
        }
        if layout.is_some_and(|layout| layout.step == 0) {
            return Err(check.error("layout.step", "a block is indented by a column at least"));
        }
        let joins = |byte: &u8| check.begins_only(*byte, Role::Join);
        Ok(Self {
            placeholder: spec.placeholder.as_deref().map(bytes),
            line_comments: spec
                .comments
                .iter()
                .filter(|one| one.suffix.is_none())
                .map(|one| bytes(&one.prefix))
                .collect(),
            quotes: spec.quotes.iter().map(|text| bytes(text)).collect(),
            openings: spec.openings.iter().map(|text| bytes(text)).collect(),
            block_opener: layout.and_then(|layout| layout.block_opener.as_deref()).map(bytes),
            block_lines: block_lines(spec, &check)?,
            step: layout.map_or(1, |layout| layout.step),
            words: OnceLock::new(),
            brackets: brackets(spec),
            operators: spec.operators.bytes().collect(),
            joining: (0..=255).filter(joins).collect(),
        })
    }

    /// The texts that close a bracket, each once.
    pub(crate) fn closers(&self) -> impl Iterator<Item = &[u8]> {
        let kinds = self.brackets.iter().enumerate().filter(|&(index, pair)| self.first(&pair.1) == index);
        kinds.map(|(_, pair)| &*pair.1)
    }

    /// The text that closes a bracket of a kind.
    pub(crate) fn closer(&self, kind: BracketKind) -> &[u8] {
        self.brackets.get(kind.0 as usize).map_or(b"", |pair| &*pair.1)
    }

    /// The kind of the bracket that a text ends with, as an opening one.
    pub(crate) fn opened_by(&self, text: &[u8]) -> BracketKind {
        let fits = self.brackets.iter().filter(|pair| text.ends_with(&pair.0));
        fits.max_by_key(|pair| pair.0.len()).map_or(NO_PAIR, |pair| self.kind(&pair.1))
    }

    /// The kind of the bracket that a text begins with, as an opening one, and its bytes.
    pub(crate) fn opens(&self, text: &[u8]) -> Option<(BracketKind, usize)> {
        let fits = self.brackets.iter().filter(|pair| text.starts_with(&pair.0));
        fits.max_by_key(|pair| pair.0.len()).map(|pair| (self.kind(&pair.1), pair.0.len()))
    }

    /// The kind of the bracket that a text begins with, as a closing one, and its bytes.
    pub(crate) fn closes(&self, text: &[u8]) -> Option<(BracketKind, usize)> {
        let fits = self.brackets.iter().filter(|pair| text.starts_with(&pair.1));
        fits.max_by_key(|pair| pair.1.len()).map(|pair| (self.kind(&pair.1), pair.1.len()))
    }

    /// The kind of a closing bracket of R, or the kind of brackets without a pair.
    pub(crate) fn closed_by(&self, text: &[u8]) -> BracketKind {
        self.closes(text).map_or(NO_PAIR, |found| found.0)
    }

    /// Return whether a text ends with an opening bracket, or with a block opener, after another byte.
    pub(crate) fn ends_open(&self, text: &[u8]) -> bool {
        let ends = |end: &[u8]| text.len() > end.len() && text.ends_with(end);
        self.brackets.iter().any(|pair| ends(&pair.0)) || self.block_opener.as_deref().is_some_and(ends)
    }

    /// Return whether a text ends with a quote, after another byte.
    pub(crate) fn ends_quoted(&self, text: &[u8]) -> bool {
        self.quotes.iter().any(|quote| text.len() > quote.len() && text.ends_with(quote))
    }

    /// Return whether a text is an empty string literal.
    pub(crate) fn is_empty_string(&self, text: &[u8]) -> bool {
        self.quotes.iter().any(|quote| text.strip_prefix(&**quote) == Some(quote))
    }

    /// The last quote in a text.
    pub(crate) fn last_quote<'a>(&'a self, text: &[u8]) -> Option<&'a [u8]> {
        let at = |at: usize| {
            let found = self.quotes.iter().filter(|quote| text[at..].starts_with(quote));
            found.max_by_key(|quote| quote.len())
        };
        (0..text.len()).rev().find_map(at).map(|quote| &**quote)
    }

    /// Return whether a text begins with a comment that takes up its line.
    pub(crate) fn begins_comment(&self, text: &[u8]) -> bool {
        self.line_comments.iter().any(|prefix| text.starts_with(prefix))
    }

    /// Rank of a byte: of several bytes that do the same, the lowest is chosen.
    pub(crate) fn readability(&self, byte: u8) -> u8 {
        match byte {
            _ if self.placeholder.as_ref().is_some_and(|text| text.first() == Some(&byte)) => 0,
            b'x' => 1,
            b'a'..=b'z' => 2,
            b'0'..=b'9' => 3,
            b' ' | b'\n' => 4,
            b'!'..=b'~' => 5,
            _ => 6,
        }
    }

    /// Return whether a byte begins an operator.
    pub(crate) fn is_operator(&self, byte: u8) -> bool {
        self.operators.contains(&byte)
    }

    /// Return whether only line joins begin with a byte.
    pub(crate) fn joins(&self, byte: u8) -> bool {
        self.joining.contains(&byte)
    }

    fn kind(&self, closer: &[u8]) -> BracketKind {
        BracketKind(self.first(closer) as u32)
    }

    fn first(&self, closer: &[u8]) -> usize {
        self.brackets.iter().position(|pair| *pair.1 == *closer).unwrap_or(usize::MAX)
    }
}

/// Lexer and roles against which the texts of a definition are checked.
struct Check<'a> {
    spec: &'a LanguageSpec,
    lexer: &'a Lexer,
    roles: &'a [Role],
}

impl Check<'_> {
    fn error(&self, key: &str, what: &str) -> Error {
        Error::language(format!("language {}: {key}: {what}", self.spec.name))
    }

    /// Return whether a text is one symbol.
    fn is_symbol(&self, text: &str) -> bool {
        let matched = self.lexer.longest_match(ModeId(0), text.as_bytes());
        matched.is_some_and(|(length, accept)| length == text.len() && self.reads(accept, |role| !role.is_ignored()))
    }

    fn reads(&self, accept: AcceptId, wanted: impl Fn(Role) -> bool) -> bool {
        self.lexer.lexemes(accept).iter().any(|lexeme| wanted(self.roles[lexeme.index()]))
    }

    /// Return whether a wanted lexeme begins with a text, in some mode.
    fn begins(&self, text: &str, wanted: impl Fn(usize) -> bool) -> bool {
        !text.is_empty()
            && self.lexer.starts().any(|start| {
                let state = text.bytes().fold(start, |state, byte| self.lexer.step(state, byte));
                let mut live = self.lexer.live(state);
                state != DEAD
                    && live.any(|accept| self.lexer.lexemes(accept).iter().any(|lexeme| wanted(lexeme.index())))
            })
    }

    /// Return whether ordinary lexemes that begin with a byte have one role.
    fn begins_only(&self, byte: u8, role: Role) -> bool {
        let state = self.lexer.step(self.lexer.start(), byte);
        let mut live = self.lexer.live(state).peekable();
        state != DEAD && live.peek().is_some() && live.all(|accept| self.reads(accept, |other| other == role))
    }

    fn comment(&self, index: usize, comment: &CommentSpec) -> Result<(), Error> {
        let key = |field: &str| format!("comments[{index}].{field}");
        let name = &comment.lexeme;
        let Some(lexeme) = self.spec.lexemes.iter().position(|lexeme| lexeme.name == *name) else {
            return Err(self.error(&key("lexeme"), &format!("there is no lexeme {name}")));
        };
        if !self.roles[lexeme].is_ignored() {
            return Err(self.error(&key("lexeme"), &format!("{name} is passed on to the parser, not ignored")));
        }
        if !self.begins(&comment.prefix, |other| other == lexeme) {
            return Err(self.error(&key("prefix"), &format!("no {name} begins with {:?}", comment.prefix)));
        }
        if let Some(suffix) = &comment.suffix
            && (suffix.is_empty() || !self.begins(&format!("{}{suffix}", comment.prefix), |other| other == lexeme))
        {
            return Err(self.error(&key("suffix"), &format!("no {name} ends with {suffix:?}")));
        }
        Ok(())
    }
}

fn bytes(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

fn brackets(spec: &LanguageSpec) -> Box<[Pair]> {
    let text = |name: &String| spec.lexemes.iter().find(|lexeme| lexeme.name == *name)?.literal.as_deref().map(bytes);
    spec.brackets.iter().filter_map(|(open, close)| Some((text(open)?, text(close)?))).collect()
}

fn block_lines(spec: &LanguageSpec, check: &Check<'_>) -> Result<Box<[BlockLine]>, Error> {
    let opener = spec.layout.as_ref().and_then(|layout| layout.block_opener.as_ref());
    let read = |(index, line): (usize, &BlockLineSpec)| {
        let opens = opener.is_some_and(|opener| line.text.ends_with(&**opener));
        let key = |field: &str| format!("block_lines[{index}].{field}");
        if line.text.is_empty() {
            return Err(check.error(&key("text"), "is empty"));
        }
        let only_opening = [("before", &line.before), ("holds", &line.holds)];
        if let Some((field, _)) = only_opening.into_iter().find(|(_, words)| !opens && !words.is_empty()) {
            return Err(check.error(&key(field), "a line has a block only if it ends with layout.block_opener"));
        }
        Ok(BlockLine { text: line.text.clone(), opens, before: line.before.clone(), holds: line.holds.clone() })
    };
    spec.block_lines.iter().enumerate().map(read).collect()
}
