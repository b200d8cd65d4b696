//! Shapes: a regular language that the middle must be in, as an automaton over bytes.
//!
//! The free middle then carries the automaton's state along: a free state is where in a line, *and* where in the shape. All
//! that asks what a middle can still become asks it of both at once (see `free`), so a token is allowed only if some middle
//! that begins with it has the shape and completes the program.

use crate::error::{Error, ErrorKind};
use crate::limits;
use regex_automata::dfa::{Automaton, dense};
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind};
use rustc_hash::FxHashMap;

/// A state of a shape's automaton; only those from which the shape can still be met have a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

/// No middle of the shape begins like that.
const DEAD: u32 = u32::MAX;

/// The automaton of a shape.
#[derive(Debug)]
pub struct Shape {
    next: Vec<[u32; 256]>,
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
    /// The expression is no such, matches nothing, or has too many states.
    pub fn regex(pattern: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::new(ErrorKind::Shape, format!("shape {pattern:?}: {what}"));
        let config = dense::Config::new()
            .match_kind(MatchKind::All)
            .start_kind(regex_automata::dfa::StartKind::Anchored)
            .minimize(true)
            .dfa_size_limit(Some(limits::SHAPE_BYTES))
            .determinize_size_limit(Some(limits::SHAPE_BYTES));
        let dfa = dense::Builder::new()
            .configure(config)
            .syntax(syntax::Config::new().dot_matches_new_line(false))
            .build(pattern)
            .map_err(|error| wrong(reason(&error)))?;
        let first =
            dfa.start_state(&start::Config::new().anchored(Anchored::Yes)).map_err(|error| wrong(error.to_string()))?;
        let mut ids = FxHashMap::default();
        let mut states = vec![first];
        ids.insert(first, 0u32);
        let mut next: Vec<[u32; 256]> = Vec::new();
        let mut accepts = Vec::new();
        while next.len() < states.len() {
            let state = states[next.len()];
            let mut row = [DEAD; 256];
            for byte in 0..=255u8 {
                let target = dfa.next_state(state, byte);
                if dfa.is_dead_state(target) {
                    continue;
                }
                row[byte as usize] = *ids.entry(target).or_insert_with(|| {
                    states.push(target);
                    u32::try_from(states.len() - 1).expect("state count fits u32")
                });
            }
            next.push(row);
            accepts.push(dfa.is_match_state(dfa.next_eoi_state(state)));
            if next.len() > limits::SHAPE_STATES {
                return Err(wrong(format!("it has over {} states", limits::SHAPE_STATES)));
            }
        }
        Self::trim(next, accepts).ok_or_else(|| wrong("no text has it".into()))
    }

    /// The shape of all texts of at most some lines: fewer line breaks than that, which are `\n` alone.
    ///
    /// # Errors
    /// No lines, or too many.
    pub fn lines(most: usize) -> Result<Self, Error> {
        if most == 0 || most > limits::SHAPE_LINES {
            let message = format!("a shape has 1 to {} lines, not {most}", limits::SHAPE_LINES);
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let next = (0..most).map(|line| {
            let own = u32::try_from(line).expect("few lines");
            let mut row = [own; 256];
            row[b'\r' as usize] = DEAD;
            row[b'\n' as usize] = if line + 1 < most { own + 1 } else { DEAD };
            row
        });
        Ok(Self::trim(next.collect(), vec![true; most]).expect("the empty text has few lines"))
    }

    /// Leaves out the states from which the shape cannot be met; `None` if that is the first one.
    fn trim(next: Vec<[u32; 256]>, accepts: Vec<bool>) -> Option<Self> {
        let mut live = accepts.clone();
        loop {
            let found: Vec<usize> = (0..next.len())
                .filter(|&state| !live[state] && next[state].iter().any(|&to| to != DEAD && live[to as usize]))
                .collect();
            if found.is_empty() {
                break;
            }
            for state in found {
                live[state] = true;
            }
        }
        if !live[0] {
            return None;
        }
        // States that nothing tells apart become one: `regex-automata` reports a match one byte late.
        let mut part: Vec<u32> =
            (0..next.len()).map(|state| u32::from(live[state]) + u32::from(accepts[state])).collect();
        loop {
            let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
            let refined: Vec<u32> = (0..next.len())
                .map(|state| {
                    let targets = next[state].iter().map(|&to| if to == DEAD { 0 } else { part[to as usize] + 1 });
                    let key: Vec<u32> = std::iter::once(part[state]).chain(targets).collect();
                    let fresh = u32::try_from(ids.len()).expect("state count fits u32");
                    *ids.entry(key).or_insert(fresh)
                })
                .collect();
            let stable = refined.iter().max() == part.iter().max() && {
                let pairs: rustc_hash::FxHashSet<(u32, u32)> =
                    refined.iter().copied().zip(part.iter().copied()).collect();
                pairs.len() == ids.len()
            };
            part = refined;
            if stable {
                break;
            }
        }
        let mut kept: Vec<usize> = Vec::new();
        let mut ids = vec![DEAD; next.len()];
        for state in (0..next.len()).filter(|&state| live[state]) {
            let same = kept.iter().position(|&other| part[other] == part[state]);
            let id = same.unwrap_or(kept.len());
            if same.is_none() {
                kept.push(state);
            }
            ids[state] = u32::try_from(id).expect("state count fits u32");
        }
        let renamed = |row: &[u32; 256]| row.map(|to| if to == DEAD { DEAD } else { ids[to as usize] });
        let mut shape = Self {
            next: kept.iter().map(|&state| renamed(&next[state])).collect(),
            accepts: kept.iter().map(|&state| accepts[state]).collect(),
            boundaries: Vec::new(),
            places: Vec::new(),
        };
        shape.find_boundaries();
        Some(shape)
    }

    /// Walks whole characters from the first state. What a lead byte leads to is left by that many bytes that go on with it.
    fn find_boundaries(&mut self) {
        self.places = vec![None; self.next.len()];
        let mut stack = vec![self.first()];
        while let Some(at) = stack.pop() {
            if self.places[at.0 as usize].is_some() {
                continue;
            }
            self.places[at.0 as usize] = Some(self.boundaries.len());
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

    /// The number of states.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.next.len()).expect("state count fits u32")
    }

    /// Never: some text has the shape.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
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
        let to = self.next[state.0 as usize][byte as usize];
        (to != DEAD).then_some(ShapeId(to))
    }

    /// Whether a text that ends in a state has the shape.
    #[inline]
    #[must_use]
    pub fn accepts(&self, state: ShapeId) -> bool {
        self.accepts[state.0 as usize]
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
        self.places[state.0 as usize]
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
