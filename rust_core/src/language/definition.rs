//! A compiled language: lexer, grammar, and what a middle that is still free can do.

use crate::chart::next::Aheads;
use crate::error::Error;
use crate::grammar::rules::Grammar;
use crate::ids::{AcceptId, LexemeId, ModeId, SymbolId};
use crate::language::follow::Follow;
use crate::language::free::Free;
use crate::language::shape::Shape;
use crate::language::shaped::ShapedLexer;
use crate::language::spelling::Spelling;
use crate::lexing::lexer::{self, Lexer, LexerTable};
use crate::spec::{LanguageSpec, LimitsSpec};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What the stages between lexer and parser do with a lexeme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Passed on to the parser.
    Symbol,
    /// Passed on; opens a bracket.
    Open,
    /// Passed on; closes a bracket.
    Close,
    /// Ignored: blanks, and everything ignored in a language without layout.
    Blank,
    /// Ignored; ends only with its line (languages with layout).
    Comment,
    /// Ignored; a backslash and a newline (languages with layout).
    Join,
    /// The newline of a language with layout: passed on at the end of a logical line.
    Newline,
}

impl Role {
    /// Whether the lexeme is never passed on.
    #[must_use]
    pub fn is_ignored(self) -> bool {
        matches!(self, Self::Blank | Self::Comment | Self::Join)
    }
}

/// What ends a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommentEnd {
    /// The end of its line.
    Line,
    /// A text of its own.
    Text,
}

/// The layout lexemes of a language with indentation.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The newline lexeme.
    pub newline: LexemeId,
    /// The lexeme that opens a block.
    pub indent: LexemeId,
    /// The lexeme that closes a block.
    pub dedent: LexemeId,
    /// Whether unknown columns are taken in classes.
    pub column_classes: bool,
}

/// A compiled language. Immutable; shared by all sessions.
#[derive(Debug)]
pub struct Language {
    /// The language's name.
    pub name: String,
    /// The lexer.
    pub lexer: Arc<Lexer>,
    /// The grammar.
    pub grammar: Arc<Grammar>,
    /// What a free middle can do.
    pub free: Free,
    /// What may come next where R asks for nothing.
    pub follow: Follow,
    /// What each dot allows next there.
    pub aheads: Arc<Aheads>,
    /// The layout lexemes, for a language with indentation.
    pub layout: Option<Layout>,
    /// A hash of the definition.
    pub fingerprint: u128,
    /// The lexer beside the shape that the middle must have, if there is one.
    pub shaped: Option<ShapedLexer>,
    /// How deep texts may nest.
    pub limits: LimitsSpec,
    /// What texts that complete a middle are put together from.
    pub(crate) spelling: Arc<Spelling>,
    mode_count: usize,
    roles: Vec<Role>,
    /// Per lexeme: whether it is, or is part of, a string literal.
    strings: Vec<bool>,
    /// Per lexeme: what ends it, if it is a comment.
    comments: Vec<Option<CommentEnd>>,
    /// Names of constructs, the most telling first.
    constructs: Vec<Construct>,
    /// By nonterminal: the places of its constructs.
    constructs_of: FxHashMap<SymbolId, Vec<usize>>,
    literals: Vec<Option<String>>,
}

/// A name for a rule of which something has been read.
#[derive(Debug, Clone)]
pub struct Construct {
    /// The lexeme that must have been read.
    pub lexeme: Option<SymbolId>,
    /// What it is called.
    pub name: String,
}

