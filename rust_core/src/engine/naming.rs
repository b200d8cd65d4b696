//! Symbols in progress whose text may bind or match: the texts that they can become, and the sets after each of them.

use crate::chart::left::{NO_SET, Read};
use crate::chart::texts::{CUT, PLAIN, Texts, WILD};
use crate::engine::branch::Branch;
use crate::engine::continuations::Continuation;
use crate::engine::verdicts::Engine;
use crate::ids::{AcceptId, SetId, TextId};
use crate::language::free::Cost;
use crate::lexing::guards::NO_GUARDS;

/// A text that a symbol in progress can become, and the bytes of it that are still missing.
type Coming = (TextId, Cost);

impl Engine {
    /// Sets after a continuation of a branch's symbol in progress, each with the least bytes that its text lacks.
    pub(super) fn after_continuation(&mut self, branch: &Branch, continuation: &Continuation) -> Vec<(SetId, Cost)> {
        let Some(accept) = continuation.accept else { return vec![(branch.set, 0)] };
        let texts = if self.language.has_marks(accept) && self.parser.asks_text(branch.set, branch.state) {
            self.coming(branch, accept, (continuation.free.is_none()).then_some(continuation.end))
        } else {
            vec![(PLAIN, 0)]
        };
        let after = texts.into_iter().map(|(text, least)| {
            let after = self.parser.scan(branch.set, Read::Accepted(accept, text));
            (after, least)
        });
        after.filter(|after| after.0 != NO_SET).collect()
    }

    /// Texts that a branch's symbol in progress can become as an accept set, in the middle or with the bytes of R up to
    /// `cut`. They are the texts that a rule compares, and one text that stands for all others.
    fn coming(&mut self, branch: &Branch, accept: AcceptId, cut: Option<u32>) -> Vec<Coming> {
        let may_be_cut = self.parser.expects(branch.set).binds && self.parser.texts().slots.any_cuts();
        if !Texts::is_known(branch.text) {
            let cut = (branch.text == PLAIN && may_be_cut).then_some((CUT, 0));
            return std::iter::once((branch.text, 0)).chain(cut).collect();
        }
        let language = self.language.clone();
        let marks = language.marks.as_ref().expect("a language with marks");
        let mut wanted: Vec<TextId> = self.parser.wanted_texts(branch.set);
        let only = marks.only_text(accept);
        let texts = self.parser.texts();
        wanted.extend(only.map(|only| texts.intern(only)));
        let rest = &self.right.text()[..cut.unwrap_or(0) as usize];
        let begun = texts.length(branch.text);
        let from = (branch.state, begun);
        let mut found = Vec::new();
        for text in wanted {
            let Some(written) = texts.length(text).checked_sub(rest.len()).filter(|&written| written >= begun) else {
                continue;
            };
            if !texts.begins(&language.lexer, text, branch.text) {
                continue;
            }
            let state = texts.state_after(&language, text, written, from);
            let ends = match cut {
                None => language.lexer.accept(state) == accept,
                Some(end) => {
                    self.right.lookahead.end(state) == Some((end, accept)) && texts.bytes(text).ends_with(rest)
                }
            };
            if ends {
                found.push((text, (written - begun) as Cost));
            }
        }
        if only.is_none() {
            found.push((PLAIN, 0));
            found.extend(may_be_cut.then_some((CUT, 0)));
        }
        found
    }

    /// A branch whose symbol in progress goes on with the bytes of R up to a position.
    pub(super) fn ended_in_right(&mut self, branch: &Branch, end: u32) -> Branch {
        if !Texts::is_known(branch.text) {
            return *branch;
        }
        let rest = self.right.text()[..end as usize].to_vec();
        Branch { text: self.parser.texts().extended(branch.text, &rest), ..*branch }
    }

    /// Return whether a branch's symbol in progress, on an unconstrained stack, can become one that must equal the
    /// bound text.
    pub(super) fn can_match(&mut self, branch: &Branch) -> bool {
        let language = self.language.clone();
        let Some(marks) = &language.marks else { return false };
        if !self.parser.expects(branch.set).matches || !self.parser.asks_text(branch.set, branch.state) {
            return false;
        }
        if branch.text == WILD {
            let live = language.lexer.live(branch.state).filter(|&accept| marks.are_in(accept));
            let live: Vec<AcceptId> = live.collect();
            return live.into_iter().any(|accept| self.parser.scan(branch.set, Read::Accepted(accept, WILD)) != NO_SET);
        }
        if !Texts::is_known(branch.text) {
            return false;
        }
        let wanted = self.parser.wanted_texts(branch.set);
        let lexer = &language.lexer;
        wanted.into_iter().any(|text| {
            if !self.parser.texts().begins(lexer, text, branch.text) {
                return false;
            }
            if branch.guards == NO_GUARDS {
                let texts = self.parser.texts();
                let (length, from) = (texts.length(text), (branch.state, texts.length(branch.text)));
                let accept = lexer.accept(texts.state_after(&language, text, length, from));
                return marks.are_in(accept) && self.parser.scan(branch.set, Read::Accepted(accept, text)) != NO_SET;
            }
            // A guard may match again on the way.
            let rest = self.parser.texts().bytes(text).split_off(self.parser.texts().length(branch.text));
            let (mut branches, mut stepped) = (vec![*branch], Vec::new());
            for byte in rest {
                self.parser.step_all(&branches, byte, &mut stepped);
                std::mem::swap(&mut branches, &mut stepped);
            }
            branches.retain(|after| after.text == text && lexer.accepts(after.state));
            branches.iter().any(|after| self.parser.may_end(after))
        })
    }
}
