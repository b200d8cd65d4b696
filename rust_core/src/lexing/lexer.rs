//! Joined byte-level DFA of all lexemes in all modes, and tables of its states.
//!
//! Lexing is leftmost-longest with priorities, over UTF-8 bytes. `regex-automata` compiles the patterns. The result is
//! copied into a minimal table. There a state is a small number, the dead state is 0, and acceptance belongs to the
//! state itself rather than to the byte after it.

use crate::bits::{self, BitRows};
use crate::error::Error;
use crate::ids::{AcceptId, LexemeId, ModeId, StateId};
use crate::lexing::automaton::{Automaton, Minimal, Unbuilt};
use crate::limits;
use crate::spec::{LanguageSpec, LexemeSpec};
use regex_automata::hybrid::BuildError;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// The dead state: nothing matches from here.
pub(crate) const DEAD: StateId = StateId(0);

/// An infinite distance, in bytes.
pub(crate) const NEVER: u16 = u16::MAX;

/// The minimal joined DFA. Serialisable, so that a compiled language can be cached on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LexerTable {
    class_of: Vec<u8>,
    class_count: usize,
    /// `next[state * class_count + class]`.
    next: Vec<StateId>,
    accept: Vec<AcceptId>,
    accept_sets: Vec<Vec<LexemeId>>,
    /// The start state of each mode.
    starts: Vec<StateId>,
    /// The state before the first byte of a file, where some lexemes stand there alone. It accepts the file's start.
    file_start: Option<StateId>,
}

impl LexerTable {
    /// Compile the lexemes of a definition. `soft` marks literals that keep the next best lexeme beside them.
    ///
    /// # Errors
    /// A pattern that does not compile, matches the empty text, or makes the automaton too large.
    pub fn compile(spec: &LanguageSpec) -> Result<Self, Error> {
        let wrong = |what: String| Error::language(format!("language {}: {what}", spec.name));
        let mut automaton = Automaton::default();
        let mut sets = AcceptSets::default();
        let mut starts = Vec::new();
        let (modes, first) = (modes(spec)?, first_lexemes(spec)?);
        for lexemes in modes.iter().chain((!first.is_empty()).then_some(&first)) {
            let pattern = |&id: &LexemeId| pattern_text(&spec.lexemes[id.index()]).map(|pattern| (pattern, id));
            let (patterns, of): (Vec<String>, Vec<LexemeId>) = lexemes.iter().filter_map(pattern).unzip();
            if patterns.is_empty() {
                return Err(wrong("no lexeme has a pattern".into()));
            }
            let label = |matched: Vec<usize>| {
                sets.intern(winners(matched.into_iter().map(|pattern| of[pattern]).collect(), spec))
            };
            let start = automaton.add(&patterns, limits::LEXER, label).map_err(|why| match why {
                Unbuilt::Wrong(error) => wrong(one_line(&error, &patterns, &of, spec)),
                Unbuilt::Start(why) => wrong(why),
                Unbuilt::Large(what, given, limit) => Error::limit(&format!("lexemes: {what}"), given, limit),
            })?;
            if let Some(lexeme) = sets.sets[automaton.label(start) as usize].first() {
                return Err(wrong(format!("lexeme {} matches the empty text", spec.lexemes[lexeme.index()].name)));
            }
            starts.push(start);
        }
        let file_start = if first.is_empty() { None } else { starts.pop() };
        let file_start = file_start.zip(spec.file_start()).map(|(state, lexeme)| {
            let accepts_start = sets.intern(vec![LexemeId::from_index(lexeme)]);
            automaton.copy(state, accepts_start)
        });
        let table = Self::with_starts(automaton.minimise(), &starts, file_start, sets.sets);
        let pairs = table.state_count() * table.accept_sets.len();
        if pairs > limits::LEXER_PAIRS {
            return Err(Error::limit("lexemes: states times sets of lexemes", pairs, limits::LEXER_PAIRS));
        }
        Ok(table)
    }

    /// The table of a minimal automaton, with start states of their own, which no byte leads to: being in one means being between
    /// two symbols.
    fn with_starts(minimal: Minimal, starts: &[u32], file_start: Option<u32>, accept_sets: Vec<Vec<LexemeId>>) -> Self {
        let Minimal { class_of, class_count, next, labels, state_of } = minimal;
        let mut next: Vec<StateId> = next.into_iter().map(StateId).collect();
        let mut accept: Vec<AcceptId> = labels.into_iter().map(AcceptId).collect();
        let own = |&start: &u32| {
            let start = state_of[start as usize] as usize;
            let fresh = StateId::from_index(accept.len());
            next.extend_from_within(start * class_count..(start + 1) * class_count);
            accept.push(AcceptId(0));
            fresh
        };
        let starts = starts.iter().map(own).collect();
        let file_start = file_start.map(|state| StateId(state_of[state as usize]));
        Self { class_of, class_count, next, accept, accept_sets, starts, file_start }
    }

