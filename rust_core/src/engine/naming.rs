//! Symbols in progress whose text may bind or match: which texts they may come to, and where each of them leads.

use crate::chart::left::{NO_SET, Read};
use crate::chart::texts::{CUT, PLAIN, Texts, WILD};
use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::engine::ways::Way;
use crate::ids::{AcceptId, SetId, TextId};
use crate::language::free::Cost;
use crate::language::marks::run;

/// A text that a symbol in progress may come to, and how many bytes of it are still to be written.
type Coming = (TextId, Cost);

impl Engine {
    /// The sets after a way in which the symbol in progress of a branch can go on, each with the least bytes that its text is
    /// known to lack.
    pub(super) fn after_way(&mut self, branch: &Branch, way: &Way) -> Vec<(SetId, Cost)> {
        let Some(accept) = way.accept else { return vec![(branch.set, 0)] };
        let texts = if self.language.has_marks(accept) && self.parser.asks_text(branch.set, branch.state) {
            self.coming(branch, accept, (way.free.is_none()).then_some(way.end))
        } else {
            vec![(PLAIN, 0)]
        };
        let after = texts.into_iter().map(|(text, least)| {
            let after = self.parser.scan(branch.set, Read::Accepted(accept, text));
            (after, least)
        });
        after.filter(|after| after.0 != NO_SET).collect()
    }

    /// The texts that the symbol in progress of a branch may come to as an accept set, in the middle or with the bytes of R up to
    /// `cut`: those that something asks for, and one that stands for all others.
    fn coming(&mut self, branch: &Branch, accept: AcceptId, cut: Option<u32>) -> Vec<Coming> {
        if branch.text == WILD || !Texts::is_known(branch.text) {
            return vec![(branch.text, 0)];
        }
        let language = self.language.clone();
        let marks = language.marks.as_ref().expect("a language with marks");
        let rest: Vec<u8> = self.right.text()[..cut.unwrap_or(0) as usize].to_vec();
        let mut wanted: Vec<TextId> = self.parser.wanted_texts(branch.set);
        let only = marks.only_text(accept);
        if let Some(only) = only {
            wanted.push(self.parser.texts().intern(only));
        }
        let texts = self.parser.texts();
        let length = texts.length(branch.text);
        wanted.retain(|&text| texts.length(text) >= length);
        // A text may be long, and longer than all that are asked for.
        let begin = if wanted.is_empty() { Vec::new() } else { texts.bytes(branch.text) };
        let mut found = Vec::new();
        for text in wanted {
            let bytes = self.parser.texts().bytes(text);
            let Some(inner) = bytes.strip_prefix(&*begin).and_then(|inner| inner.strip_suffix(&*rest)) else {
                continue;
            };
            let state = run(&language.lexer, branch.state, inner);
            let ends = match cut {
                None => language.lexer.accept(state) == accept,
                Some(end) => self.right.lookahead.end(state) == Some((end, accept)),
            };
            if ends {
                found.push((text, inner.len() as Cost));
            }
        }
        if only.is_none() {
            found.push((PLAIN, 0));
            if self.parser.expects(branch.set).binds && self.parser.texts().slots.any_cuts() {
                found.push((CUT, 0));
            }
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

    /// Whether the symbol in progress of a branch, on a loose stack, can become one that has to be the text that is bound.
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
        let begin = self.parser.texts().bytes(branch.text);
        let mut stepped = Vec::new();
        for text in self.parser.wanted_texts(branch.set) {
            let bytes = self.parser.texts().bytes(text);
            let Some(rest) = bytes.strip_prefix(&*begin) else { continue };
            let mut branches = vec![*branch];
            for &byte in rest {
                self.parser.step_all(&branches, byte, &mut stepped);
                std::mem::swap(&mut branches, &mut stepped);
            }
            branches.retain(|after| after.text == text && language.lexer.accepts(after.state));
            if branches.iter().any(|after| self.parser.may_end(after)) {
                return true;
            }
        }
        false
    }
}
