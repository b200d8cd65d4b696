//! Landing: ending a middle in a few tokens. Known plans are tried first, then searches, then whole lines.

use crate::bits::{contains, remove};
use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::limits;
use crate::masking::plain;
use crate::masking::trie_walk::TrieWalk;
use crate::masking::vocabulary::Vocabulary;
use crate::planning::plan::{self, Outcome, Plan};
use crate::planning::shared::SharedSearch;
use crate::planning::{lines, short, shortest};
use rustc_hash::FxHashMap;

/// Parameters of the search for a plan.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The tokens.
    pub vocabulary: &'a Vocabulary,
    /// Plans of other states, tried first.
    pub hints: &'a [&'a Plan],
    /// Texts tried next.
    pub tries: &'a [Vec<u8>],
    /// Tokens of a plan that suffices, though a shorter one may exist.
    pub enough: usize,
    /// States to look at in one search.
    pub most: usize,
}

/// Find an ending of a middle: the first hint or text to try that completes it in at most `enough` tokens, or else a
/// plan from a search.
pub(crate) fn land(engine: &mut Engine, branches: &[Branch], search: &Search<'_>) -> Outcome {
    let mark = engine.mark();
    let found = land_knowing(engine, branches, search, &mut SharedSearch::default());
    engine.truncate(mark);
    found
}

/// Find an ending with shared knowledge. The sets that are made stay.
fn land_knowing(engine: &mut Engine, branches: &[Branch], search: &Search<'_>, known: &mut SharedSearch) -> Outcome {
    let &Search { vocabulary, hints, tries, enough, most } = search;
    if branches.is_empty() {
        return Outcome::Never;
    }
    let hint = hints.iter().find(|hint| hint.len() <= enough && plan::completes(engine, branches, &hint.bytes));
    let mut found = hint.map(|&hint| hint.clone());
    let mut too_long = None;
    if found.is_none() {
        let tried = tries.iter().filter(|text| plan::completes(engine, branches, text));
        let mut plans = tried.filter_map(|text| Plan::spell(vocabulary, text.clone()));
        too_long = plans.next();
        found = too_long.take_if(|plan| plan.len() <= enough).or_else(|| plans.find(|plan| plan.len() <= enough));
    }
    if found.is_none() {
        let most = if too_long.is_some() { most.min(limits::SHORTER_EXPANSIONS) } else { most };
        let text = short::short_completion(engine, branches, most, known);
        found = text.ok().flatten().and_then(|text| Plan::spell(vocabulary, text)).or(too_long);
    }
    if found.is_none() && (most >= limits::LATER_EXPANSIONS || enough >= limits::SCAFFOLD_TOKENS) {
        found = lines::complete_by_lines(engine, branches, most, known).and_then(|text| Plan::spell(vocabulary, text));
    }
    if found.is_none() {
        let spelling = engine.language.spelling.clone();
        let comment = spelling.line_comments.iter().find(|comment| plan::completes(engine, branches, comment));
        found = comment.and_then(|comment| Plan::spell(vocabulary, comment.to_vec()));
    }
    if found.is_none() && most >= limits::LATER_EXPANSIONS {
        // By bytes a search goes straight to the needed text, however long it is.
        let text = shortest::shortest_completion(engine, branches, limits::LAST_EXPANSIONS);
        found = text.ok().flatten().and_then(|text| Plan::spell(vocabulary, text));
    }
    // A completion of a viable state exists, but may need more steps, or words with other tokens.
    found.map_or(Outcome::Unknown, Outcome::Plan)
}

/// Return whether the text so far is known to end within `left` tokens. Plans that show it move to the front of the
/// hints.
fn lands(
    walk: &mut TrieWalk<'_>,
    vocabulary: &Vocabulary,
    hints: &mut Vec<Plan>,
    left: usize,
    known: &mut SharedSearch,
    most_sets: usize,
) -> bool {
    let branches = walk.branches().to_vec();
    let tried: Vec<&Plan> = hints.iter().collect();
    let most = limits::landing_expansions(left);
    let search = Search { vocabulary, hints: &tried, tries: &[], enough: left, most };
    let engine = walk.engine();
    let mark = engine.mark();
    let found = land_knowing(engine, &branches, &search, known);
    if engine.parser.set_count() > most_sets {
        // From here on searches share only the words.
        engine.truncate(mark);
        *known = known.of_words();
    }
    match found {
        Outcome::Plan(plan) if plan.len() <= left => {
            hints.retain(|hint| *hint != plan);
            hints.insert(0, plan);
            hints.truncate(limits::LANDING_HINTS);
            true
        }
        _ => false,
    }
}

/// Remove from a packed mask the tokens after which the middle is not known to end within `left` more tokens, and
/// return how many. The mask belongs to these branches, and `plan` is one of their plans.
pub(crate) fn restrict(
    engine: &mut Engine,
    branches: &[Branch],
    vocabulary: &Vocabulary,
    plan: Option<&Plan>,
    left: usize,
    words: &mut [u32],
) -> usize {
    restrict_sharing(engine, branches, (vocabulary, plan), left, words, limits::KNOWN_SETS)
}

/// Restrict a mask where searches share at most `shared` sets.
pub(super) fn restrict_sharing(
    engine: &mut Engine,
    branches: &[Branch],
    (vocabulary, plan): (&Vocabulary, Option<&Plan>),
    left: usize,
    words: &mut [u32],
    shared: usize,
) -> usize {
    let mark = engine.mark();
    let most_sets = engine.parser.set_count() + shared;
    let mut walk = TrieWalk::new(engine, branches, vocabulary.longest());
    let mut answers: FxHashMap<Box<[Branch]>, bool> = FxHashMap::default();
    let mut known = SharedSearch::default();
    let mut hints: Vec<Plan> = plan.into_iter().cloned().collect();
    let mut refused = 0;
    plain::walk(&mut walk, vocabulary, |walk, node| {
        for &token in vocabulary.ending(node) {
            if !contains(words, token.index()) {
                continue;
            }
            let follows = || plan?.after(vocabulary, token);
            let lands = follows().is_some_and(|rest| rest.len() <= left)
                || *answers
                    .entry(walk.branches().into())
                    .or_insert_with(|| lands(walk, vocabulary, &mut hints, left, &mut known, most_sets));
            if !lands {
                remove(words, token.index());
                refused += 1;
            }
        }
    });
    drop(walk);
    engine.truncate(mark);
    refused
}