impl Language {
    /// Compiles a definition; `table` is a lexer table compiled earlier from the same definition.
    ///
    /// # Errors
    /// Whatever is wrong with the definition, in one line.
    pub fn compile(spec: &LanguageSpec, table: Option<LexerTable>) -> Result<Self, Error> {
        let table = match table {
            Some(table) => table,
            None => LexerTable::compile(spec)?,
        };
        let lexer = Lexer::new(table, spec.lexemes.len());
        let layout = layout(spec)?;
        let roles = roles(spec, layout)?;
        let mut producible = vec![false; spec.lexemes.len()];
        for accept in lexer.accept_sets() {
            for &lexeme in lexer.lexemes(accept) {
                producible[lexeme.index()] = !roles[lexeme.index()].is_ignored();
            }
        }
        if let Some(layout) = layout {
            producible[layout.indent.index()] = true;
            producible[layout.dedent.index()] = true;
        }
        let grammar = Grammar::compile(spec, &producible, lexer::mode_of(spec)?)?;
        let strings = strings(spec, &grammar)?;
        let (constructs, constructs_of) = constructs(spec, &grammar)?;
        let free = Free::derive(&lexer, &grammar, &roles, layout)?;
        let follow = Follow::derive(&grammar, &free, layout.is_some());
        let spelling = Spelling::read(spec, &lexer, &roles, &strings)?;
        let mut language = Self {
            name: spec.name.clone(),
            lexer: Arc::new(lexer),
            grammar: Arc::new(grammar),
            free,
            follow,
            aheads: Arc::default(),
            shaped: None,
            layout,
            fingerprint: xxhash_rust::xxh3::xxh3_128(&serde_json::to_vec(spec).expect("a definition is JSON")),
            limits: spec.limits,
            spelling: Arc::new(spelling),
            mode_count: spec.modes.len() + 1,
            roles,
            strings,
            comments: comments(spec, layout.is_some())?,
            constructs,
            constructs_of,
            literals: spec.lexemes.iter().map(|lexeme| lexeme.literal.clone()).collect(),
        };
        if language.follow.is_even() {
            language.aheads = Arc::new(Aheads::derive(&language));
        }
        Ok(language)
    }

    /// The same language for middles of a shape.
    ///
    /// # Errors
    /// A language without separators, or a shape of too many states.
    pub fn shaped(&self, shape: Arc<Shape>) -> Result<Self, Error> {
        let free = Free::shaped(&self.lexer, &self.grammar, &self.roles, self.layout, shape.clone())?;
        Ok(Self {
            name: self.name.clone(),
            lexer: self.lexer.clone(),
            grammar: self.grammar.clone(),
            follow: Follow::derive(&self.grammar, &free, self.layout.is_some()),
            free,
            aheads: self.aheads.clone(),
            shaped: Some(ShapedLexer::new(&self.lexer, &shape)),
            layout: self.layout,
            fingerprint: self.fingerprint,
            limits: self.limits,
            spelling: self.spelling.clone(),
            mode_count: self.mode_count,
            roles: self.roles.clone(),
            strings: self.strings.clone(),
            comments: self.comments.clone(),
            constructs: self.constructs.clone(),
            constructs_of: self.constructs_of.clone(),
            literals: self.literals.clone(),
        })
    }

    /// What is done with a lexeme.
    #[inline(always)]
    #[must_use]
    pub fn role(&self, lexeme: LexemeId) -> Role {
        self.roles[lexeme.index()]
    }

    /// What is done with what a state accepts: the role of its first lexeme (sets hold lexemes of one role).
    #[inline(always)]
    #[must_use]
    pub fn accept_role(&self, accept: AcceptId) -> Role {
        self.roles[self.lexer.lexemes(accept)[0].index()]
    }

    /// Whether what an accept set stands for is a string literal, or part of one.
    #[must_use]
    pub fn is_string(&self, accept: AcceptId) -> bool {
        self.lexer.lexemes(accept).iter().all(|lexeme| self.strings[lexeme.index()])
    }

    /// What ends what an accept set stands for, if it is a comment.
    #[must_use]
    pub(crate) fn comment(&self, accept: AcceptId) -> Option<CommentEnd> {
        self.comments[self.lexer.lexemes(accept)[0].index()]
    }

    /// The names that a nonterminal may have for people, the most telling first, with their ranks among all.
    pub fn constructs(&self, nonterminal: SymbolId) -> impl Iterator<Item = (usize, &Construct)> {
        let ranks = self.constructs_of.get(&nonterminal).into_iter().flatten();
        ranks.map(|&rank| (rank, &self.constructs[rank]))
    }

    /// A lexeme's text, if it has but one.
    #[must_use]
    pub fn literal(&self, lexeme: SymbolId) -> Option<&str> {
        self.literals[lexeme.index()].as_deref()
    }

    /// The number of modes, the default one included.
    #[must_use]
    pub fn mode_count(&self) -> usize {
        self.mode_count
    }

    /// A lexeme as a grammar symbol.
    #[inline(always)]
    #[must_use]
    pub fn symbol(lexeme: LexemeId) -> SymbolId {
        SymbolId(lexeme.0)
    }

    /// How a lexeme is shown to people: its literal in quotes, or its name.
    #[must_use]
    pub fn display(&self, lexeme: LexemeId) -> String {
        match &self.literals[lexeme.index()] {
            Some(literal) => format!("{literal:?}"),
            None => self.grammar.name(Self::symbol(lexeme)).to_string(),
        }
    }
}

