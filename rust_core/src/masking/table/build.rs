//! The token spanner table: which lexemes the tokens of a vocabulary are, from each state of the lexer (GreatGramma,
//! arXiv 2502.05111, turned round: from lexeme sequences to tokens).
//!
//! A node stands for a sequence of lexemes. It holds the tokens that end in it, in groups of equal lexer states, and an
//! edge for each lexeme with which other tokens go on. What a node holds depends on where in the vocabulary's trie, and in
//! which lexer configuration, its tokens are once the sequence has been read (its *members*), so nodes are determinised by
//! their members: a subset construction, in which `)` after `)` after `)` is shared by all that lead there. A lexeme that
//! no text of the language has after the one before it is left out, so the table is the smaller for the grammar.

use crate::ids::{AcceptId, GuardId, ModeId, StateId, TokenId};
use crate::language::compiled::Language;
use crate::lexing::branch::{self, Cut, Reader};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::layout::Column;
use crate::lexing::lexer::{DEAD, Lexer};
use crate::lexing::roles::{LineByte, Role, line_bytes};
use crate::limits;
use crate::masking::table::sets::TokenSets;
use crate::masking::vocabulary::Vocabulary;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Before the first byte of a token.
const ROOT: u32 = u32::MAX;

/// Nothing has been read inside the token.
const NOTHING: AcceptId = AcceptId(0);

/// Nodes explored at a time: their tokens are in memory as lists until they are interned.
const CHUNK: usize = 4096;

/// Where in a line: between two symbols of it, or in its indentation, after a run of blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Line {
    /// The line has a symbol.
    Middle,
    /// It has none yet; the run began where the token did.
    Relative(u32),
    /// It has none yet; the run began with the line.
    Absolute(u32),
}

/// What leads from one node to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// A symbol is read; then a mode is in force.
    Read(AcceptId, ModeId),
    /// A newline is ignored: brackets are open.
    Inside,
    /// A newline ends the logical line.
    Newline(AcceptId, ModeId),
    /// The same, and the next line begins at column 0.
    NewlineBegin(AcceptId, ModeId),
    /// A line begins after a run of blanks.
    Begin(Line),
}

/// A lexer configuration inside a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Configuration {
    /// The symbol in progress.
    pub state: StateId,
    /// Ended symbols that must not match again, in the builder's own numbers.
    pub guards: GuardId,
    /// The lexer's state before a symbol in the mode in force; that of no mode where it makes no difference.
    pub start: StateId,
    /// Where in the line.
    pub line: Line,
    /// The last symbol that was read inside the token; none of them where it makes no difference.
    pub after: AcceptId,
    /// Brackets are known to be open.
    pub inside: bool,
}

/// Some tokens after a sequence of lexemes: those below a node of the vocabulary's trie.
type Member = (u32, Configuration);

/// Where tokens end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The symbol in progress.
    pub state: StateId,
    /// Its guards.
    pub guards: GuardId,
    /// The line has no symbol yet.
    pub in_line: bool,
}

/// A node as it is found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Tokens that end in the node, as sets.
    pub groups: Vec<(End, u32)>,
    /// What other tokens go on with.
    pub edges: Vec<(Label, u32)>,
    /// Tokens that the table does not describe.
    pub odd: Vec<TokenId>,
}

/// The table as it is built.
#[derive(Debug)]
pub(crate) struct Built {
    /// All nodes.
    pub nodes: Vec<Found>,
    /// The node of each configuration before a token.
    pub roots: Vec<(Configuration, u32)>,
    /// The sets of tokens.
    pub sets: TokenSets,
    /// The guard sets named in the nodes.
    pub guards: Guards,
    /// The runs of blanks.
    pub runs: Vec<Run>,
}

