//! Compiled definition of a language: its lexer, its grammar, and the roles of lexemes and rules in the other stages.

use crate::error::Error;
use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, LexemeId, ModeId, SymbolId};
use crate::language::marks::{Mark, Marks};
use crate::language::nesting::Nesting;
use crate::language::spelling::Spelling;
use crate::language::{alike, code_modes};
use crate::lexing::layout::Layout;
use crate::lexing::lexer::{self, Lexer, LexerTable};
use crate::lexing::roles::{self, Role, find};
use crate::spec::{LanguageSpec, LimitsSpec};
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// Constructs of L that the middle must not close: a constraint against text that closes one and opens it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// The brackets of L that R closes.
    Brackets,
    /// The block that the cursor is in.
    Block,
}

/// End of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommentEnd {
    /// The end of its line.
    Line,
    /// A text of its own.
    Text,
}

/// A compiled definition. [`crate::language::compiled::Language`] adds the relations over the middle.
#[derive(Debug)]
pub struct Definition {
    /// The language's name.
    pub name: String,
    /// The lexer.
    pub lexer: Arc<Lexer>,
    /// The grammar.
    pub grammar: Grammar,
    /// The layout lexemes, for a language with indentation.
    pub layout: Option<Layout>,
    /// A hash of the definition.
    pub fingerprint: u128,
    /// Limits on how deep texts may nest.
    pub limits: LimitsSpec,
    /// Texts from which completions are put together.
    pub(crate) spelling: Arc<Spelling>,
    /// Role of each lexeme.
    pub(crate) roles: Vec<Role>,
    /// Texts that bind and match, if there are any.
    pub(crate) marks: Option<Marks>,
    mode_count: usize,
    /// Per lexeme: whether it is, or is part of, a string literal.
    strings: Vec<bool>,
    /// Per lexeme: the end of a comment, if it is one.
    comments: Vec<Option<CommentEnd>>,
    /// Names of constructs, the most telling first.
    constructs: Vec<Construct>,
    /// By nonterminal: the places of its constructs.
    constructs_of: FxHashMap<SymbolId, Vec<usize>>,
    /// By symbol: the lexeme that it stands for, itself for others.
    carried: Vec<SymbolId>,
    literals: Vec<Option<String>>,
    /// By lexeme: its texts for people; empty where there are many.
    shown: Vec<Vec<String>>,
    /// Depths of dots in brackets, and in blocks, counted when a floor first needs them.
    nestings: [OnceLock<Option<Nesting>>; 2],
}

/// A name for a rule of which something has been read.
#[derive(Debug, Clone)]
pub struct Construct {
    /// The lexeme that must have been read.
    pub lexeme: Option<SymbolId>,
    /// The name.
    pub name: String,
}

impl Definition {
    /// Compile a definition; `table` is a lexer table of a language that was compiled from it earlier. The modes are not
    /// checked again then, which would take nearly half of the time.
    ///
    /// # Errors
    /// Any flaw of the definition, in one line.
    pub(crate) fn compile(spec: &LanguageSpec, table: Option<LexerTable>) -> Result<Self, Error> {
        let is_checked = table.is_some();
        let table = match table {
            Some(table) if table.is_of(spec) => table,
            Some(_) => return Err(Error::language("the lexer table is another definition's")),
            None => LexerTable::compile(spec)?,
        };
        let lexer = Lexer::new(table, spec.lexemes.len());
        let layout = roles::layout(spec)?;
        let roles = roles::roles(spec, layout)?;
        let grammar = Grammar::compile(spec, &producible(spec, &lexer, &roles, layout), lexer::mode_of(spec)?)?;
        if !is_checked {
            let check = if grammar.unites_modes() { alike::check } else { code_modes::check };
            check(spec, &lexer, &grammar, &roles)?;
        }
        let strings = strings(spec, &grammar)?;
        let (constructs, constructs_of) = constructs(spec, &grammar)?;
        let spelling = Spelling::read(spec, &lexer, &roles, &strings)?;
        Ok(Self {
            name: spec.name.clone(),
            marks: Marks::read(spec, &lexer, &grammar)?,
            carried: carried(&grammar),
            lexer: Arc::new(lexer),
            grammar,
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
            shown: spec.lexemes.iter().map(|lexeme| lexeme.shown.clone()).collect(),
            nestings: Default::default(),
        })
    }

    /// The role of a lexeme.
    #[inline(always)]
    #[must_use]
    pub fn role(&self, lexeme: LexemeId) -> Role {
        self.roles[lexeme.index()]
    }

    /// The role of an accept set: that of its first lexeme (sets hold lexemes of one role).
    #[inline(always)]
    #[must_use]
    pub fn accept_role(&self, accept: AcceptId) -> Role {
        self.roles[self.lexer.lexemes(accept)[0].index()]
    }

    /// The mark of a lexeme, if it has one.
    #[inline]
    #[must_use]
    pub(crate) fn mark(&self, lexeme: LexemeId) -> Option<Mark> {
        self.marks.as_ref().and_then(|marks| marks.of(lexeme))
    }

