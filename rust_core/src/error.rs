//! The engine's one error type.

use std::fmt;

/// Reason why a language, a vocabulary or a request was refused. The message is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    passed: Option<Passed>,
}

/// Figures of an exceeded limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// Given amount, in the limit's unit.
    pub given: usize,
    /// Allowed amount.
    pub limit: usize,
}

/// Subject of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The language definition cannot be compiled.
    Language,
    /// The vocabulary cannot be used.
    Vocabulary,
    /// A limit of [`crate::limits`] was passed: the input is too large.
    Limit,
    /// A bounded search gave up without a result.
    Search,
    /// The operating system refused a request.
    System,
    /// A call that is invalid in the current state.
    State,
    /// A shape that no middle can have, or that is not understood.
    Shape,
}

impl Error {
    /// A new error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), passed: None }
    }

    /// A refused language definition.
    pub fn language(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Language, message)
    }

    /// An exceeded limit, with the given and the allowed amount.
    #[must_use]
    pub fn limit(what: &str, given: usize, limit: usize) -> Self {
        Self::over(ErrorKind::Limit, what, given, limit)
    }

    /// A search that passed its limit, with its unit.
    #[must_use]
    pub fn search(what: &str, given: usize, limit: usize) -> Self {
        Self::over(ErrorKind::Search, what, given, limit)
    }

    fn over(kind: ErrorKind, what: &str, given: usize, limit: usize) -> Self {
        let message = format!("{what}: {given} is over the limit of {limit}");
        Self { kind, message, passed: Some(Passed { given, limit }) }
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The figures of an exceeded limit.
    #[must_use]
    pub fn passed(&self) -> Option<Passed> {
        self.passed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
