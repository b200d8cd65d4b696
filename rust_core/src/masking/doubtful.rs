//! Tokens whose masking depends on bound texts: in the class `Point`, `Point(` may begin a constructor.
//!
//! The cached mask of a state is the same for all names. It is computed twice: as if no text equalled the wanted one,
//! and as if all did. Tokens that only the second mask allows are kept beside the mask, and the names at hand settle
//! them. Few of them hold a name, or end with the beginning of one; those are tried byte by byte.

use crate::bits::{insert, ones};
use crate::chart::texts::{PLAIN, Texts, WILD};
use crate::engine::branch::Branch;
use crate::engine::parser::Reads;
use crate::engine::verdicts::Engine;
use crate::ids::{TextId, TokenId};
use crate::language::compiled::Language;
use crate::masking::key::{Doubtful, Open};
use crate::masking::own::OwnMasks;
use crate::masking::plain::Recognizer;
use crate::masking::trie_walk::TrieWalk;
use crate::masking::vocabulary::Vocabulary;
use crate::stop::poll;
use std::sync::Arc;

/// Function that fills a mask of some branches.
type Compute<'a> = dyn FnMut(&mut Engine, &[Branch], &mut [u32]) + 'a;

/// An engine that assumes one text for all. When dropped, also by a stop, it reads the texts again.
struct AssumedText<'a> {
    engine: &'a mut Engine,
}

impl<'a> AssumedText<'a> {
    fn always(engine: &'a mut Engine, text: TextId) -> Self {
        engine.parser.set_reads(Reads::Always(text));
        Self { engine }
    }
}

impl Drop for AssumedText<'_> {
    fn drop(&mut self) {
        self.engine.parser.set_reads(Reads::Text);
    }
}

/// Fill a mask by `compute`, independently of the names, and return the tokens that depend on them.
pub(super) fn compute(
    engine: &mut Engine,
    vocabulary: &Vocabulary,
    branches: &[Branch],
    words: &mut [u32],
    compute: &mut Compute<'_>,
) -> Doubtful {
    if engine.language.marks.is_none() {
        compute(engine, branches, words);
        return None;
    }
    let mut compute_as = |engine: &mut Engine, text: TextId, words: &mut [u32]| {
        let reading = AssumedText::always(engine, text);
        let engine = &mut *reading.engine;
        let mut as_assumed = |branch: &Branch| {
            // A text that begins no name at hand is not one of them.
            let asks = Texts::is_known(branch.text) && engine.parser.asks_text(branch.set, branch.state);
            Branch { text: if asks { text } else { PLAIN }, ..*branch }
        };
        let assumed: Vec<Branch> = branches.iter().map(&mut as_assumed).collect();
        compute(engine, &assumed, words);
        engine.parser.asked()
    };
    let asked = compute_as(engine, PLAIN, words);
    // Only R decides about a text that is bound here, and only about some texts.
    let is_open = asked.matches || asked.binds && !engine.is_unconstrained() && engine.parser.texts().slots.any();
    if !is_open {
        return None;
    }
    let mut all = vec![0; words.len()];
    compute_as(engine, WILD, &mut all);
    let open = all.iter().zip(&*words).enumerate().flat_map(|(index, (&all, &sure))| {
        ones(u64::from(all & !sure)).map(move |bit| TokenId::from_index(32 * index + bit))
    });
    let mut tokens: Vec<TokenId> = open.collect();
    tokens.sort_unstable_by_key(|&token| vocabulary.bytes_of(token));
    let tokens: Box<[TokenId]> = tokens.into();
    let bind = engine.parser.texts().met_wild;
    (!tokens.is_empty()).then(|| Arc::new(Open { tokens, bind }))
}

/// Add to a mask those open tokens that may follow.
pub(super) fn settle(
    engine: &mut Engine,
    own: &mut OwnMasks,
    vocabulary: &Vocabulary,
    branches: &[Branch],
    doubtful: &Doubtful,
    words: &mut [u32],
) {
    let Some(open) = doubtful else { return };
    let settled = own.settled(vocabulary, branches, || {
        let needles = Needles::of(engine, branches);
        let language = engine.language.clone();
        let mut walk = TrieWalk::new(engine, branches, vocabulary.longest());
        let mut found = Vec::new();
        // Tokens are sorted by bytes: the prefix shared with the last one is pushed already, or failed.
        let (mut pushed, mut failed): (&[u8], &[u8]) = (&[], &[]);
        for &token in &open.tokens {
            let bytes = vocabulary.bytes_of(token);
            if !failed.is_empty() && bytes.starts_with(failed) || !(open.bind || needles.may_be_in(&language, bytes)) {
                continue;
            }
            poll();
            let common = pushed.iter().zip(bytes).take_while(|(one, other)| one == other).count();
            walk.pop_to(common);
            let rejected = (common..bytes.len()).find(|&at| !walk.try_push(bytes[at]));
            pushed = &bytes[..rejected.unwrap_or(bytes.len())];
            failed = rejected.map_or(&[], |at| &bytes[..=at]);
            if rejected.is_none() {
                found.push(token);
            }
        }
        found
    });
    settled.iter().for_each(|token| insert(words, token.index()));
}

/// Texts that a token depends on: a name decides only tokens that hold one, or end with the beginning of one.
struct Needles {
    /// Texts read of symbols in progress.
    begun: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
    /// Rests of R that complete a text which the cursor cuts.
    rests: Vec<Vec<u8>>,
}

/// The rests of a text after each of its beginnings with which the text read ends.
fn goes_on<'a>(begun: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    (0..begun.len()).filter_map(move |at| text.strip_prefix(&begun[at..]))
}

impl Needles {
    fn of(engine: &mut Engine, branches: &[Branch]) -> Self {
        let mut names: Vec<TextId> = Vec::new();
        let mut begun = Vec::new();
        for branch in branches {
            names.extend(engine.parser.bound_around(branch.set));
            if Texts::is_known(branch.text) {
                begun.push(engine.parser.texts().bytes(branch.text));
            }
        }
        let texts = engine.parser.texts();
        let mut found: Vec<Vec<u8>> = names.into_iter().map(|name| texts.bytes(name)).collect();
        found.extend(texts.slots.texts().map(<[u8]>::to_vec));
        found.sort_unstable();
        found.dedup();
        let rests = texts.slots.rests().map(<[u8]>::to_vec).collect();
        Self { begun, texts: found, rests }
    }

    fn may_be_in(&self, language: &Language, token: &[u8]) -> bool {
        let agree = |one: &[u8], other: &[u8]| one.iter().zip(other).all(|(one, other)| one == other);
        let Some(marks) = &language.marks else { return false };
        let begins = |at: usize, byte: u8| at == 0 || marks.begins_after(&language.lexer, byte, token[at - 1]);
        self.rests.iter().any(|rest| token.windows(rest.len()).any(|part| part == &**rest))
            || self.texts.iter().any(|text| {
                (0..token.len()).any(|at| token[at] == text[0] && agree(&token[at..], text) && begins(at, text[0]))
                    || self.begun.iter().any(|begun| goes_on(begun, text).any(|rest| agree(token, rest)))
            })
    }
}