    /// The number of states, the dead one included.
    #[must_use]
    pub fn state_count(&self) -> usize {
        self.accept.len()
    }

    /// Return whether a table that was read fits a definition: all lexemes and modes that it refers to exist.
    #[must_use]
    pub(crate) fn is_of(&self, spec: &LanguageSpec) -> bool {
        let (states, sets, modes) = (self.state_count(), self.accept_sets.len(), spec.modes.len() + 1);
        let is_state = |state: &StateId| state.index() < states;
        let first = states.saturating_sub(modes);
        self.class_of.len() == 256
            && self.class_of.iter().all(|&class| (class as usize) < self.class_count)
            && states.checked_mul(self.class_count) == Some(self.next.len())
            && self.next.iter().all(|state| is_state(state) && state.index() < first)
            && self.accept.iter().all(|accept| accept.index() < sets)
            && self.next.iter().take(self.class_count).all(|&state| state == DEAD)
            && self.accept.first() == Some(&AcceptId(0))
            && self.accept_sets.iter().enumerate().all(|(set, lexemes)| {
                lexemes.is_empty() == (set == 0) && lexemes.iter().all(|lexeme| lexeme.index() < spec.lexemes.len())
            })
            && self.starts.len() == modes
            && first > 0
            && self
                .starts
                .iter()
                .enumerate()
                .all(|(mode, start)| start.index() == first + mode && self.accept[start.index()] == AcceptId(0))
            && self.file_start.is_some() == spec.file_start().is_some()
            && self.file_start.is_none_or(|state| {
                let accepts = |state: StateId| &self.accept_sets[self.accept[state.index()].index()];
                is_state(&state)
                    && accepts(state).iter().map(|lexeme| lexeme.index()).eq(spec.file_start())
                    && self.next.iter().all(|&next| next != state)
            })
            && states * sets <= limits::LEXER_PAIRS
    }
}

fn pattern_text(lexeme: &LexemeSpec) -> Option<String> {
    match (&lexeme.literal, &lexeme.pattern) {
        (Some(literal), _) => Some(regex_syntax::escape(literal)),
        (None, Some(pattern)) => Some(pattern.clone()),
        (None, None) => None,
    }
}

fn one_line(error: &BuildError, patterns: &[String], of: &[LexemeId], spec: &LanguageSpec) -> String {
    for (pattern, id) in patterns.iter().zip(of) {
        if let Err(parse_error) = regex_syntax::parse(pattern) {
            let text = parse_error.to_string();
            let reason = text.lines().last().unwrap_or("").trim().to_string();
            return format!("lexeme {}: {}", spec.lexemes[id.index()].name, reason);
        }
    }
    error.to_string().replace('\n', " ")
}

/// The lexemes that are read in each mode, mode 0 first.
fn modes(spec: &LanguageSpec) -> Result<Vec<Vec<LexemeId>>, Error> {
    let of = mode_of(spec)?;
    let first = first_lexemes(spec)?;
    let all = || (0..spec.lexemes.len()).map(LexemeId::from_index).filter(|id| !first.contains(id));
    let mut found = vec![all().filter(|id| of[id.index()].index() == 0).collect::<Vec<_>>()];
    for (index, mode) in spec.modes.iter().enumerate() {
        let read = |id: &LexemeId| {
            of[id.index()].index() == index + 1
                || mode.code && of[id.index()].index() == 0 && !mode.without.contains(&spec.lexemes[id.index()].name)
        };
        found.push(all().filter(read).collect());
    }
    Ok(found)
}

/// The lexemes that stand at the first byte of a file alone.
///
/// # Errors
/// A name that no lexeme has or a mode's lexeme has, or a language with layout.
fn first_lexemes(spec: &LanguageSpec) -> Result<Vec<LexemeId>, Error> {
    let wrong = |what: String| Err(Error::language(format!("language {}: first_lexemes: {what}", spec.name)));
    if spec.layout.is_some() && !spec.first_lexemes.is_empty() {
        return wrong("not in a language with a layout".into());
    }
    let of = mode_of(spec)?;
    let mut found = Vec::new();
    for name in &spec.first_lexemes {
        match spec.lexemes.iter().position(|lexeme| lexeme.name == *name) {
            None => return wrong(format!("there is no lexeme {name}")),
            Some(lexeme) if of[lexeme] != ModeId(0) => return wrong(format!("lexeme {name} is in a mode")),
            Some(lexeme) => found.push(LexemeId::from_index(lexeme)),
        }
    }
    Ok(found)
}