fn find(spec: &LanguageSpec, name: &str) -> Result<LexemeId, Error> {
    spec.lexemes
        .iter()
        .position(|lexeme| lexeme.name == name)
        .map(LexemeId::from_index)
        .ok_or_else(|| Error::language(format!("language {}: there is no lexeme {name}", spec.name)))
}

fn layout(spec: &LanguageSpec) -> Result<Option<Layout>, Error> {
    let Some(layout) = &spec.layout else { return Ok(None) };
    Ok(Some(Layout {
        newline: find(spec, &layout.newline)?,
        indent: find(spec, &layout.indent)?,
        dedent: find(spec, &layout.dedent)?,
        column_classes: layout.column_classes,
    }))
}

/// Which lexemes are string literals: those that the definition names, and the parts of literals that hold code, which are
/// the lexemes of modes that read no code and those that lead into such a mode.
fn strings(spec: &LanguageSpec, grammar: &Grammar) -> Result<Vec<bool>, Error> {
    let part = |symbol| {
        grammar.code_modes() >> grammar.mode_of(symbol).index() & 1 == 0
            || grammar.mode_of(symbol) == ModeId(0) && grammar.leads_away(symbol)
    };
    let mut strings: Vec<bool> = (0..spec.lexemes.len()).map(|index| part(SymbolId::from_index(index))).collect();
    for name in &spec.strings {
        strings[find(spec, name)?.index()] = true;
    }
    Ok(strings)
}

/// By lexeme, what ends it if it is a comment; that of the layout stage ends with its line.
fn comments(spec: &LanguageSpec, has_layout: bool) -> Result<Vec<Option<CommentEnd>>, Error> {
    let mut found = vec![None; spec.lexemes.len()];
    for comment in &spec.comments {
        let end = if comment.suffix.is_some() { CommentEnd::Text } else { CommentEnd::Line };
        found[find(spec, &comment.lexeme)?.index()] = Some(end);
    }
    if let (true, Some(layout)) = (has_layout, &spec.layout) {
        found[find(spec, &layout.comment)?.index()] = Some(CommentEnd::Line);
    }
    Ok(found)
}

/// A definition's constructs, and where each nonterminal's are among them.
type Constructs = (Vec<Construct>, FxHashMap<SymbolId, Vec<usize>>);

fn constructs(spec: &LanguageSpec, grammar: &Grammar) -> Result<Constructs, Error> {
    let mut found: Constructs = Default::default();
    for (rank, construct) in spec.constructs.iter().enumerate() {
        let symbols = (grammar.lexeme_count()..grammar.symbol_count()).map(SymbolId::from_index);
        let named: Vec<SymbolId> = symbols.filter(|&symbol| grammar.title(symbol) == construct.rule).collect();
        if named.is_empty() {
            return Err(Error::language(format!("language {}: there is no rule {}", spec.name, construct.rule)));
        }
        for symbol in named {
            found.1.entry(symbol).or_default().push(rank);
        }
        let lexeme = construct.lexeme.as_ref().map(|name| find(spec, name)).transpose()?;
        found.0.push(Construct { lexeme: lexeme.map(Language::symbol), name: construct.name.clone() });
    }
    Ok(found)
}

fn roles(spec: &LanguageSpec, layout: Option<Layout>) -> Result<Vec<Role>, Error> {
    let mut roles = vec![Role::Symbol; spec.lexemes.len()];
    for (open, close) in &spec.brackets {
        roles[find(spec, open)?.index()] = Role::Open;
        roles[find(spec, close)?.index()] = Role::Close;
    }
    for mode in &spec.modes {
        for (names, role) in [(&mode.open, Role::Open), (&mode.close, Role::Close)] {
            for name in names {
                roles[find(spec, name)?.index()] = role;
            }
        }
    }
    for name in &spec.ignore {
        roles[find(spec, name)?.index()] = Role::Blank;
    }
    if let (Some(layout), Some(ids)) = (&spec.layout, layout) {
        roles[ids.newline.index()] = Role::Newline;
        roles[find(spec, &layout.blank)?.index()] = Role::Blank;
        roles[find(spec, &layout.comment)?.index()] = Role::Comment;
        if let Some(join) = &layout.join {
            roles[find(spec, join)?.index()] = Role::Join;
        }
    }
    Ok(roles)
}
