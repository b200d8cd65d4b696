//! A* search for a text that leads from some branches to a goal, over given steps and bounds.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::error::Error;
use crate::language::free::{Cost, INFINITE};
use crate::stop::poll;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One way on from a branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Index of the text that leads there.
    pub text: usize,
    /// A branch after it.
    pub after: Branch,
    /// Cost of the step.
    pub cost: u32,
}

/// Steps and bounds of a search.
pub(crate) trait Steps {
    /// Data that a search keeps with a branch.
    type Note: Clone + Default;

    /// Return whether a branch with this note is expanded. It is called once for each branch, so that a search can
    /// limit branches of a kind.
    fn admits(&mut self, note: &Self::Note) -> bool;

    /// Add some steps from a branch: those by the texts from `from` on, up to the returned text. `None` means that no
    /// texts are left.
    fn each(&mut self, engine: &mut Engine, branch: &Branch, from: usize, out: &mut Vec<Step>) -> Option<usize>;

    /// The bytes of a step.
    fn text(&self, text: usize) -> &[u8];

    /// The note after a step.
    fn note(&mut self, engine: &Engine, before: (&Branch, &Self::Note), step: &Step) -> Self::Note;

    /// A bound on the cost from a branch to a goal. If it is never more than the truth, the result is cheapest.
    fn bound(&self, engine: &mut Engine, branch: &Branch, note: &Self::Note) -> Cost;

    /// Return whether a branch is a goal.
    fn is_goal(&self, engine: &mut Engine, branch: &Branch) -> bool;
}

/// Find a text that leads to a goal; `None` if the steps lead to none.
///
/// Once a step is as good as the bound of its branch, the branch's other steps wait. If bounds are admissible, none of
/// them is better. They come up where the first of them would have come up, so among results of equal cost the same one
/// is found.
///
/// # Errors
/// More than `most` states were looked at.
pub(crate) fn search<S: Steps>(
    engine: &mut Engine,
    branches: &[Branch],
    steps: &mut S,
    most: usize,
) -> Result<Option<Vec<u8>>, Error> {
    let mut found: Vec<Found<S::Note>> = Vec::new();
    let mut best: FxHashMap<Branch, u32> = FxHashMap::default();
    let mut queue = BinaryHeap::new();
    let mut order = 0..;
    let mut place = |expected: Cost, depth: u32| (Reverse(expected), depth, Reverse(order.next()));
    for &branch in branches {
        let note = S::Note::default();
        let bound = steps.bound(engine, &branch, &note);
        if bound != INFINITE && best.insert(branch, 0).is_none() {
            found.push(Found { branch, note, by: None });
            queue.push(Waiting { place: place(bound, 0), index: found.len() - 1, cost: 0, from: 0 });
        }
    }
    let mut expansions = 0;
    let mut next = Vec::new();
    while let Some(Waiting { place: (Reverse(expected), ..), index, cost, from }) = queue.pop() {
        poll();
        let branch = found[index].branch;
        if best[&branch] < cost {
            continue;
        }
        if from == 0 {
            if steps.is_goal(engine, &branch) {
                return Ok(Some(spell(&found, steps, index)));
            }
            if !steps.admits(&found[index].note) {
                continue;
            }
            expansions += 1;
            if expansions > most {
                return Err(Error::search("states looked at for a shortest completion", expansions, most));
            }
        }
        // Partial expansion (Yoshizumi et al. 2000): once a step costs no more than this branch's bound promised, no
        // other step can be better. The branch goes back into the queue at that step's place, with the text to
        // continue from.
        let mut more = Some(from);
        let mut as_expected = None;
        while let (Some(from), None) = (more, as_expected) {
            next.clear();
            more = steps.each(engine, &branch, from, &mut next);
            for step in &next {
                poll(); // a bound takes microseconds
                let cost = cost + step.cost;
                if best.get(&step.after).is_some_and(|&known| known <= cost) {
                    continue;
                }
                let note = steps.note(engine, (&branch, &found[index].note), step);
                let bound = steps.bound(engine, &step.after, &note);
                if bound == INFINITE {
                    continue;
                }
                best.insert(step.after, cost);
                found.push(Found { branch: step.after, note, by: Some((index, step.text)) });
                let after = cost.saturating_add(bound);
                queue.push(Waiting { place: place(after, cost), index: found.len() - 1, cost, from: 0 });
                if after <= expected {
                    as_expected = Some(cost);
                }
            }
        }
        if let (Some(from), Some(depth)) = (more, as_expected) {
            queue.push(Waiting { place: place(expected, depth), index, cost, from });
        }
    }
    Ok(None)
}

/// Expected total cost of a branch, cost so far, and order of discovery.
type Place = (Reverse<Cost>, u32, Reverse<Option<usize>>);

/// A branch that waits to be expanded, or for its other steps.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    /// The greatest is popped first; no two are equal.
    place: Place,
    /// Index into the found branches.
    index: usize,
    /// Cost so far.
    cost: u32,
    /// The first text not yet tried.
    from: usize,
}

/// A found branch and its predecessor.
struct Found<N> {
    branch: Branch,
    note: N,
    /// The branch it was found from, and the text of the step.
    by: Option<(usize, usize)>,
}

fn spell<S: Steps>(found: &[Found<S::Note>], steps: &S, mut index: usize) -> Vec<u8> {
    let mut parts = Vec::new();
    while let Some((parent, text)) = found[index].by {
        parts.push(steps.text(text));
        index = parent;
    }
    parts.reverse();
    parts.concat()
}
