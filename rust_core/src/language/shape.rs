//! Shapes: a regular language that the middle must be in, as an automaton over bytes.
//!
//! The free middle carries the automaton's state along: a free state is a place in a line *and* a place in the shape
//! (see `free`). So a token is allowed only if some middle that begins with it has the shape and completes the program.

use crate::error::{Error, ErrorKind};
use crate::ids::ShapeId;
use crate::lexing::automaton::{Automaton, Minimal, Unbuilt};
use crate::limits;

/// The state from which no text of the shape is reached.
const DEAD: ShapeId = ShapeId(u32::MAX);

/// The automaton of a shape.
#[derive(Debug)]
pub struct Shape {
    next: Vec<[ShapeId; 256]>,
    accepts: Vec<bool>,
    /// The states in which a character can end, in which lexemes begin and end.
    boundaries: Vec<ShapeId>,
    /// The place of each state among them.
    places: Vec<Option<usize>>,
}

impl Shape {
    /// The shape of all texts that match a regular expression as a whole.
    ///
    /// # Errors
    /// The expression is invalid, matches nothing, or has too many states.
    pub fn regex(pattern: &str) -> Result<Self, Error> {
        // A pattern that is too long is not repeated in the message.
        let shown: String = pattern.chars().take(100).collect();
        let wrong = |what: String| Error::new(ErrorKind::Shape, format!("shape {shown:?}: {what}"));
        let mut automaton = Automaton::default();
        let label = |matched: Vec<usize>| u16::from(!matched.is_empty());
        let first = automaton.add(&[pattern.into()], limits::SHAPE, label).map_err(|why| match why {
            Unbuilt::Wrong(error) => wrong(reason(&*error)),
            Unbuilt::Start(why) => wrong(why),
            Unbuilt::Large(what, given, limit) => wrong(format!("{what}: {given} is over the limit of {limit}")),
        })?;
        let shape = Self::minimal(&automaton, first).ok_or_else(|| wrong("no text has it".into()))?;
        if shape.next.len() > limits::SHAPE_STATES {
            return Err(wrong(format!("it has over {} states", limits::SHAPE_STATES)));
        }
        Ok(shape)
    }

    /// The shape of all texts of at most `most` lines. Only `\n` breaks a line; no text has another line break (`\r`,
    /// U+2028, U+2029).
    ///
    /// # Errors
    /// No lines, or too many.
    pub fn lines(most: usize) -> Result<Self, Error> {
        if most == 0 || most > limits::SHAPE_LINES {
            let message = format!("a shape has 1 to {} lines, not {most}", limits::SHAPE_LINES);
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let mut automaton = Automaton::default();
        for line in 0..most {
            // A line's own state, and those behind the first two bytes of U+2028 and U+2029 (E2 80 A8, E2 80 A9).
            let own = u32::try_from(3 * line + 1).expect("few lines");
            let mut row = [own; 256];
            row[b'\r' as usize] = 0;
            row[b'\n' as usize] = if line + 1 < most { own + 3 } else { 0 };
            row[0xe2] = own + 1;
            automaton.push(row, 1);
            let mut row = [own; 256];
            row[0x80] = own + 2;
            automaton.push(row, 1);
            let mut row = [own; 256];
            row[0xa8..=0xa9].fill(0);
            automaton.push(row, 1);
        }
        Ok(Self::minimal(&automaton, 1).expect("the empty text has few lines"))
    }

    /// The shape of an automaton's texts from a state on; `None` if there are none.
    fn minimal(automaton: &Automaton, first: u32) -> Option<Self> {
        let Minimal { class_of, class_count, next, labels, state_of } = automaton.minimise();
        debug_assert!(state_of[first as usize] < 2, "the first state is the first one that is not dead");
        if state_of[first as usize] == 0 {
            return None;
        }
        // States are numbered from 0 here, the dead one left out.
        let number = |state: u32| state.checked_sub(1).map_or(DEAD, ShapeId);
        let row = |own: &[u32]| std::array::from_fn(|byte| number(own[class_of[byte] as usize]));
        let mut shape = Self {
            next: next.chunks_exact(class_count).skip(1).map(row).collect(),
            accepts: labels[1..].iter().map(|&label| label != 0).collect(),
            boundaries: Vec::new(),
            places: Vec::new(),
        };
        shape.find_boundaries();
        Some(shape)
    }

    /// Walk whole characters from the first state. A state after a lead byte is left by that character's continuation
    /// bytes.
    fn find_boundaries(&mut self) {
        self.places = vec![None; self.next.len()];
        let mut stack = vec![self.first()];
        while let Some(at) = stack.pop() {
            if self.places[at.index()].is_some() {
                continue;
            }
            self.places[at.index()] = Some(self.boundaries.len());
            self.boundaries.push(at);
            for (lead, rest) in (0..0x80u8).map(|byte| (byte, 0)).chain((0xc2..=0xf4).map(|byte| (byte, follow(byte))))
            {
                let mut layer: Vec<ShapeId> = self.step(at, lead).into_iter().collect();
                for _ in 0..rest {
                    let mut next: Vec<ShapeId> = Vec::new();
                    for &state in &layer {
                        next.extend((0x80..0xc0).filter_map(|byte| self.step(state, byte)));
                    }
                    layer = next;
                    layer.sort_unstable();
                    layer.dedup();
                }
                stack.extend(layer);
            }
        }
    }

    /// The states, all of which can still reach the shape's end.
    pub(crate) fn states(&self) -> impl ExactSizeIterator<Item = ShapeId> + use<> {
        (0..self.next.len()).map(ShapeId::from_index)
    }

    /// The state before any text.
    #[must_use]
    pub fn first(&self) -> ShapeId {
        ShapeId(0)
    }

    /// The state after one byte more; `None` if no text of the shape begins like that.
    #[inline]
    #[must_use]
    pub fn step(&self, state: ShapeId, byte: u8) -> Option<ShapeId> {
        Some(self.next[state.index()][byte as usize]).filter(|&to| to != DEAD)
    }

    /// Return whether a text that ends in a state has the shape.
    #[inline]
    #[must_use]
    pub fn accepts(&self, state: ShapeId) -> bool {
        self.accepts[state.index()]
    }

    /// The states in which a character can end.
    #[must_use]
    pub fn boundaries(&self) -> &[ShapeId] {
        &self.boundaries
    }

    /// The place of a state among them.
    #[inline]
    #[must_use]
    pub fn place(&self, state: ShapeId) -> Option<usize> {
        self.places[state.index()]
    }
}

/// The innermost reason of an error, in one line.
fn reason(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => reason(source),
        None => error.to_string().lines().last().unwrap_or_default().trim().to_string(),
    }
}

/// Bytes that follow a lead byte.
fn follow(lead: u8) -> usize {
    match lead {
        0xf0.. => 3,
        0xe0.. => 2,
        _ => 1,
    }
}