    /// Return whether an accept set has marks.
    #[inline]
    #[must_use]
    pub(crate) fn has_marks(&self, accept: AcceptId) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.are_in(accept))
    }

    /// The accept sets that have marks, as a mask; none without marks.
    pub(crate) fn marked_accepts(&self) -> &[u64] {
        self.marks.as_ref().map_or(&[], |marks| marks.all())
    }

    /// The lexemes of an accept set that have patterns of their own.
    #[must_use]
    pub(crate) fn unmarked(&self, accept: AcceptId) -> &[LexemeId] {
        let lexemes = self.lexer.lexemes(accept);
        &lexemes[..lexemes.partition_point(|&lexeme| self.mark(lexeme).is_none())]
    }

    /// Return whether an accept set is a string literal, or part of one.
    #[must_use]
    pub fn is_string(&self, accept: AcceptId) -> bool {
        self.unmarked(accept).iter().all(|lexeme| self.strings[lexeme.index()])
    }

    /// The end of an accept set that is a comment.
    #[must_use]
    pub(crate) fn comment(&self, accept: AcceptId) -> Option<CommentEnd> {
        self.comments[self.lexer.lexemes(accept)[0].index()]
    }

    /// The names of a nonterminal for people, the most informative first, with their ranks among all.
    pub fn constructs(&self, nonterminal: SymbolId) -> impl Iterator<Item = (usize, &Construct)> {
        let ranks = self.constructs_of.get(&nonterminal).into_iter().flatten();
        ranks.map(|&rank| (rank, &self.constructs[rank]))
    }

    /// The lexeme that a nonterminal stands for: one lexeme with optional breaks around it. Other symbols stand for
    /// themselves.
    pub(crate) fn carried(&self, symbol: SymbolId) -> SymbolId {
        self.carried[symbol.index()]
    }

    /// A lexeme's text, if it has but one.
    #[must_use]
    pub fn literal(&self, lexeme: SymbolId) -> Option<&str> {
        self.literals[lexeme.index()].as_deref()
    }

    /// Depths of dots, as a floor counts them; `None` where depth and rule do not agree.
    pub(crate) fn nesting(&self, floor: Floor) -> Option<&Nesting> {
        let known = &self.nestings[usize::from(floor == Floor::Block)];
        let layout = self.grammar.indent_dedent;
        let of_lexeme = |lexeme: SymbolId| match floor {
            Floor::Brackets => match self.roles[lexeme.index()] {
                Role::Open => 1,
                Role::Close => -1,
                _ => 0,
            },
            Floor::Block => layout.map_or(0, |(open, close)| i32::from(lexeme == open) - i32::from(lexeme == close)),
        };
        known.get_or_init(|| Nesting::derive(&self.grammar, of_lexeme)).as_ref()
    }

    /// The number of modes, the default one included.
    #[must_use]
    pub fn mode_count(&self) -> usize {
        self.mode_count
    }

    /// Show a lexeme to people: its literal in quotes, or its name.
    #[must_use]
    pub fn display(&self, lexeme: LexemeId) -> String {
        match &self.literals[lexeme.index()] {
            Some(literal) => format!("{literal:?}"),
            None => self.grammar.name(SymbolId::from(lexeme)).to_string(),
        }
    }

    /// Show the texts that people may write for a lexeme: all its texts in quotes, where they are few.
    #[must_use]
    pub fn shown(&self, lexeme: LexemeId) -> Vec<String> {
        match &*self.shown[lexeme.index()] {
            [] => vec![self.display(lexeme)],
            texts => texts.iter().map(|text| format!("{text:?}")).collect(),
        }
    }
}

/// Lexemes that the parser can be given: those that some text is lexed as, and those of the layout stage.
fn producible(spec: &LanguageSpec, lexer: &Lexer, roles: &[Role], layout: Option<Layout>) -> Vec<bool> {
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
    producible
}

/// Mark string literals: the lexemes that the definition names, and the parts of literals that hold code. Such parts
/// are lexemes of modes that read no code, and those that lead into such a mode.
fn strings(spec: &LanguageSpec, grammar: &Grammar) -> Result<Vec<bool>, Error> {
    let part = |symbol| {
        !grammar.reads_code(grammar.mode_of(symbol))
            || grammar.mode_of(symbol) == ModeId(0) && grammar.leads_away(symbol)
    };
    let mut strings: Vec<bool> = (0..spec.lexemes.len()).map(|index| part(SymbolId::from_index(index))).collect();
    for name in &spec.strings {
        strings[find(spec, name)?.index()] = true;
    }
    Ok(strings)
}

/// Per lexeme: the end of a comment. A comment of the layout stage ends with its line.
fn comments(spec: &LanguageSpec, has_layout: bool) -> Result<Vec<Option<CommentEnd>>, Error> {
    let mut found = vec![None; spec.lexemes.len()];
    for comment in &spec.comments {
        let end = if comment.suffix.is_some() { CommentEnd::Text } else { CommentEnd::Line };
        found[find(spec, &comment.lexeme)?.index()] = Some(end);
    }
    for name in &spec.comment_symbols {
        found[find(spec, name)?.index()] = Some(CommentEnd::Text);
    }
    if let (true, Some(layout)) = (has_layout, &spec.layout) {
        found[find(spec, &layout.comment)?.index()] = Some(CommentEnd::Line);
    }
    Ok(found)
}

/// By symbol: the lexeme that alone makes one of a nonterminal's rules and stands in the others, or the nonterminal
/// itself in them; otherwise the symbol.
fn carried(grammar: &Grammar) -> Vec<SymbolId> {
    let mut found: Vec<SymbolId> = (0..grammar.symbol_count()).map(SymbolId::from_index).collect();
    for rule in grammar.rules() {
        if let [symbol] = *rule.rhs
            && grammar.is_lexeme(symbol)
        {
            found[rule.lhs.index()] = symbol;
        }
    }
    for rule in grammar.rules() {
        let lexeme = found[rule.lhs.index()];
        if !rule.rhs.iter().any(|&symbol| symbol == lexeme || symbol == rule.lhs) {
            found[rule.lhs.index()] = rule.lhs;
        }
    }
    found
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
        found.0.push(Construct { lexeme: lexeme.map(SymbolId::from), name: construct.name.clone() });
    }
    Ok(found)
}
