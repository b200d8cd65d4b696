//! Roles of lexemes, and of bytes at the start of a line, in the stages between lexer and parser.

use crate::error::Error;
use crate::ids::{AcceptId, LexemeId};
use crate::lexing::layout::{Layout, is_blank};
use crate::lexing::lexer::{DEAD, Lexer};
use crate::spec::LanguageSpec;

/// Role of a lexeme in the stages between lexer and parser.
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
    /// Return whether the lexeme is never passed on.
    #[must_use]
    pub fn is_ignored(self) -> bool {
        matches!(self, Self::Blank | Self::Comment | Self::Join)
    }
}

/// Role of a byte at the start of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineByte {
    /// Part of the indentation.
    Blank,
    /// End of a line without a symbol.
    Newline,
    /// Beginning of a comment or a line join: the line has no symbol yet.
    Trivia,
    /// Beginning of the line's first symbol.
    Symbol,
}

/// The role of each byte at the start of a line.
pub(crate) fn line_bytes(lexer: &Lexer, role: impl Fn(AcceptId) -> Role) -> Vec<LineByte> {
    let of = |byte: u8| {
        if is_blank(byte) {
            return LineByte::Blank;
        }
        let state = lexer.step(lexer.start(), byte);
        let roles: Vec<Role> = lexer.live(state).map(&role).collect();
        let all = |wanted: Role| state != DEAD && !roles.is_empty() && roles.iter().all(|&role| role == wanted);
        if all(Role::Newline) {
            LineByte::Newline
        } else if all(Role::Comment) || all(Role::Join) {
            LineByte::Trivia
        } else {
            LineByte::Symbol
        }
    };
    (0..=255).map(of).collect()
}

/// The role of each lexeme of a definition.
///
/// # Errors
/// A name that no lexeme has.
pub(crate) fn roles(spec: &LanguageSpec, layout: Option<Layout>) -> Result<Vec<Role>, Error> {
    let mut roles = vec![Role::Symbol; spec.lexemes.len()];
    let mut set = |name: &str, role: Role| find(spec, name).map(|lexeme| roles[lexeme.index()] = role);
    for (open, close) in &spec.brackets {
        set(open, Role::Open)?;
        set(close, Role::Close)?;
    }
    for mode in &spec.modes {
        mode.open.iter().try_for_each(|name| set(name, Role::Open))?;
        mode.close.iter().try_for_each(|name| set(name, Role::Close))?;
    }
    // One that is ignored at the first byte of a file is a way to begin the file.
    let ignored = spec.ignore.iter().filter(|name| !spec.first_lexemes.contains(name));
    ignored.into_iter().try_for_each(|name| set(name, Role::Blank))?;
    if let (Some(named), Some(_)) = (&spec.layout, layout) {
        set(&named.newline, Role::Newline)?;
        set(&named.blank, Role::Blank)?;
        set(&named.comment, Role::Comment)?;
        named.join.iter().try_for_each(|join| set(join, Role::Join))?;
    }
    Ok(roles)
}

/// The layout lexemes of a definition, if its language has layout.
///
/// # Errors
/// A name that no lexeme has.
pub(crate) fn layout(spec: &LanguageSpec) -> Result<Option<Layout>, Error> {
    let Some(layout) = &spec.layout else { return Ok(None) };
    Ok(Some(Layout {
        newline: find(spec, &layout.newline)?,
        indent: find(spec, &layout.indent)?,
        dedent: find(spec, &layout.dedent)?,
        column_classes: layout.column_classes,
    }))
}

/// The lexeme of a name.
///
/// # Errors
/// No lexeme has the name.
pub(crate) fn find(spec: &LanguageSpec, name: &str) -> Result<LexemeId, Error> {
    spec.lexemes
        .iter()
        .position(|lexeme| lexeme.name == name)
        .map(LexemeId::from_index)
        .ok_or_else(|| Error::language(format!("language {}: there is no lexeme {name}", spec.name)))
}
