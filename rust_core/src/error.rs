//! The engine's one error type.

use std::fmt;

/// Why a language, a vocabulary or a request was refused. The message is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// What an [`Error`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The language definition cannot be compiled.
    Language,
    /// The vocabulary cannot be used.
    Vocabulary,
    /// A limit of [`crate::limits`] was passed.
    Limit,
    /// A call that the current state does not allow.
    State,
    /// A shape that no middle can have, or that is not understood.
    Shape,
}

impl Error {
    /// A new error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// A refused language definition.
    pub fn language(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Language, message)
    }

    /// A passed limit, with what was given and what is allowed.
    #[must_use]
    pub fn limit(what: &str, given: usize, limit: usize) -> Self {
        Self::new(ErrorKind::Limit, format!("{what}: {given} is over the limit of {limit}"))
    }

    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
