//! R run through the lexer from every state that can be in progress at the cursor, all at once (paper, Fig. 7).
//!
//! Most states die or merge within a few bytes; the survivors are strings and comments.

use crate::ids::{AcceptId, StateId};
use crate::lexing::lexer::{DEAD, Lexer};
use crate::stop::poll;

/// For every DFA state: where a symbol in progress at the cursor ends in R, if it reaches into R at all.
#[derive(Debug)]
pub(crate) struct Lookahead {
    ends: Vec<Option<(u32, AcceptId)>>,
}

/// States that have become one, and what they were at the cursor.
struct Group {
    state: StateId,
    members: Vec<u32>,
}

impl Lookahead {
    /// Runs all states through R.
    #[must_use]
    pub(crate) fn run(lexer: &Lexer, right: &[u8]) -> Self {
        let mut ends = vec![None; lexer.state_count()];
        let mut groups: Vec<Group> = (1..lexer.state_count())
            .map(|state| Group {
                state: StateId::from_index(state),
                members: vec![u32::try_from(state).expect("fits")],
            })
            .collect();
        let mut place: Vec<u32> = vec![u32::MAX; lexer.state_count()];
        for (index, &byte) in right.iter().enumerate() {
            poll();
            let mut stepped: Vec<Group> = Vec::with_capacity(groups.len());
            for group in groups {
                let state = lexer.step(group.state, byte);
                if state == DEAD {
                    continue;
                }
                match place[state.index()] {
                    u32::MAX => {
                        place[state.index()] = u32::try_from(stepped.len()).expect("fits");
                        stepped.push(Group { state, members: group.members });
                    }
                    at => stepped[at as usize].members.extend(group.members),
                }
            }
            for group in &stepped {
                place[group.state.index()] = u32::MAX;
                if lexer.accepts(group.state) {
                    let end = (u32::try_from(index + 1).expect("R fits u32"), lexer.accept(group.state));
                    for &member in &group.members {
                        ends[member as usize] = Some(end);
                    }
                }
            }
            stepped.retain(|group| lexer.extends(group.state));
            groups = stepped;
            if groups.is_empty() {
                break;
            }
        }
        Self { ends }
    }

    /// The longest match, at least one byte into R, of the symbol in progress in a state: its end in R and what it is.
    #[inline]
    #[must_use]
    pub(crate) fn end(&self, state: StateId) -> Option<(u32, AcceptId)> {
        self.ends[state.index()]
    }
}
