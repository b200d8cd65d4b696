//! Lookahead: R run through the lexer from every state that can be in progress at the cursor, all at once (paper, Fig.
//! 7).
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

/// States that have merged, and their states at the cursor.
struct Group {
    state: StateId,
    members: Vec<u32>,
    /// Last end of the symbol, as far as it is not recorded per member: a comment ends after each of its bytes.
    end: Option<(u32, AcceptId)>,
}

impl Group {
    /// Write the end of the symbol to all members.
    fn tell(&mut self, ends: &mut [Option<(u32, AcceptId)>]) {
        if let Some(end) = self.end.take() {
            for &member in &self.members {
                ends[member as usize] = Some(end);
            }
        }
    }
}

impl Lookahead {
    /// Run all states through R.
    #[must_use]
    pub(crate) fn run(lexer: &Lexer, right: &[u8]) -> Self {
        let mut ends = vec![None; lexer.state_count()];
        let mut groups: Vec<Group> = Vec::new();
        let mut place: Vec<u32> = vec![u32::MAX; lexer.state_count()];
        for (index, &byte) in right.iter().enumerate() {
            poll();
            if index == 0 {
                Self::begin(lexer, byte, &mut groups, &mut place);
            }
            let first = if index == 0 { groups.len() } else { 0 };
            let mut left = first;
            for at in first..groups.len() {
                let state = lexer.step(groups[at].state, byte);
                if state == DEAD {
                    groups[at].tell(&mut ends);
                    continue;
                }
                match place[state.index()] {
                    u32::MAX => {
                        place[state.index()] = u32::try_from(left).expect("fits");
                        groups.swap(left, at);
                        groups[left].state = state;
                        left += 1;
                    }
                    same => {
                        groups[at].tell(&mut ends);
                        let members = std::mem::take(&mut groups[at].members);
                        groups[same as usize].tell(&mut ends);
                        groups[same as usize].members.extend(members);
                    }
                }
            }
            groups.truncate(left);
            for group in &mut groups {
                place[group.state.index()] = u32::MAX;
                if lexer.accepts(group.state) {
                    group.end = Some((u32::try_from(index + 1).expect("R fits u32"), lexer.accept(group.state)));
                }
            }
            groups.retain_mut(|group| {
                let goes_on = lexer.extends(group.state);
                if !goes_on {
                    group.tell(&mut ends);
                }
                goes_on
            });
            if groups.is_empty() {
                break;
            }
        }
        groups.iter_mut().for_each(|group| group.tell(&mut ends));
        Self { ends }
    }

    /// The groups after R's first byte, which few states live to see.
    fn begin(lexer: &Lexer, byte: u8, groups: &mut Vec<Group>, place: &mut [u32]) {
        for member in 1..lexer.state_count() {
            let state = lexer.step(StateId::from_index(member), byte);
            if state == DEAD {
                continue;
            }
            let at = &mut place[state.index()];
            if *at == u32::MAX {
                *at = u32::try_from(groups.len()).expect("fits");
                groups.push(Group { state, members: Vec::new(), end: None });
            }
            groups[*at as usize].members.push(u32::try_from(member).expect("fits"));
        }
    }

    /// The longest match of a symbol in progress that ends at least one byte into R: its end and its accept set.
    #[inline]
    #[must_use]
    pub(crate) fn end(&self, state: StateId) -> Option<(u32, AcceptId)> {
        self.ends[state.index()]
    }
}