/// The mode of each lexeme; 0 for those in none.
///
/// # Errors
/// A mode that names a lexeme which does not exist or is another mode's as well, or too many modes.
pub(crate) fn mode_of(spec: &LanguageSpec) -> Result<Vec<ModeId>, Error> {
    if spec.modes.len() >= limits::MODES {
        return Err(Error::limit("modes", spec.modes.len(), limits::MODES - 1));
    }
    let mut of = vec![ModeId(0); spec.lexemes.len()];
    for (index, mode) in spec.modes.iter().enumerate() {
        for name in &mode.lexemes {
            let Some(lexeme) = spec.lexemes.iter().position(|lexeme| lexeme.name == *name) else {
                return Err(Error::language(format!("language {}: there is no lexeme {name}", spec.name)));
            };
            if std::mem::replace(&mut of[lexeme], ModeId::from_index(index + 1)) != ModeId(0) {
                return Err(Error::language(format!("language {}: lexeme {name} is in two modes", spec.name)));
            }
        }
    }
    Ok(of)
}

/// Interned sets of lexemes that a state accepts; number 0 is the empty one.
struct AcceptSets {
    sets: Vec<Vec<LexemeId>>,
    ids: FxHashMap<Vec<LexemeId>, u16>,
}

impl Default for AcceptSets {
    fn default() -> Self {
        Self { sets: vec![Vec::new()], ids: std::iter::once((Vec::new(), 0)).collect() }
    }
}

impl AcceptSets {
    fn intern(&mut self, set: Vec<LexemeId>) -> u16 {
        *self.ids.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            u16::try_from(self.sets.len() - 1).expect("accept sets fit u16")
        })
    }
}

/// The lexemes of a match by some patterns: the best one, and the next best behind a soft keyword.
fn winners(mut matched: Vec<LexemeId>, spec: &LanguageSpec) -> Vec<LexemeId> {
    let rank = |id: &LexemeId| {
        let lexeme = &spec.lexemes[id.index()];
        (lexeme.literal.is_none(), -lexeme.priority, id.0)
    };
    matched.sort_by_key(rank);
    matched.dedup();
    let mut chosen = Vec::new();
    for id in matched {
        chosen.push(id);
        if !spec.soft_keywords.contains(&spec.lexemes[id.index()].name) {
            break;
        }
    }
    let marks =
        spec.marks.iter().filter(|mark| chosen.iter().any(|id| mark.of.contains(&spec.lexemes[id.index()].name)));
    let place = |name: &String| spec.lexemes.iter().position(|lexeme| lexeme.name == *name);
    let marks: Vec<LexemeId> = marks.filter_map(|mark| place(&mark.name)).map(LexemeId::from_index).collect();
    chosen.extend(marks);
    chosen.sort_unstable();
    chosen
}

/// The lexer: the table and everything derived from it.
#[derive(Debug)]
pub struct Lexer {
    table: LexerTable,
    lexeme_count: usize,
    /// Bitset of accept sets reachable by zero or more bytes, per state.
    live: BitRows,
    /// The distinct live successors of each state: `targets[first[state]..first[state + 1]]`.
    first: Vec<u32>,
    targets: Vec<StateId>,
    /// True if an accepting state is reachable by at least one byte.
    extends: Vec<bool>,
    /// Bytes from the nearest start to a state.
    depth: Vec<u16>,
    /// Least bytes from a state to acceptance by an accept set: `to_accept[state * accept_sets + set]`.
    to_accept: Vec<u16>,
}

impl Lexer {
    /// Derive reachability and distances from a table.
    #[must_use]
    pub fn new(table: LexerTable, lexeme_count: usize) -> Self {
        let states = table.state_count();
        let sets = table.accept_sets.len();
        let mut lexer = Self {
            lexeme_count,
            live: BitRows::new(states, sets),
            first: Vec::new(),
            targets: Vec::new(),
            extends: vec![false; states],
            depth: Vec::new(),
            to_accept: Vec::new(),
            table,
        };
        lexer.derive_successors();
        lexer.derive_distances();
        lexer.derive_live();
        lexer
    }

