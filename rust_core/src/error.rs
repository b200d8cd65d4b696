//! The engine's one error type.

use std::fmt;

/// Why a language, a vocabulary or a request was refused. The message is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    passed: Option<Passed>,
}

/// How much of something there is, and how much of it is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// What was counted, in the limit's unit.
    pub given: usize,
    /// What is allowed.
    pub limit: usize,
}

/// What an [`Error`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The language definition cannot be compiled.
    Language,
    /// The vocabulary cannot be used.
    Vocabulary,
    /// A limit of [`crate::limits`] was passed: what was given is too large.
    Limit,
    /// A bounded search gave up, so that nothing is known of what it was to find.
    Search,
    /// The operating system refused what was asked of it.
    System,
    /// A call that the current state does not allow.
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

    /// A passed limit, with what was given and what is allowed.
    #[must_use]
    pub fn limit(what: &str, given: usize, limit: usize) -> Self {
        Self::over(ErrorKind::Limit, what, given, limit)
    }

    /// A search that looked at more than it may, with how much of what.
    #[must_use]
    pub fn search(what: &str, given: usize, limit: usize) -> Self {
        Self::over(ErrorKind::Search, what, given, limit)
    }

    fn over(kind: ErrorKind, what: &str, given: usize, limit: usize) -> Self {
        let message = format!("{what}: {given} is over the limit of {limit}");
        Self { kind, message, passed: Some(Passed { given, limit }) }
    }

    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The figures of a passed limit.
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