/// Builds the table from every state of the lexer, on some threads.
#[must_use]
pub(crate) fn build(language: &Language, vocabulary: &Vocabulary, threads: usize) -> Built {
    let context = Context::new(language, vocabulary);
    let mut guards = Guards::default();
    let roots = roots(&context, &mut guards);
    let shared = Mutex::new(Shared {
        guards,
        runs: vec![Run { before: 0, byte: 0, column: Column::ZERO }],
        run_ids: FxHashMap::default(),
    });
    let mut sets = TokenSets::new(vocabulary.len());
    let mut numbers = Numbers::default();
    let numbered: Vec<(Configuration, u32)> =
        roots.iter().map(|&root| (root, numbers.of(vec![(ROOT, root)]))).collect();
    numbers.pending.clear();

    // The roots differ in what their first byte does: what comes of that is explored once for all of them.
    let firsts = in_parallel(threads, &roots, |&root| Explorer::new(&context, &shared).first_steps(root));
    let mut members: Vec<Member> = firsts.iter().flat_map(|first| first.1.iter().copied()).collect();
    members.sort_unstable();
    members.dedup();
    let explored = in_parallel(threads, &members, |&member| Explorer::new(&context, &shared).explore(&[member]));
    let place: FxHashMap<Member, usize> = members.iter().enumerate().map(|(index, &member)| (member, index)).collect();
    let mut nodes = Vec::new();
    for (own, stays) in &firsts {
        let parts = std::iter::once(own).chain(stays.iter().map(|stay| &explored[place[stay]]));
        nodes.push(join(parts, &mut sets, &mut numbers));
    }
    drop((firsts, explored, place));
    while !numbers.pending.is_empty() {
        for chunk in std::mem::take(&mut numbers.pending).chunks(CHUNK) {
            let explored = in_parallel(threads, chunk, |members| Explorer::new(&context, &shared).explore(members));
            nodes.extend(explored.iter().map(|raw| join(std::iter::once(raw), &mut sets, &mut numbers)));
        }
    }
    let shared = shared.into_inner().expect("exploring does not panic");
    Built { nodes, roots: numbered, sets, guards: shared.guards, runs: shared.runs }
}

/// Numbers of nodes by their members.
#[derive(Debug, Default)]
struct Numbers {
    ids: FxHashMap<Vec<Member>, u32>,
    /// Those still to be explored, in the order of their numbers.
    pending: Vec<Vec<Member>>,
}

impl Numbers {
    fn of(&mut self, members: Vec<Member>) -> u32 {
        if let Some(&id) = self.ids.get(&members) {
            return id;
        }
        let id = u32::try_from(self.ids.len()).expect("node count fits u32");
        self.pending.push(members.clone());
        self.ids.insert(members, id);
        id
    }
}

/// Applies a function to each input on some threads; results in the order of the inputs.
fn in_parallel<I: Sync, O: Send>(threads: usize, inputs: &[I], work: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut own = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(input) = inputs.get(index) else { return own };
            own.push((index, work(input)));
        }
    };
    let mut found: Vec<(usize, O)> = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads.min(inputs.len())).map(|_| scope.spawn(run)).collect();
        let mut all = run();
        for helper in helpers {
            all.extend(helper.join().expect("exploring does not panic"));
        }
        all
    });
    found.sort_unstable_by_key(|entry| entry.0);
    found.into_iter().map(|entry| entry.1).collect()
}

