//! Parts of a walk, kept for other stacks (see `parts`).

use crate::chart::texts::PLAIN;
use crate::ids::{AcceptId, SpanId};
use crate::masking::parts::{Exit, FEW_EDGES, Found, Part, Parts, Record, Start, take_words};
use crate::masking::walk::{Allowed, Position, Walk};
use crate::stop::poll;

impl Walk<'_> {
    /// Add the tokens of the nodes after an edge, outside of the part in progress.
    pub(super) fn leave_part(&mut self, index: usize, position: Position) {
        let Some(mut record) = self.record.take() else {
            self.leave(index, position);
            return;
        };
        record.exits.push(Exit { path: record.path.as_slice().into(), edge: index });
        let paused = self.engine.parser.record(false);
        std::mem::swap(&mut self.reached, &mut self.reached_aside);
        self.leave(index, position);
        std::mem::swap(&mut self.reached, &mut self.reached_aside);
        self.engine.parser.resume(paused);
        self.record = Some(record);
    }

    /// Return whether a part that begins at a node and a place depends on the sets that it asks alone.
    pub(super) fn is_part(&self, node: SpanId, position: Position) -> bool {
        self.record.is_none()
            && self.spanner.edges(node).len() > FEW_EDGES
            && !self.engine.parser.expects(position.set).any()
            && !self.is_marked
            && self.text == PLAIN
    }

    /// Follow a node, as [`Walk::follow`] does, by a part that is known or is kept for other stacks.
    pub(super) fn follow_part(&mut self, parts: &Parts, node: SpanId, allowed: &Allowed, position: Position) {
        let start = Start { node, depth: position.depth, least: self.engine.parser.least_brackets() };
        match parts.find(&mut self.engine.parser, &mut self.met, start, position.set) {
            Found::Part(part) => return self.repeat(&part, position),
            Found::Nothing => return self.follow(node, allowed, position),
            Found::Beginning => {}
        }
        let mut words = std::mem::take(&mut self.scratch);
        words.resize(self.words.len(), 0);
        let (rest, exits, path) = Default::default();
        self.record = Some(Record { words, rest, exits, path, is_pure: true });
        let outside = std::mem::take(&mut self.reached);
        let aside = std::mem::replace(&mut self.reached_aside, outside);
        let paused = self.engine.parser.record(true);
        let made = self.engine.parser.set_count();
        self.follow(node, allowed, position);
        let mut asked = self.engine.parser.resume(paused);
        self.reached = std::mem::replace(&mut self.reached_aside, aside);
        let Some(mut record) = self.record.take() else { return };
        let words = take_words(&mut record.words);
        self.scratch = record.words;
        words.iter().for_each(|&(index, bits)| self.words[index as usize] |= bits);
        self.rest.tokens.extend(&record.rest);
        // The items of a set that the part made follow from the answers of older ones.
        asked.retain(|question| question.0.index() < made);
        if record.is_pure {
            let part = Part { words, rest: record.rest.into(), exits: record.exits.into() };
            parts.keep(&mut self.engine.parser, &mut self.met, (start, position.set), &asked, part);
        }
    }

    /// Add the tokens of a known part, and go on at its exits.
    fn repeat(&mut self, part: &Part, position: Position) {
        part.words.iter().for_each(|&(index, bits)| self.words[index as usize] |= bits);
        self.rest.tokens.extend(&part.rest);
        let lexemes = self.lexemes;
        // Places along the path of the last exit. Paths come in the order of the walk, so most begin alike.
        let mut places: Vec<(AcceptId, Position)> = Vec::new();
        for exit in &part.exits {
            poll();
            let common = places.iter().zip(&exit.path).take_while(|(place, accept)| place.0 == **accept).count();
            places.truncate(common);
            for &accept in &exit.path[common..] {
                let last = places.last().map_or(position, |place| place.1);
                places.push((accept, self.read(last, accept)));
            }
            let last = places.last().map_or(position, |place| place.1);
            self.lexemes = lexemes + exit.path.len() + 1;
            self.leave(exit.edge, last);
        }
        self.lexemes = lexemes;
    }

    /// The mask that tokens are added to.
    #[inline(always)]
    pub(super) fn target(&mut self) -> &mut [u32] {
        match &mut self.record {
            Some(record) => &mut record.words,
            None => self.words,
        }
    }

    /// Record that the part in progress depends on more than the sets that it asks.
    pub(super) fn note_impure(&mut self) {
        if let Some(record) = &mut self.record {
            record.is_pure = false;
        }
    }
}
