//! Tokens whose masking depends on bound texts: in the class `Point`, `Point(` may begin a constructor.
//!
//! The cached mask of a state is the same for all names. It is computed twice: as if no text equalled the wanted one,
//! and as if all did. Tokens that only the second mask allows are kept beside the mask, and the names at hand settle
//! them. Few of them hold a name, or end with the beginning of one; those are tried byte by byte. Where the symbol in
//! progress is the whole wanted name, many more may follow; they are the same for all names, and found once.

use crate::bits::{insert, ones};
use crate::chart::texts::{PLAIN, Texts, WILD};
use crate::engine::branch::Branch;
use crate::engine::parser::Reads;
use crate::engine::verdicts::Engine;
use crate::ids::{TextId, TokenId};
use crate::language::compiled::Language;
use crate::masking::key::Doubtful;
use crate::masking::open::{Open, OpenTokens};
use crate::masking::own::OwnMasks;
use crate::masking::plain::Recognizer;
use crate::masking::trie_walk::TrieWalk;
use crate::masking::vocabulary::Vocabulary;
use crate::stop::poll;

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
) -> Option<Open> {
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
    let tokens: Vec<TokenId> = open.collect();
    let bind = engine.parser.texts().met_wild;
    (!tokens.is_empty()).then(|| Open::new(OpenTokens::new(tokens, vocabulary), bind))
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
        let tokens = &open.tokens;
        let needles = Needles::of(engine, branches, vocabulary.longest());
        let mut found;
        match if open.bind { Met::Any } else { needles.met() } {
            Met::Any => found = following(engine, vocabulary, branches, tokens, &tokens.places()),
            Met::Texts => {
                let places = needles.places(&engine.language, vocabulary, tokens);
                found = following(engine, vocabulary, branches, tokens, &places);
            }
            Met::Whole => {
                let places = needles.places(&engine.language, vocabulary, tokens);
                found = following(engine, vocabulary, branches, tokens, &places);
                let ended = open.ended(|| following_whole(engine, vocabulary, branches, tokens));
                found.extend(ended.iter().filter(|place| places.binary_search(place).is_err()));
            }
        }
        found.into_iter().map(|place| tokens.ids()[place as usize]).collect()
    });
    settled.iter().for_each(|token| insert(words, token.index()));
}

/// Those of some open tokens, by ascending place, that may follow.
fn following(
    engine: &mut Engine,
    vocabulary: &Vocabulary,
    branches: &[Branch],
    tokens: &OpenTokens,
    places: &[u32],
) -> Vec<u32> {
    let bytes_at = |place: u32| vocabulary.bytes_of(tokens.ids()[place as usize]);
    let mut walk = TrieWalk::new(engine, branches, vocabulary.longest());
    let mut found = Vec::new();
    // Tokens are sorted by bytes: the prefix shared with the last one is pushed already, or failed.
    let mut pushed: &[u8] = &[];
    let mut at = 0;
    while let Some(&place) = places.get(at) {
        poll();
        let bytes = bytes_at(place);
        let common = pushed.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        walk.pop_to(common);
        let rejected = (common..bytes.len()).find(|&at| !walk.try_push(bytes[at]));
        pushed = &bytes[..rejected.unwrap_or(bytes.len())];
        at += 1;
        match rejected {
            None => found.push(place),
            Some(last) => at += places[at..].partition_point(|&place| bytes_at(place).starts_with(&bytes[..=last])),
        }
    }
    found
}

/// Open tokens that may follow where the symbol in progress is the wanted text and ends before them, if no later text
/// is a wanted one.
fn following_whole(engine: &mut Engine, vocabulary: &Vocabulary, branches: &[Branch], tokens: &OpenTokens) -> Vec<u32> {
    let reading = AssumedText::always(engine, PLAIN);
    let engine = &mut *reading.engine;
    let mut as_whole = |branch: &Branch| {
        let asks = Texts::is_known(branch.text) && engine.parser.asks_text(branch.set, branch.state);
        Branch { text: if asks { WILD } else { PLAIN }, ..*branch }
    };
    let whole: Vec<Branch> = branches.iter().map(&mut as_whole).collect();
    following(engine, vocabulary, &whole, tokens, &tokens.places())
}