/// The configurations that a token can begin in: every state of the lexer, those of an indentation, and symbols that began
/// beside a guard which may run on. What else runs beside guards is left to the plain walk.
fn roots(context: &Context<'_>, guards: &mut Guards) -> Vec<Configuration> {
    let language = context.language;
    let lexer = &language.lexer;
    let representatives = lexer.representatives();
    let mut found: Vec<Configuration> = Vec::new();
    let mut seen: FxHashSet<Configuration> = FxHashSet::default();
    let mut stack: Vec<Configuration> = Vec::new();
    let mut run_on: FxHashMap<StateId, bool> = FxHashMap::default();
    for mode in (0..language.mode_count()).map(ModeId::from_index) {
        let start = lexer.start_of(mode);
        let line = Line::Middle;
        let middle = Configuration { state: start, guards: NO_GUARDS, start, line, after: NOTHING, inside: false };
        stack.push(middle);
        if language.layout.is_some() {
            stack.push(Configuration { line: Line::Relative(0), ..middle });
        }
    }
    while let Some(at) = stack.pop() {
        let root = context.canonical(at);
        if !seen.insert(at) {
            continue;
        }
        if root == at || seen.insert(root) {
            found.push(root);
        }
        for &byte in &representatives {
            let state = lexer.step(at.state, byte);
            let Some(stepped) = guards.step(lexer, at.guards, byte) else { continue };
            if state != DEAD && (at.line == Line::Middle || context.is_trivia(state)) {
                stack.push(Configuration { state, guards: stepped, ..at });
            }
            // The next symbol begins beside the guard of the one that is ended here.
            let ends = lexer.accepts(at.state) && !lexer.accepts(state);
            if ends
                && at.guards == NO_GUARDS
                && at.line == Line::Middle
                && state != DEAD
                && *run_on.entry(state).or_insert_with(|| context.runs_on(state))
            {
                let accept = lexer.accept(at.state);
                for mode in context.modes(accept) {
                    let next = lexer.step(lexer.start_of(mode), byte);
                    let beside = guards.with(lexer, NO_GUARDS, state);
                    if next != DEAD && context.can_follow(accept, next) {
                        stack.push(Configuration { state: next, guards: beside, start: lexer.start_of(mode), ..at });
                    }
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A run of blanks: an earlier one and a byte more. The first one is empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    before: u32,
    byte: u8,
    /// Where it leads from column 0.
    column: Column,
}

/// The bytes of a run.
#[must_use]
pub(crate) fn run_bytes(runs: &[Run], mut id: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while id != 0 {
        bytes.push(runs[id as usize].byte);
        id = runs[id as usize].before;
    }
    bytes.reverse();
    bytes
}

/// What is interned while nodes are explored.
#[derive(Debug)]
struct Shared {
    guards: Guards,
    runs: Vec<Run>,
    run_ids: FxHashMap<(u32, u8), u32>,
}

impl Shared {
    /// A run with a byte more; `None` beyond the last column, wherever the run begins.
    fn run_after(&mut self, before: u32, byte: u8) -> Option<u32> {
        if let Some(&id) = self.run_ids.get(&(before, byte)) {
            return Some(id);
        }
        let column = self.runs[before as usize].column.after(byte);
        if column.wide > limits::COLUMN {
            return None;
        }
        let id = u32::try_from(self.runs.len()).expect("run count fits u32");
        self.runs.push(Run { before, byte, column });
        self.run_ids.insert((before, byte), id);
        Some(id)
    }
}

/// What the table is built from.
#[derive(Debug)]
struct Context<'a> {
    language: &'a Language,
    vocabulary: &'a Vocabulary,
    line_bytes: Vec<LineByte>,
    /// Per accept set: the modes that can be in force after it, as a mask.
    modes_after: Vec<u64>,
    /// Per accept set: the accept sets that can come next, ignored ones among them, as a mask; empty if no rule takes it.
    follow: Vec<Vec<u64>>,
    /// The states in which a symbol can still become one of those.
    passes: Vec<bool>,
}

impl<'a> Context<'a> {
    fn new(language: &'a Language, vocabulary: &'a Vocabulary) -> Self {
        let lexer = &language.lexer;
        let words = lexer.accept_set_count().div_ceil(64);
        let symbols = |accept: AcceptId| lexer.lexemes(accept).iter().map(|&lexeme| Language::symbol(lexeme));
        let mut passing = vec![0u64; words];
        for accept in lexer.accept_sets() {
            let role = language.accept_role(accept);
            if role.is_ignored() || role == Role::Newline {
                passing[accept.index() / 64] |= 1 << (accept.index() % 64);
            }
        }
        let mut modes_after = vec![1u64];
        let mut follow = vec![vec![u64::MAX; words]];
        for accept in lexer.accept_sets() {
            let modes = symbols(accept).fold(0, |mask, lexeme| mask | language.grammar.modes_after_lexeme(lexeme));
            modes_after.push(modes.max(1));
            let used = symbols(accept).any(|lexeme| !language.grammar.occurrences(lexeme).is_empty());
            let mut next = if used { passing.clone() } else { vec![0; words] };
            for other in lexer.accept_sets().filter(|_| used) {
                let adjacent =
                    symbols(accept).any(|one| symbols(other).any(|other| language.grammar.is_adjacent(one, other)));
                if adjacent {
                    next[other.index() / 64] |= 1 << (other.index() % 64);
                }
            }
            follow.push(next);
        }
        let passes = (0..lexer.state_count()).map(|state| passes(language, StateId::from_index(state))).collect();
        Self {
            language,
            vocabulary,
            line_bytes: line_bytes(lexer, |accept| language.accept_role(accept)),
            modes_after,
            follow,
            passes,
        }
    }

    /// The same without what makes no difference: the mode where the symbol in progress is sure to be read, and what was
    /// read before it where anything it can be may follow.
    fn canonical(&self, at: Configuration) -> Configuration {
        let lexer = &self.language.lexer;
        if at.line != Line::Middle || self.passes[at.state.index()] {
            return at;
        }
        Configuration { start: lexer.start(), after: NOTHING, ..at }
    }

    fn modes(&self, accept: AcceptId) -> impl Iterator<Item = ModeId> + use<> {
        let mut mask = self.modes_after[accept.index()];
        std::iter::from_fn(move || {
            let mode = (mask != 0).then(|| ModeId::from_index(mask.trailing_zeros() as usize));
            mask &= mask.wrapping_sub(1);
            mode
        })
    }

    /// Whether a symbol in progress can still become one that may come after another.
    fn can_follow(&self, after: AcceptId, state: StateId) -> bool {
        let live = self.language.lexer.live_mask(state);
        self.follow[after.index()].iter().zip(live).any(|(one, other)| one & other != 0)
    }

    /// Whether an accept set may come after another.
    fn can_follow_as(&self, after: AcceptId, accept: AcceptId) -> bool {
        self.follow[after.index()][accept.index() / 64] >> (accept.index() % 64) & 1 == 1
    }

    /// Whether a symbol in progress is a comment or a line join: the line has no symbol yet.
    fn is_trivia(&self, state: StateId) -> bool {
        let trivia = |accept| matches!(self.language.accept_role(accept), Role::Comment | Role::Join);
        self.language.lexer.live(state).all(trivia)
    }

    /// Whether a guard can go on for as long as it likes without accepting.
    fn runs_on(&self, guard: StateId) -> bool {
        let lexer = &self.language.lexer;
        let representatives = lexer.representatives();
        let mut layer = vec![guard];
        // Only a circle has that many steps: the longest lexeme without one is far shorter.
        for _ in 0..64 {
            let mut next: FxHashSet<StateId> = FxHashSet::default();
            for state in layer {
                let steps = representatives.iter().map(|&byte| lexer.step(state, byte));
                next.extend(steps.filter(|&state| state != DEAD && !lexer.accepts(state) && lexer.extends(state)));
            }
            if next.is_empty() {
                return false;
            }
            layer = next.into_iter().collect();
        }
        true
    }
}

/// Whether a symbol in progress leaves the mode in force: it begins one, or may be ignored, or a newline.
pub(crate) fn passes(language: &Language, state: StateId) -> bool {
    let passing = |accept| {
        let role = language.accept_role(accept);
        role.is_ignored() || role == Role::Newline
    };
    language.lexer.is_start(state) || language.lexer.live(state).any(passing)
}

/// What was found under some members; edges still name members.
#[derive(Debug, Default)]
struct Raw {
    groups: Vec<(End, Vec<TokenId>)>,
    edges: Vec<(Label, Vec<Member>)>,
    odd: Vec<TokenId>,
}

/// One node of what was found under its members.
fn join<'a>(parts: impl Iterator<Item = &'a Raw>, sets: &mut TokenSets, numbers: &mut Numbers) -> Found {
    let mut groups: FxHashMap<End, Vec<&[TokenId]>> = FxHashMap::default();
    let mut edges: FxHashMap<Label, Vec<Member>> = FxHashMap::default();
    let mut found = Found::default();
    for part in parts {
        for (end, tokens) in &part.groups {
            groups.entry(*end).or_default().push(tokens);
        }
        for (label, members) in &part.edges {
            edges.entry(*label).or_default().extend(members);
        }
        found.odd.extend(&part.odd);
    }
    found.odd.sort_unstable();
    found.odd.dedup();
    found.groups = groups.into_iter().map(|(end, lists)| (end, sets.intern(&lists))).collect();
    found.groups.sort_unstable();
    let mut edges: Vec<(Label, Vec<Member>)> = edges.into_iter().collect();
    edges.sort_unstable_by_key(|edge| edge.0);
    for (label, mut members) in edges {
        members.sort_unstable();
        members.dedup();
        found.edges.push((label, numbers.of(members)));
    }
    found
}

struct Explorer<'a> {
    context: &'a Context<'a>,
    shared: &'a Mutex<Shared>,
    /// The node of the trie whose byte is read.
    at: usize,
    groups: Vec<(End, Vec<TokenId>)>,
    group_of: FxHashMap<End, usize>,
    recent: usize,
    edges: FxHashMap<Label, Vec<Member>>,
    odd: Vec<TokenId>,
    /// Steps that were looked up before, so that threads do not wait for each other.
    guard_steps: FxHashMap<(GuardId, u8), Option<GuardId>>,
    run_steps: FxHashMap<(u32, u8), Option<u32>>,
}

impl<'a> Explorer<'a> {
    fn new(context: &'a Context<'a>, shared: &'a Mutex<Shared>) -> Self {
        Self {
            context,
            shared,
            at: 0,
            groups: Vec::new(),
            group_of: FxHashMap::default(),
            recent: 0,
            edges: FxHashMap::default(),
            odd: Vec::new(),
            guard_steps: FxHashMap::default(),
            run_steps: FxHashMap::default(),
        }
    }

    fn shared(&self) -> std::sync::MutexGuard<'a, Shared> {
        self.shared.lock().expect("exploring does not panic")
    }

    /// What the first bytes of tokens do: the edges, and the members that stay in the node.
    fn first_steps(mut self, root: Configuration) -> (Raw, Vec<Member>) {
        let nodes = self.context.vocabulary.nodes();
        let mut stays = Vec::new();
        let mut stepped = Vec::new();
        let mut index = 0;
        while index < nodes.len() {
            stepped.clear();
            self.at = index;
            branch::step(&mut self, root, nodes[index].byte, &mut stepped);
            let at = u32::try_from(index).expect("trie fits u32");
            stays.extend(stepped.iter().map(|&configuration| (at, configuration)));
            index = nodes[index].skip as usize;
        }
        (self.found(), stays)
    }

    fn explore(mut self, members: &[Member]) -> Raw {
        let vocabulary = self.context.vocabulary;
        let nodes = vocabulary.nodes();
        // The configurations at each depth below a member, in one flat list.
        let mut configurations: Vec<Configuration> = Vec::new();
        let mut begins: Vec<usize> = Vec::new();
        let mut stepped: Vec<Configuration> = Vec::new();
        for &(at, configuration) in members {
            let top = &nodes[at as usize];
            self.end_here(configuration, vocabulary.ending(top));
            configurations.clear();
            configurations.push(configuration);
            begins.clear();
            begins.push(0);
            let mut index = at as usize + 1;
            while index < top.skip as usize {
                let node = &nodes[index];
                let level = (node.depth - top.depth) as usize;
                if begins.len() > level {
                    configurations.truncate(begins[level]);
                    begins.truncate(level);
                }
                stepped.clear();
                self.at = index;
                for &at in &configurations[begins[level - 1]..] {
                    branch::step(&mut self, at, node.byte, &mut stepped);
                }
                if stepped.is_empty() {
                    index = node.skip as usize;
                    continue;
                }
                let ending = vocabulary.ending(node);
                if !ending.is_empty() {
                    for &configuration in &stepped {
                        self.end_here(configuration, ending);
                    }
                }
                begins.push(configurations.len());
                configurations.append(&mut stepped);
                index += 1;
            }
        }
        self.found()
    }

    fn found(self) -> Raw {
        Raw { groups: self.groups, edges: self.edges.into_iter().collect(), odd: self.odd }
    }

    fn end_here(&mut self, at: Configuration, tokens: &[TokenId]) {
        if tokens.is_empty() {
            return;
        }
        let in_line = at.line != Line::Middle;
        let end = End { state: at.state, guards: at.guards, in_line };
        if self.groups.get(self.recent).is_none_or(|group| group.0 != end) {
            let fresh = self.groups.len();
            self.recent = *self.group_of.entry(end).or_insert(fresh);
            if self.recent == fresh {
                self.groups.push((end, Vec::new()));
            }
        }
        self.groups[self.recent].1.extend(tokens);
    }

    fn edge(&mut self, label: Label, to: Configuration) {
        let member = (u32::try_from(self.at).expect("trie fits u32"), self.context.canonical(to));
        self.edges.entry(label).or_default().push(member);
    }

    fn run_after(&mut self, run: u32, byte: u8) -> Option<u32> {
        if let Some(&known) = self.run_steps.get(&(run, byte)) {
            return known;
        }
        let longer = self.shared().run_after(run, byte);
        self.run_steps.insert((run, byte), longer);
        longer
    }
}

