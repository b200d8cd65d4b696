//! Forms of parse stacks, on which masks depend where R puts no constraint.
//!
//! The form of a set is its items, with the forms of their origins in place of the origins. Sets of different sessions,
//! or at different places of one text, have one form iff their stacks are equal up to the names of their sets.

use crate::chart::left::FIRST_SET;
use crate::engine::verdicts::Engine;
use crate::ids::{DotId, SetId};
use crate::limits;
use crate::stop::poll;
use rustc_hash::FxHashMap;

const UNKNOWN: u32 = u32::MAX;

/// Interned forms, for all sessions. Their numbers hold for one generation.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    ids: FxHashMap<Box<[u32]>, u32>,
    generation: u32,
}

impl Forms {
    /// Begin a new generation if there are too many.
    pub(crate) fn make_room(&mut self) {
        if self.ids.len() > limits::STACK_FORMS {
            self.ids = FxHashMap::default();
            self.generation += 1;
        }
    }
}

/// Known forms of one engine's sets.
#[derive(Debug, Default)]
pub(crate) struct KnownForms {
    /// Id of the masks that the forms belong to, and the generation.
    of: u64,
    generation: u32,
    forms: Vec<u32>,
}

impl KnownForms {
    /// Forget the sets past a size of the chart.
    pub(crate) fn truncate(&mut self, sets: usize) {
        self.forms.truncate(sets);
    }

    /// Return whether the form of a set is known for some masks.
    pub(crate) fn knows(&self, masks: u64, set: SetId) -> bool {
        self.of == masks && self.forms.get(set.index()).is_some_and(|&form| form != UNKNOWN)
    }

    /// The form of a set that is known.
    pub(crate) fn get(&self, set: SetId) -> u32 {
        self.forms[set.index()]
    }

    /// The generation of the forms that are known.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Find out the forms of some sets, for some masks.
    pub(crate) fn learn(&mut self, engine: &Engine, masks: u64, forms: &mut Forms, sets: impl Iterator<Item = SetId>) {
        forms.make_room();
        if self.of != masks || self.generation != forms.generation {
            *self = Self { of: masks, generation: forms.generation, forms: vec![0] };
        }
        sets.for_each(|set| self.find(engine, forms, set));
    }

    /// Find the form of a set. Origins are older than the sets that refer to them, so missing ones are found first.
    fn find(&mut self, engine: &Engine, forms: &mut Forms, set: SetId) {
        debug_assert_eq!(self.forms[FIRST_SET.index()], 0, "the first set is a form of its own");
        if self.forms.len() <= set.index() {
            self.forms.resize(set.index() + 1, UNKNOWN);
        }
        let mut stack = vec![set];
        while let Some(&at) = stack.last() {
            poll();
            if self.forms[at.index()] != UNKNOWN {
                stack.pop();
                continue;
            }
            let before = stack.len();
            let source = engine.parser.set(at);
            stack.extend(source.items.iter().map(|item| item.origin).filter(|at| self.forms[at.index()] == UNKNOWN));
            if stack.len() > before {
                continue;
            }
            let mut key = Vec::with_capacity(2 * source.items.len() + 1);
            key.push(u32::from(source.accepts));
            let marks = engine.language.marks.as_ref();
            let dot = |dot: DotId| marks.map_or(dot, |marks| marks.first(dot)).0;
            key.extend(source.items.iter().flat_map(|item| [dot(item.dot), self.forms[item.origin.index()]]));
            // A session's items are ordered by set ids, on which forms must not depend.
            sort_pairs(&mut key[1..]);
            let fresh = u32::try_from(forms.ids.len() + 1).expect("form count fits u32");
            self.forms[at.index()] = *forms.ids.entry(key.into()).or_insert(fresh);
        }
    }
}

fn sort_pairs(words: &mut [u32]) {
    let mut pairs: Vec<[u32; 2]> = words.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    pairs.sort_unstable();
    for (place, pair) in words.chunks_exact_mut(2).zip(pairs) {
        place.copy_from_slice(&pair);
    }
}
