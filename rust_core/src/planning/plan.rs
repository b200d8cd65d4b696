//! Plans: the ending of a middle within a number of tokens.
//!
//! A *plan* is a short completion of a state, in the fewest tokens of the vocabulary that spell it. Its spelling is the
//! canonical one of the search: `x` for a name, `""` for a string. A state lands within n tokens if it has a plan of at
//! most n. The rest of a plan that is followed is the next state's plan, so a middle whose every token was checked ends
//! within its budget.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::ids::TokenId;
use crate::language::spelling::{BracketKind, Spelling};
use crate::masking::vocabulary::Vocabulary;

/// Tokens that complete a middle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Their bytes, joined.
    pub bytes: Vec<u8>,
    /// The tokens in reverse, so that following the plan pops them.
    tokens: Vec<TokenId>,
}

impl Plan {
    /// Spell a text in the fewest tokens, preferring longer tokens first; `None` if no tokens spell it.
    #[must_use]
    pub fn spell(vocabulary: &Vocabulary, bytes: Vec<u8>) -> Option<Self> {
        // For each place: the fewest tokens from there to the end, and the first of them.
        let mut fewest: Vec<Option<(usize, TokenId)>> = vec![None; bytes.len()];
        let mut found = Vec::new();
        for at in (0..bytes.len()).rev() {
            found.clear();
            vocabulary.tokens_along(&bytes[at..], &mut found);
            fewest[at] = found
                .iter()
                .rev()
                .filter_map(|&(length, token)| {
                    let rest = match fewest.get(at + length) {
                        None => 0,
                        Some(after) => after.as_ref()?.0,
                    };
                    Some((1 + rest, token))
                })
                .min_by_key(|&(count, _)| count);
        }
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let token = fewest[at]?.1;
            at += vocabulary.bytes_of(token).len();
            tokens.push(token);
        }
        tokens.reverse();
        Some(Self { bytes, tokens })
    }

    /// The number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Return whether the middle is complete as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The tokens, in order.
    pub fn tokens(&self) -> impl Iterator<Item = TokenId> + '_ {
        self.tokens.iter().rev().copied()
    }

    /// The rest of the plan after a token; `None` if the plan does not begin with it.
    #[must_use]
    pub fn after(&self, vocabulary: &Vocabulary, token: TokenId) -> Option<Self> {
        let (&next, rest) = self.tokens.split_last()?;
        (next == token)
            .then(|| Self { bytes: self.bytes[vocabulary.bytes_of(token).len()..].to_vec(), tokens: rest.to_vec() })
    }

    /// Candidates for a plan after some more text: this plan without the brackets that the text has closed, with
    /// closers of those it has opened. Each is tried alone and after a name or a quote.
    pub(crate) fn adapted(&self, spelling: &Spelling, text: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = &*self.bytes;
        let mut opened: Vec<BracketKind> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            if let Some((kind, length)) = spelling.opens(&text[at..]) {
                opened.push(kind);
                at += length;
            } else if let Some((kind, length)) = spelling.closes(&text[at..]) {
                if opened.last() == Some(&kind) {
                    opened.pop();
                } else if let Some(after) = rest.strip_prefix(spelling.closer(kind)) {
                    rest = after;
                }
                at += length;
            } else {
                at += 1;
            }
        }
        let mut closed: Vec<u8> = opened.iter().rev().flat_map(|&kind| spelling.closer(kind)).copied().collect();
        closed.extend_from_slice(rest);
        let after = |begun: &[u8]| [begun, &*closed].concat();
        let mut found = vec![after(b"")];
        if let Some(placeholder) = &spelling.placeholder {
            found.extend([after(placeholder), after(&[b" ", &**placeholder].concat())]);
        }
        found.extend(spelling.last_quote(text).map(after));
        found.extend(self.bytes.strip_prefix(text).map(<[u8]>::to_vec));
        found
    }
}

/// Return whether a text completes some branches.
pub(crate) fn completes(engine: &mut Engine, branches: &[Branch], text: &[u8]) -> bool {
    let mut before = branches.to_vec();
    let mut after = Vec::new();
    for &byte in text {
        engine.advance(&before, byte, &mut after);
        if after.is_empty() {
            return false;
        }
        std::mem::swap(&mut before, &mut after);
    }
    before.iter().any(|branch| engine.complete(branch))
}

/// Known ending of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A plan.
    Plan(Plan),
    /// Nothing completes the state: it is not viable.
    Never,
    /// No plan was found: the search passed its limit, or no tokens spell its result.
    Unknown,
}

impl Outcome {
    /// Return whether the state ends within `tokens` tokens; `None` if unknown.
    #[must_use]
    pub fn within(&self, tokens: usize) -> Option<bool> {
        match self {
            Self::Plan(plan) => Some(plan.len() <= tokens),
            Self::Never => Some(false),
            Self::Unknown => None,
        }
    }
}
