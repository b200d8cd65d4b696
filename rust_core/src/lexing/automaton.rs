//! Automata over bytes built by `regex-automata`, copied into plain tables and minimised.
//!
//! `regex-automata` reports a match one byte late. The copy accepts in the states themselves; states that become
//! useless by this are merged with the dead state.

use crate::limits::Determinising;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::hybrid::{BuildError, LazyStateID};
use regex_automata::nfa::thompson;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind};
use rustc_hash::FxHashMap;

/// A copied automaton, or several; state 0 is dead.
#[derive(Debug)]
pub(crate) struct Automaton {
    rows: Vec<[u32; 256]>,
    /// Label of each state; 0 accepts nothing.
    labels: Vec<u16>,
}

/// Reason why some expressions have no automaton.
#[derive(Debug)]
pub(crate) enum Unbuilt {
    /// An expression that is invalid, or uses a feature that automata lack.
    Wrong(Box<BuildError>),
    /// An automaton without a start state, with the reason.
    Start(String),
    /// An exceeded limit: its subject, the given amount and the limit.
    Large(&'static str, usize, usize),
}

/// A minimal automaton: no two states accept the same texts.
#[derive(Debug)]
pub(crate) struct Minimal {
    /// The class of each byte. Bytes of one class lead to the same states.
    pub class_of: Vec<u8>,
    /// The number of classes.
    pub class_count: usize,
    /// The state after each state by each class: `next[state * class_count + class]`.
    pub next: Vec<u32>,
    /// Label of each state.
    pub labels: Vec<u16>,
    /// The state into which each state of the copied automaton was merged; 0 if it accepts nothing.
    pub state_of: Vec<u32>,
}

impl Default for Automaton {
    fn default() -> Self {
        Self { rows: vec![[0; 256]], labels: vec![0] }
    }
}

impl Automaton {
    /// Add a state.
    pub(crate) fn push(&mut self, row: [u32; 256], label: u16) {
        self.rows.push(row);
        self.labels.push(label);
    }

    /// Add a copy of a state with another label, which no byte leads to, and return it.
    pub(crate) fn copy(&mut self, state: u32, label: u16) -> u32 {
        self.push(self.rows[state as usize], label);
        u32::try_from(self.rows.len() - 1).expect("state count fits u32")
    }

    /// The label of a state.
    pub(crate) fn label(&self, state: u32) -> u16 {
        self.labels[state as usize]
    }

    /// Add the automaton of some expressions, which may match at once, and return its first state. `label` gives the
    /// label of a state, by the patterns that end in it.
    ///
    /// States are made when they are first reached, so construction stops at the limits.
    ///
    /// # Errors
    /// An invalid expression, or expressions that are too large together.
    pub(crate) fn add(
        &mut self,
        patterns: &[String],
        limits: Determinising,
        mut label: impl FnMut(Vec<usize>) -> u16,
    ) -> Result<u32, Unbuilt> {
        let written = patterns.iter().map(String::len).sum();
        if written > limits.pattern_bytes {
            return Err(Unbuilt::Large("bytes of regular expressions", written, limits.pattern_bytes));
        }
        let dfa = lazy(patterns, limits)?;
        let mut states = Lazy { cache: dfa.create_cache(), sizes: FxHashMap::default(), dfa };
        let number = |place: usize| u32::try_from(place).expect("state count fits u32");
        let first = self.rows.len();
        let begin = states.start()?;
        let mut order = vec![begin];
        let mut ids = FxHashMap::default();
        ids.insert(begin, number(first));
        let classes: Vec<u8> = (0..=255u8).map(|byte| states.dfa.byte_classes().get(byte)).collect();
        let class_count = states.dfa.byte_classes().alphabet_len();
        let mut done = 0;
        let mut work = 0usize;
        while done < order.len() {
            let state = order[done];
            done += 1;
            work += states.size(state) * class_count;
            if work > limits.work {
                return Err(Unbuilt::Large("steps to an automaton", work, limits.work));
            }
            let mut row = [0u32; 256];
            for byte in 0..=255u8 {
                if byte > 0 && classes[byte as usize] == classes[byte as usize - 1] {
                    row[byte as usize] = row[byte as usize - 1];
                    continue;
                }
                let target = states.next(state, byte)?;
                if target.is_dead() || target.is_quit() {
                    continue;
                }
                row[byte as usize] = *ids.entry(target).or_insert_with(|| {
                    order.push(target);
                    number(first + order.len() - 1)
                });
            }
            if order.len() > limits.states {
                return Err(Unbuilt::Large("states of an automaton", order.len(), limits.states));
            }
            self.push(row, label(states.matches(state)?));
        }
        Ok(number(first))
    }