    fn derive_successors(&mut self) {
        let classes = self.table.class_count;
        for row in self.table.next.chunks_exact(classes) {
            self.first.push(u32::try_from(self.targets.len()).expect("edge count fits u32"));
            let mut distinct: Vec<StateId> = row.iter().copied().filter(|&target| target != DEAD).collect();
            distinct.sort_unstable();
            distinct.dedup();
            self.targets.extend(distinct);
        }
        self.first.push(u32::try_from(self.targets.len()).expect("edge count fits u32"));
    }

    fn successors(&self, state: usize) -> &[StateId] {
        &self.targets[self.first[state] as usize..self.first[state + 1] as usize]
    }

    fn derive_distances(&mut self) {
        let states = self.table.state_count();
        let sets = self.table.accept_sets.len();
        let mut predecessors: Vec<Vec<StateId>> = vec![Vec::new(); states];
        for state in 0..states {
            for &target in self.successors(state) {
                predecessors[target.index()].push(StateId::from_index(state));
            }
        }
        let starts = self.table.starts.iter().chain(&self.table.file_start);
        let starts: Vec<usize> = starts.map(|start| start.index()).collect();
        self.depth = breadth_first(&starts, states, |state| self.successors(state));
        self.to_accept = vec![NEVER; states * sets];
        for set in 1..sets {
            let seeds: Vec<usize> = (1..states).filter(|&state| self.table.accept[state].index() == set).collect();
            for (state, distance) in breadth_first(&seeds, states, |state| &predecessors[state]).into_iter().enumerate()
            {
                self.to_accept[state * sets + set] = distance;
            }
        }
        for state in 1..states {
            self.extends[state] = self.successors(state).iter().any(|&target| {
                let row = &self.to_accept[target.index() * sets..(target.index() + 1) * sets];
                row[1..].iter().any(|&distance| distance != NEVER)
            });
        }
    }

    fn derive_live(&mut self) {
        let states = self.table.state_count();
        let sets = self.table.accept_sets.len();
        for state in 1..states {
            for set in 1..sets {
                if self.to_accept[state * sets + set] != NEVER {
                    bits::insert(self.live.row_mut(state), set);
                }
            }
        }
    }

    /// The state before any byte where no mode is in force.
    #[inline(always)]
    #[must_use]
    pub fn start(&self) -> StateId {
        self.table.starts[0]
    }

    /// The state before any byte in a mode.
    #[inline(always)]
    #[must_use]
    pub fn start_of(&self, mode: ModeId) -> StateId {
        self.table.starts[mode.index()]
    }

    /// The state before the first byte of a file, in a language with lexemes that stand there alone. The start of the
    /// file is in progress in it, and may have ended.
    #[must_use]
    pub fn file_start(&self) -> Option<StateId> {
        self.table.file_start
    }

