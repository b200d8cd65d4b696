//! Keys of masks: words that distinguish states with different masks.

use crate::chart::texts::Texts;
use crate::engine::branch::{Branch, InLine};
use crate::engine::verdicts::Engine;
use crate::masking::open::Open;
use crate::masking::stack::KnownForms;
use crate::masking::vocabulary::Vocabulary;
use std::sync::Arc;

/// A packed mask, the end tokens left out.
pub(crate) type Mask = Arc<[u32]>;

/// Tokens that a mask leaves open, if there are any.
pub(crate) type Doubtful = Option<Arc<Open>>;

/// A mask, without the tokens that it leaves open.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) mask: Mask,
    pub(crate) doubtful: Doubtful,
}

/// Words that distinguish states with different masks.
pub(crate) type Key = Box<[u32]>;

/// Write the key of a state with unconstrained stacks, whose sets' forms are known.
pub(crate) fn write_unconstrained_key(key: &mut Vec<u32>, engine: &Engine, forms: &KnownForms, branches: &[Branch]) {
    key.clear();
    key.push(forms.generation());
    for branch in branches {
        key.extend([forms.get(branch.set), branch.state.0, branch.depth, u32::from(Texts::is_known(branch.text))]);
        let guards = engine.parser.guard_states(branch.guards);
        key.push(u32::try_from(guards.len()).expect("few guards"));
        key.extend(guards.iter().map(|state| state.0));
        push_line(key, branch.line);
        // The count comes first, so that no two lists of branches have the same words.
        key.push(engine.parser.blocks(branch.indentation));
        engine.parser.for_each_block(branch.indentation, |column| key.extend([column.wide, column.narrow]));
    }
}

/// The key of a constrained state, in its own session.
pub(crate) fn own_key(vocabulary: &Vocabulary, branches: &[Branch]) -> Key {
    let print = vocabulary.fingerprint();
    let mut key = Vec::with_capacity(16);
    key.extend([
        branches.first().map_or(0, |branch| branch.at.0),
        (print & 0xffff_ffff) as u32,
        (print >> 32 & 0xffff_ffff) as u32,
        (print >> 64 & 0xffff_ffff) as u32,
    ]);
    for branch in branches {
        key.extend([branch.set.0, branch.state.0, branch.guards.0, branch.depth, branch.indentation.0]);
        key.push(u32::from(Texts::is_known(branch.text)));
        push_line(&mut key, branch.line);
    }
    key.into()
}

/// Add the place of a branch in its line to a key.
fn push_line(key: &mut Vec<u32>, line: InLine) {
    match line {
        InLine::Middle => key.push(0),
        InLine::Start { column, kept } => {
            key.extend([if kept.is_some() { 2 } else { 1 }, column.wide, column.narrow]);
            key.extend(kept.into_iter().flat_map(|kept| [kept.wide, kept.narrow]));
        }
    }
}