    /// The minimal automaton (Hopcroft's partition refinement). Its states are numbered in the order of the first one each was.
    pub(crate) fn minimise(&self) -> Minimal {
        let (class_of, representatives) = self.classes();
        let targets = |state: usize| representatives.iter().map(move |&byte| self.rows[state][byte] as usize);
        let sources = Sources::new(self.rows.len(), representatives.len(), targets);
        let useful = self.useful(&sources);
        let label = |(&label, useful): (&u16, &bool)| if *useful { u32::from(label) + 1 } else { 0 };
        let labels: Vec<u32> = self.labels.iter().zip(&useful).map(label).collect();
        let state_of = in_order(&Partition::refined(&labels, &sources).block_of);
        let count = state_of.iter().max().map_or(0, |&last| last as usize + 1);
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

    /// Return whether each state can still lead to acceptance.
    fn useful(&self, sources: &Sources) -> Vec<bool> {
        let mut useful: Vec<bool> = self.labels.iter().map(|&label| label != 0).collect();
        let mut stack: Vec<usize> = (0..useful.len()).filter(|&state| useful[state]).collect();
        while let Some(state) = stack.pop() {
            for class in 0..sources.classes {
                for &source in sources.of(state, class) {
                    if !std::mem::replace(&mut useful[source as usize], true) {
                        stack.push(source as usize);
                    }
                }
            }
        }
        useful
    }
}

/// The automaton of some expressions, whose states are made on demand.
fn lazy(patterns: &[String], limits: Determinising) -> Result<DFA, Unbuilt> {
    let config = Config::new()
        .match_kind(MatchKind::All)
        // States that were made must stay: running out of room for them is an error.
        .cache_capacity(usize::MAX >> 1)
        .skip_cache_capacity_check(true)
        .minimum_cache_clear_count(Some(0));
    DFA::builder()
        .configure(config)
        .syntax(syntax::Config::new().unicode(true).utf8(true).dot_matches_new_line(false))
        .thompson(thompson::Config::new().utf8(true).shrink(false).nfa_size_limit(Some(limits.nfa_bytes)))
        .build_many(patterns)
        .map_err(|error| match too_large(&error) {
            true => Unbuilt::Large("bytes of an automaton", limits.nfa_bytes + 1, limits.nfa_bytes),
            false => Unbuilt::Wrong(Box::new(error)),
        })
}

/// Return whether an error, or its cause, is a passed size limit.
fn too_large(error: &BuildError) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if inner.downcast_ref::<thompson::BuildError>().is_some_and(|inner| inner.size_limit().is_some()) {
            return true;
        }
        source = inner.source();
    }
    false
}

/// The states of a lazy automaton.
struct Lazy {
    dfa: DFA,
    cache: Cache,
    /// Per state: the bytes of its representation.
    sizes: FxHashMap<LazyStateID, usize>,
}

impl Lazy {
    fn start(&mut self) -> Result<LazyStateID, Unbuilt> {
        let anchored = start::Config::new().anchored(Anchored::Yes);
        self.dfa.start_state(&mut self.cache, &anchored).map_err(|error| Unbuilt::Start(error.to_string()))
    }

    fn next(&mut self, state: LazyStateID, byte: u8) -> Result<LazyStateID, Unbuilt> {
        let before = self.cache.memory_usage();
        let target = self.dfa.next_state(&mut self.cache, state, byte).map_err(full)?;
        let grown = self.cache.memory_usage().saturating_sub(before);
        if grown > 0 {
            // A state's own transitions, of four bytes each, are no part of what it stands for.
            let row = 4 * self.dfa.byte_classes().alphabet_len().next_power_of_two();
            self.sizes.entry(target).or_insert(grown.saturating_sub(row));
        }
        Ok(target)
    }

    /// Bytes of a state's representation. The first state's are unknown, and assumed to be few.
    fn size(&self, state: LazyStateID) -> usize {
        self.sizes.get(&state).copied().unwrap_or(1)
    }

    /// The patterns that match where a text ends in a state.
    fn matches(&mut self, state: LazyStateID) -> Result<Vec<usize>, Unbuilt> {
        let end = self.dfa.next_eoi_state(&mut self.cache, state).map_err(full)?;
        let count = if end.is_match() { self.dfa.match_len(&self.cache, end) } else { 0 };
        Ok((0..count).map(|index| self.dfa.match_pattern(&self.cache, end, index).as_usize()).collect())
    }
}

fn full(error: regex_automata::hybrid::CacheError) -> Unbuilt {
    Unbuilt::Start(error.to_string())
}

/// Predecessors of each state by each class of bytes.
struct Sources {
    classes: usize,
    /// States of a state and a class: `states[first[state * classes + class]..first[state * classes + class + 1]]`.
    first: Vec<u32>,
    states: Vec<u32>,
}

impl Sources {
    fn new<Targets: Iterator<Item = usize>>(count: usize, classes: usize, targets: impl Fn(usize) -> Targets) -> Self {
        let number = |place: usize| u32::try_from(place).expect("edge count fits u32");
        let mut first = vec![0u32; count * classes + 1];
        for state in 0..count {
            for (class, target) in targets(state).enumerate() {
                first[target * classes + class + 1] += 1;
            }
        }
        for place in 1..first.len() {
            first[place] += first[place - 1];
        }
        let mut free = first.clone();
        let mut states = vec![0; count * classes];
        for state in 0..count {
            for (class, target) in targets(state).enumerate() {
                let place = &mut free[target * classes + class];
                states[*place as usize] = number(state);
                *place += 1;
            }
        }
        Self { classes, first, states }
    }

