//! Matchers: a state moved by the tokens of a vocabulary.

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::session::State;
use crate::vocabulary::Vocabulary;
use std::sync::Arc;

/// A middle in progress, in tokens.
#[derive(Debug, Clone)]
pub struct Matcher {
    state: State,
    vocabulary: Arc<Vocabulary>,
    /// Bytes of each committed token; an end token has none.
    lengths: Vec<usize>,
    ended: bool,
}

impl Matcher {
    /// A matcher that goes on from a state.
    #[must_use]
    pub fn new(state: State, vocabulary: Arc<Vocabulary>) -> Self {
        Self { state, vocabulary, lengths: Vec::new(), ended: false }
    }

    /// Fills a packed mask; after an end token nothing is allowed.
    pub fn fill_mask(&self, words: &mut [u32]) {
        if self.ended {
            words.fill(0);
        } else {
            self.state.fill_mask(&self.vocabulary, words);
        }
    }

    /// The same by a walk over the vocabulary's trie, with nothing kept: the plain twin.
    pub fn fill_mask_plain(&self, words: &mut [u32]) {
        if self.ended {
            words.fill(0);
        } else {
            self.state.fill_mask_plain(&self.vocabulary, words);
        }
    }

    /// Whether a token may be committed.
    ///
    /// # Errors
    /// A token outside the vocabulary.
    pub fn allows(&self, token: TokenId) -> Result<bool, Error> {
        self.known(token)?;
        Ok(!self.ended && self.state.allows(&self.vocabulary, token))
    }

    /// Goes on by a token.
    ///
    /// # Errors
    /// A token outside the vocabulary, or one that the mask does not allow; nothing changes then.
    pub fn commit(&mut self, token: TokenId) -> Result<(), Error> {
        self.known(token)?;
        let refused = || Error::new(ErrorKind::State, format!("token {} is not allowed here", token.0));
        if self.ended {
            return Err(Error::new(ErrorKind::State, format!("token {} after the end token", token.0)));
        }
        if self.vocabulary.is_end(token) {
            if !self.state.is_complete() {
                return Err(refused());
            }
            self.ended = true;
            self.lengths.push(0);
            return Ok(());
        }
        let vocabulary = self.vocabulary.clone();
        let bytes = vocabulary.bytes_of(token);
        let accepted = self.state.advance(bytes);
        if bytes.is_empty() || accepted < bytes.len() {
            self.state.rollback(accepted)?;
            return Err(refused());
        }
        self.lengths.push(bytes.len());
        Ok(())
    }

    /// Takes back tokens.
    ///
    /// # Errors
    /// More tokens than were committed.
    pub fn rollback(&mut self, tokens: usize) -> Result<(), Error> {
        if tokens > self.lengths.len() {
            return Err(Error::new(
                ErrorKind::State,
                format!("cannot take back {tokens} tokens: {} were committed", self.lengths.len()),
            ));
        }
        let kept = self.lengths.len() - tokens;
        self.state.rollback(self.lengths[kept..].iter().sum())?;
        self.ended &= tokens == 0;
        self.lengths.truncate(kept);
        Ok(())
    }

    /// Whether the whole is a program.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state.is_complete()
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn known(&self, token: TokenId) -> Result<(), Error> {
        if token.index() < self.vocabulary.len() {
            return Ok(());
        }
        let message = format!("token {} is outside the vocabulary of {} tokens", token.0, self.vocabulary.len());
        Err(Error::new(ErrorKind::Vocabulary, message))
    }
}