    /// The states before any byte, in all modes.
    pub fn starts(&self) -> impl Iterator<Item = StateId> + '_ {
        self.table.starts.iter().copied()
    }

    /// Return whether a state is one before any byte: between two symbols.
    #[inline(always)]
    #[must_use]
    pub fn is_start(&self, state: StateId) -> bool {
        state >= self.table.starts[0]
    }

    /// Least bytes of a symbol of an accept set, in the mode or at the first byte of a file, wherever it is shortest;
    /// [`NEVER`] if there is none.
    #[must_use]
    pub fn shortest(&self, accept: AcceptId) -> u16 {
        self.table
            .starts
            .iter()
            .chain(&self.table.file_start)
            .map(|&start| self.to_accept(start, accept))
            .min()
            .unwrap_or(NEVER)
    }

    /// One byte's step; [`DEAD`] if nothing can match any more.
    #[inline(always)]
    #[must_use]
    pub fn step(&self, state: StateId, byte: u8) -> StateId {
        let class = self.table.class_of[byte as usize] as usize;
        self.table.next[state.index() * self.table.class_count + class]
    }

    /// The accept set of a state; `AcceptId(0)` is empty.
    #[inline(always)]
    #[must_use]
    pub fn accept(&self, state: StateId) -> AcceptId {
        self.table.accept[state.index()]
    }

    /// Return whether the state accepts.
    #[inline(always)]
    #[must_use]
    pub fn accepts(&self, state: StateId) -> bool {
        self.table.accept[state.index()] != AcceptId(0)
    }

    /// The lexemes of an accept set.
    #[inline(always)]
    #[must_use]
    pub fn lexemes(&self, accept: AcceptId) -> &[LexemeId] {
        &self.table.accept_sets[accept.index()]
    }

    /// All accept sets but the empty one.
    pub fn accept_sets(&self) -> impl Iterator<Item = AcceptId> + '_ {
        (1..self.table.accept_sets.len()).map(AcceptId::from_index)
    }

    /// The number of accept sets, the empty one included.
    #[must_use]
    pub fn accept_set_count(&self) -> usize {
        self.table.accept_sets.len()
    }

    /// The accept sets that a state can still reach by zero or more bytes, as a mask.
    #[inline(always)]
    #[must_use]
    pub fn live_mask(&self, state: StateId) -> &[u64] {
        self.live.row(state.index())
    }

    /// The accept sets that a state can still reach by zero or more bytes.
    pub fn live(&self, state: StateId) -> impl Iterator<Item = AcceptId> + '_ {
        bits::numbers(self.live_mask(state)).map(AcceptId::from_index)
    }

    /// Return whether an accepting state can be reached from here by at least one byte.
    #[inline(always)]
    #[must_use]
    pub fn extends(&self, state: StateId) -> bool {
        self.extends[state.index()]
    }

    /// The states reachable from one by zero or more bytes, each once.
    #[must_use]
    pub fn reachable(&self, state: StateId) -> Vec<StateId> {
        let mut seen = vec![false; self.state_count()];
        seen[state.index()] = true;
        let mut found = vec![state];
        let mut at = 0;
        while at < found.len() {
            for &target in self.successors(found[at].index()) {
                if !std::mem::replace(&mut seen[target.index()], true) {
                    found.push(target);
                }
            }
            at += 1;
        }
        found
    }

    /// Least bytes from the nearest start to a state.
    #[must_use]
    pub fn depth(&self, state: StateId) -> u16 {
        self.depth[state.index()]
    }

    /// Least bytes from a state to where an accept set is accepted, [`NEVER`] if it cannot be.
    #[must_use]
    pub fn to_accept(&self, state: StateId, accept: AcceptId) -> u16 {
        self.to_accept[state.index() * self.table.accept_sets.len() + accept.index()]
    }

    /// The number of states, the dead one included.
    #[must_use]
    pub fn state_count(&self) -> usize {
        self.table.state_count()
    }

    /// The number of lexemes of the language.
    #[must_use]
    pub fn lexeme_count(&self) -> usize {
        self.lexeme_count
    }

    /// The table, for the cache on disk.
    #[must_use]
    pub fn table(&self) -> &LexerTable {
        &self.table
    }

    /// The class of a byte. No state distinguishes bytes of one class.
    #[must_use]
    pub fn class_of(&self, byte: u8) -> u8 {
        self.table.class_of[byte as usize]
    }

    /// The least byte of each class.
    #[must_use]
    pub fn representatives(&self) -> Vec<u8> {
        let mut seen = vec![false; self.table.class_count];
        (0..=255u8)
            .filter(|&byte| !std::mem::replace(&mut seen[self.table.class_of[byte as usize] as usize], true))
            .collect()
    }

    /// The longest match of a text from its first byte in a mode: its length in bytes and its accept set.
    #[must_use]
    pub fn longest_match(&self, mode: ModeId, text: &[u8]) -> Option<(usize, AcceptId)> {
        self.longest_from(self.start_of(mode), text)
    }

    /// The longest match that ends at least one byte into `text`, with the symbol already in progress in `state`.
    #[must_use]
    pub fn longest_from(&self, state: StateId, text: &[u8]) -> Option<(usize, AcceptId)> {
        let mut state = state;
        let mut best = None;
        for (index, &byte) in text.iter().enumerate() {
            state = self.step(state, byte);
            if state == DEAD {
                break;
            }
            if self.accepts(state) {
                best = Some((index + 1, self.accept(state)));
            }
        }
        best
    }
}

fn breadth_first<'a>(seeds: &[usize], states: usize, edges: impl Fn(usize) -> &'a [StateId]) -> Vec<u16> {
    let mut distance = vec![NEVER; states];
    let mut queue: std::collections::VecDeque<usize> = seeds.iter().copied().collect();
    for &seed in seeds {
        distance[seed] = 0;
    }
    while let Some(at) = queue.pop_front() {
        for &target in edges(at) {
            let target = target.index();
            if distance[target] == NEVER {
                distance[target] = distance[at].saturating_add(1).min(NEVER - 1);
                queue.push_back(target);
            }
        }
    }
    distance
}