impl Cut for Configuration {
    #[inline(always)]
    fn state(&self) -> StateId {
        self.state
    }

    #[inline(always)]
    fn guards(&self) -> GuardId {
        self.guards
    }

    #[inline(always)]
    fn is_before_line(&self) -> bool {
        self.line != Line::Middle
    }

    #[inline(always)]
    fn with_state(self, state: StateId) -> Self {
        Self { state, ..self }
    }

    #[inline(always)]
    fn with_guards(self, guards: GuardId) -> Self {
        Self { guards, ..self }
    }

    #[inline(always)]
    fn at_line_start(self) -> Self {
        Self { line: Line::Absolute(0), ..self }
    }
}

/// What the parser would be asked becomes an edge, for each mode that its answer can leave in force.
impl Reader for Explorer<'_> {
    type Branch = Configuration;
    type Read = Option<Label>;

    const NOTHING: Option<Label> = None;

    #[inline(always)]
    fn lexer(&self) -> &Lexer {
        &self.context.language.lexer
    }

    #[inline(always)]
    fn role(&self, accept: AcceptId) -> Role {
        self.context.language.accept_role(accept)
    }

    #[inline(always)]
    fn line_byte(&self, byte: u8) -> LineByte {
        self.context.line_bytes[byte as usize]
    }

    fn step_guards(&mut self, guards: GuardId, byte: u8) -> Option<GuardId> {
        if guards == NO_GUARDS {
            return Some(guards);
        }
        let lexer = &self.context.language.lexer;
        let key = (guards, lexer.class_of(byte));
        if let Some(&known) = self.guard_steps.get(&key) {
            return known;
        }
        let stepped = self.shared().guards.step(lexer, guards, byte);
        self.guard_steps.insert(key, stepped);
        stepped
    }

    fn add_guard(&mut self, guards: GuardId, state: StateId) -> GuardId {
        let lexer = &self.context.language.lexer;
        if state == DEAD { guards } else { self.shared().guards.with(lexer, guards, state) }
    }

    #[inline(always)]
    fn between(&self, branch: &Configuration) -> StateId {
        branch.start
    }

    fn indent(&mut self, branch: Configuration, byte: u8) -> Option<Configuration> {
        let line = match branch.line {
            Line::Relative(run) => Line::Relative(self.run_after(run, byte)?),
            Line::Absolute(run) => Line::Absolute(self.run_after(run, byte)?),
            Line::Middle => Line::Middle,
        };
        Some(Configuration { line, ..branch })
    }

    /// A join fixes a column in an indentation, which a node does not know: the tokens are left to be tried.
    fn join(&mut self, branch: Configuration) -> Option<Configuration> {
        if branch.line == Line::Middle {
            return Some(branch);
        }
        let vocabulary = self.context.vocabulary;
        let nodes = vocabulary.nodes();
        for node in &nodes[self.at..nodes[self.at].skip as usize] {
            self.odd.extend(vocabulary.ending(node));
        }
        None
    }

    /// Whether brackets are open may not be known: then the newline is both ignored and read.
    fn end_line(
        &mut self,
        branch: Configuration,
        accept: AcceptId,
        mut each: impl FnMut(&mut Self, Configuration, Option<Label>),
    ) {
        let context = self.context;
        let ignored = Configuration { state: branch.start, inside: true, ..branch };
        each(self, ignored, (!branch.inside).then_some(Label::Inside));
        if !branch.inside && context.can_follow_as(branch.after, accept) {
            for mode in context.modes(accept) {
                let start = context.language.lexer.start_of(mode);
                let ended = Configuration { state: start, start, after: NOTHING, ..branch.at_line_start() };
                each(self, ended, Some(Label::Newline(accept, mode)));
            }
        }
    }

    fn read(
        &mut self,
        branch: Configuration,
        accept: AcceptId,
        role: Role,
        mut each: impl FnMut(&mut Self, Configuration, Option<Label>),
    ) {
        let context = self.context;
        for mode in context.modes(accept) {
            let start = context.language.lexer.start_of(mode);
            let inside = branch.inside && role == Role::Symbol;
            let ended = Configuration { state: start, start, line: Line::Middle, after: accept, inside, ..branch };
            each(self, ended, Some(Label::Read(accept, mode)));
        }
    }

    #[inline]
    fn reach(&mut self, branch: Configuration, read: Option<Label>, out: &mut Vec<Configuration>) {
        match read {
            Some(label) => self.edge(label, branch),
            None => out.push(self.context.canonical(branch)),
        }
    }

    /// A symbol that cannot come after the one before it in any text is left out.
    #[inline]
    fn begin_symbol(&mut self, branch: Configuration, read: Option<Label>, out: &mut Vec<Configuration>) {
        if self.context.can_follow(branch.after, branch.state) {
            self.reach(branch, read, out);
        }
    }

    fn begin_line(&mut self, branch: Configuration, state: StateId, read: Option<Label>, _: &mut Vec<Configuration>) {
        let label = match read {
            Some(Label::Newline(accept, mode)) => Label::NewlineBegin(accept, mode),
            _ => Label::Begin(branch.line),
        };
        self.edge(label, Configuration { state, line: Line::Middle, after: NOTHING, ..branch });
    }
}
