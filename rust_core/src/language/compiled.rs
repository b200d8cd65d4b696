//! Compiled language: a definition, and relations over a middle that is still free.

use crate::error::Error;
use crate::language::ahead::{AcceptMasks, Aheads};
use crate::language::definition::Definition;
use crate::language::follow::Follow;
use crate::language::free::Free;
use crate::language::kept::Kept;
use crate::language::prediction::SharedPredictions;
use crate::language::shape::Shape;
use crate::language::shaped::ShapedLexer;
use crate::lexing::lexer::LexerTable;
use crate::spec::LanguageSpec;
use std::ops::Deref;
use std::sync::Arc;

/// A compiled language: its [`Definition`], and relations over the free middle. Immutable; shared by all sessions.
#[derive(Debug)]
pub struct Language {
    definition: Arc<Definition>,
    /// Relations of the free middle.
    pub(crate) free: Free,
    /// Free states that can follow where R puts no constraint.
    pub(crate) follow: Follow,
    /// Accept sets that can be read or ignored, by role and by lexeme.
    pub(crate) accept_masks: Arc<AcceptMasks>,
    /// Lexemes that each dot allows next where R puts no constraint; empty if the language is not even.
    pub(crate) aheads: Arc<Aheads>,
    /// Predictions of all sessions with the definition.
    pub(crate) predictions: Arc<SharedPredictions>,
    /// Free parts of right contexts, of all sessions with this middle.
    pub(crate) parts: Arc<Kept>,
    /// The lexer beside the shape that the middle must have, if there is one.
    pub(crate) shaped: Option<ShapedLexer>,
}

impl Deref for Language {
    type Target = Definition;

    #[inline(always)]
    fn deref(&self) -> &Definition {
        &self.definition
    }
}

impl Language {
    /// Compile a definition; `table` is a lexer table of a language that was compiled from it earlier.
    ///
    /// # Errors
    /// Any flaw of the definition, in one line.
    pub fn compile(spec: &LanguageSpec, table: Option<LexerTable>) -> Result<Self, Error> {
        let definition = Definition::compile(spec, table)?;
        let free = Free::derive(&definition.lexer, &definition.grammar, &definition.roles, definition.layout)?;
        let follow = Follow::derive(&definition.lexer, &definition.grammar, &free, definition.layout.is_some());
        let accept_masks = AcceptMasks::derive(&definition);
        let aheads =
            if follow.is_even() { Aheads::derive(&definition, &follow, &accept_masks) } else { Aheads::default() };
        Ok(Self {
            definition: Arc::new(definition),
            free,
            follow,
            accept_masks: Arc::new(accept_masks),
            aheads: Arc::new(aheads),
            predictions: Arc::default(),
            parts: Arc::default(),
            shaped: None,
        })
    }

    /// This language for middles of a shape.
    ///
    /// # Errors
    /// A language without separators, or a shape of too many states.
    pub fn shaped(&self, shape: Arc<Shape>) -> Result<Self, Error> {
        let (free, shaped) = Free::shaped(&self.lexer, &self.grammar, &self.roles, self.layout, shape)?;
        Ok(Self {
            definition: self.definition.clone(),
            follow: Follow::derive(&self.lexer, &self.grammar, &free, self.layout.is_some()),
            free,
            accept_masks: self.accept_masks.clone(),
            aheads: self.aheads.clone(),
            predictions: self.predictions.clone(),
            parts: Arc::default(),
            shaped: Some(shaped),
        })
    }
}