    fn of(&self, state: usize, class: usize) -> &[u32] {
        let place = state * self.classes + class;
        &self.states[self.first[place] as usize..self.first[place + 1] as usize]
    }
}

/// States in blocks, each a run of `members`, of which the marked ones come first.
struct Partition {
    members: Vec<u32>,
    /// The place of each state among the members.
    place: Vec<usize>,
    block_of: Vec<u32>,
    /// Per block: its first member, the one after its marked ones, and the one after its last.
    runs: Vec<(usize, usize, usize)>,
}

impl Partition {
    /// The coarsest refinement of a partition by labels whose blocks lead into one block each by every class (Hopcroft
    /// 1971).
    fn refined(labels: &[u32], sources: &Sources) -> Self {
        let mut partition = Self::by_labels(labels);
        let classes = sources.classes;
        let mut waiting: Vec<(u32, usize)> = Vec::new();
        let mut waits: Vec<bool> = vec![true; partition.runs.len() * classes];
        for block in 0..partition.runs.len() {
            waiting.extend((0..classes).map(|class| (u32::try_from(block).expect("few blocks"), class)));
        }
        while let Some((splitter, class)) = waiting.pop() {
            waits[splitter as usize * classes + class] = false;
            let (begin, _, end) = partition.runs[splitter as usize];
            let leading: Vec<u32> = partition.members[begin..end]
                .iter()
                .flat_map(|&state| sources.of(state as usize, class))
                .copied()
                .collect();
            let mut touched = Vec::new();
            for state in leading {
                partition.mark(state, &mut touched);
            }
            for block in touched {
                let Some(fresh) = partition.split(block) else { continue };
                waits.resize(waits.len() + classes, false);
                let smaller = if partition.size(fresh) < partition.size(block) { fresh } else { block };
                for class in 0..classes {
                    // If the block waits as a splitter, both halves must wait. Otherwise the smaller half will do: the
                    // predecessors of the larger one are those of the whole block, which has split already, without the
                    // smaller one's. So a state is in O(log n) splitters of a class.
                    let other = if waits[block as usize * classes + class] { fresh } else { smaller };
                    waits[other as usize * classes + class] = true;
                    waiting.push((other, class));
                }
            }
        }
        partition
    }

    fn by_labels(labels: &[u32]) -> Self {
        let number = |place: usize| u32::try_from(place).expect("state count fits u32");
        let mut members: Vec<u32> = (0..labels.len()).map(number).collect();
        members.sort_by_key(|&state| labels[state as usize]);
        let mut partition =
            Self { place: vec![0; labels.len()], block_of: vec![0; labels.len()], runs: Vec::new(), members };
        for place in 0..labels.len() {
            let state = partition.members[place] as usize;
            let starts = place == 0 || labels[partition.members[place - 1] as usize] != labels[state];
            if starts {
                partition.runs.push((place, place, place));
            }
            partition.place[state] = place;
            partition.block_of[state] = number(partition.runs.len() - 1);
            partition.runs.last_mut().expect("begun above").2 = place + 1;
        }
        partition
    }

    fn size(&self, block: u32) -> usize {
        let (begin, _, end) = self.runs[block as usize];
        end - begin
    }

    fn mark(&mut self, state: u32, touched: &mut Vec<u32>) {
        let block = self.block_of[state as usize];
        let (begin, marked, _) = self.runs[block as usize];
        let place = self.place[state as usize];
        if place < marked {
            return;
        }
        if marked == begin {
            touched.push(block);
        }
        let other = self.members[marked];
        self.members.swap(place, marked);
        self.place[other as usize] = place;
        self.place[state as usize] = marked;
        self.runs[block as usize].1 += 1;
    }

    /// Split the marked members off a block, if it has others, and clear the marks.
    fn split(&mut self, block: u32) -> Option<u32> {
        let (begin, marked, end) = self.runs[block as usize];
        if marked == end {
            self.runs[block as usize].1 = begin;
            return None;
        }
        let fresh = u32::try_from(self.runs.len()).expect("no more blocks than states");
        self.runs.push((begin, begin, marked));
        self.runs[block as usize] = (marked, marked, end);
        for place in begin..marked {
            self.block_of[self.members[place] as usize] = fresh;
        }
        Some(fresh)
    }
}

/// Numbers in the order in which they first occur.
fn in_order(numbers: &[u32]) -> Vec<u32> {
    let mut ids: FxHashMap<u32, u32> = FxHashMap::default();
    let id = |number: &u32| {
        let fresh = u32::try_from(ids.len()).expect("no more than there were");
        *ids.entry(*number).or_insert(fresh)
    };
    numbers.iter().map(id).collect()
}