/// Open tokens that depend on the texts at hand.
enum Met {
    /// Those that hold a text, or end with the beginning of one.
    Texts,
    /// Those as well before which the symbol in progress is the wanted text and ends. They are the same for all names.
    Whole,
    /// Any token.
    Any,
}

/// Texts that a token depends on: a name decides only tokens that hold one, or end with the beginning of one.
struct Needles {
    /// Texts read of symbols in progress.
    begun: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
    /// Rests of R that complete a text which the cursor cuts.
    rests: Vec<Vec<u8>>,
    /// True if each symbol in progress that must equal a text is that text already, whatever it is.
    is_whole: bool,
}

/// The rests of a text after each of its beginnings with which the text read ends, and the number of bytes before each.
fn goes_on<'a>(begun: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
    (0..begun.len()).filter_map(move |at| Some((at, text.strip_prefix(&begun[at..])?)))
}

/// Return whether a branch reaches no limit within some bytes.
fn is_below_limits(engine: &Engine, branch: &Branch, bytes: usize) -> bool {
    let (limits, more) = (engine.language.limits, u32::try_from(bytes).unwrap_or(u32::MAX));
    let blocks = engine.parser.blocks(branch.indentation);
    branch.depth.saturating_add(more) < limits.brackets && blocks.saturating_add(more) < limits.blocks
}

impl Needles {
    fn of(engine: &mut Engine, branches: &[Branch], longest: usize) -> Self {
        let mut names: Vec<TextId> = Vec::new();
        let mut begun = Vec::new();
        // At a limit, R is asked even where it puts no constraint.
        let is_free =
            engine.is_unconstrained() && branches.iter().all(|branch| is_below_limits(engine, branch, longest));
        let mut is_whole = is_free;
        for branch in branches {
            names.extend(engine.parser.bound_around(branch.set));
            if Texts::is_known(branch.text) {
                begun.push(engine.parser.texts().bytes(branch.text));
                is_whole &= !engine.parser.asks_text(branch.set, branch.state)
                    || engine.parser.wants_only(branch.set, branch.text);
            }
        }
        let texts = engine.parser.texts();
        let mut found: Vec<Vec<u8>> = names.into_iter().map(|name| texts.bytes(name)).collect();
        let mut rests = Vec::new();
        if !is_free {
            // Slots distinguish texts for R alone.
            found.extend(texts.slots.texts().map(<[u8]>::to_vec));
            rests.extend(texts.slots.rests().map(<[u8]>::to_vec));
        }
        found.sort_unstable();
        found.dedup();
        Self { begun, texts: found, rests, is_whole }
    }

    /// The rests of the texts after what has been read of them, and the number of other bytes read before.
    fn rests_of_texts(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.texts.iter().flat_map(|text| self.begun.iter().flat_map(|begun| goes_on(begun, text)))
    }

    fn met(&self) -> Met {
        let whole = || self.rests_of_texts().filter(|(_, rest)| rest.is_empty());
        match whole().next() {
            None => Met::Texts,
            Some(_) if self.is_whole && whole().all(|(before, _)| before == 0) => Met::Whole,
            Some(_) => Met::Any,
        }
    }

    /// Places of the open tokens that hold a text or end with the beginning of one, ascending.
    fn places(&self, language: &Language, vocabulary: &Vocabulary, tokens: &OpenTokens) -> Vec<u32> {
        let mut places = Vec::new();
        for text in &self.texts {
            tokens.add_beginning(vocabulary, text, &mut places);
            tokens.add_inner(language, vocabulary, text, &mut places);
        }
        for (_, rest) in self.rests_of_texts().filter(|(_, rest)| !rest.is_empty()) {
            tokens.add_beginning(vocabulary, rest, &mut places);
        }
        for rest in &self.rests {
            tokens.add_holding(vocabulary, rest, &mut places);
        }
        places.sort_unstable();
        places.dedup();
        places
    }
}
