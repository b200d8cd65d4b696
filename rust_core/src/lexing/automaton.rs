//! Automata over bytes as `regex-automata` builds them, copied into plain tables and minimised.
//!
//! `regex-automata` reports a match one byte late; the copy has acceptance on the states themselves, and the states that this
//! leaves without any use become one with the dead one.

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton as _, dense};
use regex_automata::util::start;
use rustc_hash::FxHashMap;

/// A copied automaton, or several; state 0 is dead.
#[derive(Debug)]
pub(crate) struct Automaton {
    rows: Vec<[u32; 256]>,
    /// What each state accepts; 0 is nothing.
    labels: Vec<u16>,
}

/// Why an automaton was not copied.
#[derive(Debug)]
pub(crate) enum Uncopied {
    /// It has no start state, and why.
    Start(String),
    /// So many states are too many.
    States(usize),
}

/// A minimal automaton: no two states accept the same texts.
#[derive(Debug)]
pub(crate) struct Minimal {
    /// The class of each byte: bytes of one class lead to the same states.
    pub class_of: Vec<u8>,
    /// The number of classes.
    pub class_count: usize,
    /// The state after each state by each class: `next[state * class_count + class]`.
    pub next: Vec<u32>,
    /// What each state accepts.
    pub labels: Vec<u16>,
    /// The state that each state of the copied automaton has become; 0 if nothing can be accepted from it.
    pub state_of: Vec<u32>,
}

impl Default for Automaton {
    fn default() -> Self {
        Self { rows: vec![[0; 256]], labels: vec![0] }
    }
}

impl Automaton {
    /// Adds a state.
    pub(crate) fn push(&mut self, row: [u32; 256], label: u16) {
        self.rows.push(row);
        self.labels.push(label);
    }

    /// What a state accepts.
    pub(crate) fn label(&self, state: u32) -> u16 {
        self.labels[state as usize]
    }

    /// Copies an automaton and returns its first state. `most`: states that there may be, the dead one included; `label`: what a
    /// state accepts, by the patterns that end in it.
    ///
    /// # Errors
    /// It has no start state for anchored texts, or too many states.
    pub(crate) fn copy(
        &mut self,
        dfa: &dense::DFA<Vec<u32>>,
        most: usize,
        mut label: impl FnMut(Vec<usize>) -> u16,
    ) -> Result<u32, Uncopied> {
        let anchored = start::Config::new().anchored(Anchored::Yes);
        let begin = dfa.start_state(&anchored).map_err(|error| Uncopied::Start(error.to_string()))?;
        let number = |place: usize| u32::try_from(place).expect("state count fits u32");
        let first = self.rows.len();
        let mut order = vec![begin];
        let mut ids = FxHashMap::default();
        ids.insert(begin, number(first));
        let mut done = 0;
        while done < order.len() {
            let state = order[done];
            done += 1;
            let mut row = [0u32; 256];
            for byte in 0..=255u8 {
                let target = dfa.next_state(state, byte);
                if dfa.is_dead_state(target) || dfa.is_quit_state(target) {
                    continue;
                }
                row[byte as usize] = *ids.entry(target).or_insert_with(|| {
                    order.push(target);
                    number(first + order.len() - 1)
                });
            }
            if first + order.len() > most {
                return Err(Uncopied::States(first + order.len()));
            }
            let end = dfa.next_eoi_state(state);
            let matches = if dfa.is_match_state(end) { dfa.match_len(end) } else { 0 };
            let patterns = (0..matches).map(|index| dfa.match_pattern(end, index).as_usize()).collect();
            self.push(row, label(patterns));
        }
        Ok(number(first))
    }

    /// The minimal automaton (Moore's partition refinement). Its states are numbered in the order of the first one each was.
    pub(crate) fn minimise(&self) -> Minimal {
        let (class_of, representatives) = self.classes();
        let targets = |state: usize| representatives.iter().map(move |&byte| self.rows[state][byte] as usize);
        let useful = self.useful();
        let label = |(&label, useful): (&u16, &bool)| if *useful { u32::from(label) + 1 } else { 0 };
        let mut state_of: Vec<u32> = self.labels.iter().zip(&useful).map(label).collect();
        let mut count = 0;
        loop {
            let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
            let refined = (0..self.rows.len()).map(|state| {
                let key = std::iter::once(state_of[state]).chain(targets(state).map(|target| state_of[target]));
                let fresh = u32::try_from(ids.len()).expect("state count fits u32");
                *ids.entry(key.collect()).or_insert(fresh)
            });
            state_of = refined.collect();
            if ids.len() == count {
                break;
            }
            count = ids.len();
        }
        debug_assert_eq!(state_of[0], 0, "the dead state comes first");
        let class_count = representatives.len();
        let mut next = vec![0; count * class_count];
        let mut labels = vec![0; count];
        for (state, &to) in state_of.iter().enumerate().filter(|(state, _)| useful[*state]) {
            labels[to as usize] = self.labels[state];
            for (class, target) in targets(state).enumerate() {
                next[to as usize * class_count + class] = state_of[target];
            }
        }
        Minimal { class_of, class_count, next, labels, state_of }
    }

    /// The class of each byte, and the least byte of each class.
    fn classes(&self) -> (Vec<u8>, Vec<usize>) {
        let mut columns: FxHashMap<Vec<u32>, u8> = FxHashMap::default();
        let mut representatives = Vec::new();
        let of = |byte: usize| {
            let fresh = u8::try_from(columns.len()).unwrap_or(255);
            *columns.entry(self.rows.iter().map(|row| row[byte]).collect()).or_insert_with(|| {
                representatives.push(byte);
                fresh
            })
        };
        let class_of = (0..256).map(of).collect();
        (class_of, representatives)
    }

    /// Whether each state can still lead to acceptance.
    fn useful(&self) -> Vec<bool> {
        let mut useful: Vec<bool> = self.labels.iter().map(|&label| label != 0).collect();
        loop {
            let mut changed = false;
            for state in (0..useful.len()).rev() {
                if !useful[state] && self.rows[state].iter().any(|&target| useful[target as usize]) {
                    useful[state] = true;
                    changed = true;
                }
            }
            if !changed {
                return useful;
            }
        }
    }
}
