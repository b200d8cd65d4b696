//! Token spanner table: the lexeme sequence of each token of a vocabulary, from each state of the lexer. It is
//! GreatGramma's (arXiv 2502.05111), inverted: from lexeme sequences to tokens.
//!
//! A node stands for a sequence of lexemes. It holds the tokens that end in it, in groups of equal lexer states, and an
//! edge for each lexeme with which other tokens go on. Its contents depend on its *members*: places in the vocabulary's
//! trie with the lexer's configurations after the sequence. So nodes are determinised by their members. In this subset
//! construction, all sequences that lead to `)` after `)` after `)` share its node. A lexeme that never follows the one
//! before it in the language is left out, which makes the table smaller.

use crate::ids::{ModeId, TokenId};
use crate::language::definition::Definition;
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::lexer::DEAD;
use crate::masking::table::configuration::{Configuration, End, Label, Line, NOTHING, Run};
use crate::masking::table::context::TableInputs;
use crate::masking::table::explore::{Explorer, Member, Raw, Shared};
use crate::masking::table::sets::TokenSets;
use crate::masking::vocabulary::Vocabulary;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Mutex;

/// Before the first byte of a token.
const ROOT: u32 = u32::MAX;

/// Nodes explored at a time. Their tokens are in memory as lists until they are interned.
const CHUNK: usize = 4096;

/// A node of the table while it is built.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Tokens that end in the node, as sets.
    pub groups: Vec<(End, u32)>,
    /// Lexemes with which other tokens go on.
    pub edges: Vec<(Label, u32)>,
    /// Tokens that the table does not describe.
    pub odd: Vec<TokenId>,
}

/// The table while it is built.
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

/// Build the table from every state of the lexer, on some threads.
///
/// The caller's thread only waits. It may belong to another pool, such as the one that fills batches of masks. If it
/// called our pool itself, it would meanwhile take up work of its own pool: another mask, which waits for this table.
#[must_use]
pub(crate) fn build(language: &Definition, vocabulary: &Vocabulary, threads: usize) -> Built {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().spawn_scoped(scope, || build_here(language, vocabulary, threads));
        match builder {
            Ok(builder) => builder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // No thread is available. Without a pool, this thread takes up no work of another pool either.
            Err(_) => build_here(language, vocabulary, 1),
        }
    })
}

/// Build the table, on several threads only from a thread that is in no pool.
fn build_here(language: &Definition, vocabulary: &Vocabulary, threads: usize) -> Built {
    let workers = Workers::new(threads);
    let context = TableInputs::new(language, vocabulary);
    let mut guards = Guards::default();
    let roots = roots(&context, &mut guards);
    let shared = Mutex::new(Shared::new(guards));
    let mut sets = TokenSets::new(vocabulary.len());
    let mut numbers = Numbers::default();
    let numbered: Vec<(Configuration, u32)> =
        roots.iter().map(|&root| (root, numbers.of(vec![(ROOT, root)]))).collect();
    numbers.pending.clear();

    // Roots differ in the effect of their first byte only, so the nodes after it are explored once for all.
    let firsts = workers.map(&roots, |&root| Explorer::new(&context, &shared).first_steps(root));
    let mut members: Vec<Member> = firsts.iter().flat_map(|first| first.1.iter().copied()).collect();
    members.sort_unstable();
    members.dedup();
    let explored = workers.map(&members, |&member| Explorer::new(&context, &shared).explore(&[member]));
    let place: FxHashMap<Member, usize> = members.iter().enumerate().map(|(index, &member)| (member, index)).collect();
    let mut nodes = Vec::new();
    for (own, stays) in &firsts {
        let parts = std::iter::once(own).chain(stays.iter().map(|stay| &explored[place[stay]]));
        nodes.push(join(parts, &mut sets, &mut numbers));
    }
    drop((firsts, explored, place));
    // Subset construction: `join` numbers the members of each edge's target, and new ones become pending. Nodes are
    // pushed in the order of their numbers, on any number of threads. A chunk's token lists are interned before the
    // next chunk is explored, which bounds the memory.
    while !numbers.pending.is_empty() {
        for chunk in std::mem::take(&mut numbers.pending).chunks(CHUNK) {
            let explored = workers.map(chunk, |members| Explorer::new(&context, &shared).explore(members));
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
    /// Nodes still to be explored, in the order of their numbers.
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

/// Threads that explore nodes. Results come in the order of the inputs.
struct Workers(Option<rayon::ThreadPool>);

impl Workers {
    /// Without threads of their own, where one is enough or no more can be had, everything is done on the caller's.
    fn new(threads: usize) -> Self {
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
        Self((threads > 1).then(pool).flatten())
    }

    fn map<I: Sync, O: Send>(&self, inputs: &[I], work: impl Fn(&I) -> O + Sync + Send) -> Vec<O> {
        match &self.0 {
            Some(pool) => pool.install(|| inputs.par_iter().map(work).collect()),
            None => inputs.iter().map(work).collect(),
        }
    }
}

/// The configurations in which a token can begin: every state of the lexer, those of an indentation, and symbols that
/// began beside one guard. Several guards are left to the plain walk.
fn roots(context: &TableInputs<'_>, guards: &mut Guards) -> Vec<Configuration> {
    let language = context.language;
    let lexer = &language.lexer;
    let representatives = lexer.representatives();
    let mut found: Vec<Configuration> = Vec::new();
    let mut seen: FxHashSet<Configuration> = FxHashSet::default();
    let mut stack: Vec<Configuration> = Vec::new();
    for mode in (0..language.mode_count()).map(ModeId::from_index) {
        let start = lexer.start_of(mode);
        let line = Line::Middle;
        let middle = Configuration { state: start, guards: NO_GUARDS, start, line, after: NOTHING, inside: false };
        stack.push(middle);
        if language.layout.is_some() {
            stack.push(Configuration { line: Line::Relative(0), ..middle });
        }
    }
    // Symbols that only the first byte of a file begins.
    let begun = |state| Configuration {
        state,
        guards: NO_GUARDS,
        start: lexer.start(),
        line: Line::Middle,
        after: NOTHING,
        inside: false,
    };
    stack.extend(lexer.file_start().map(begun));
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
            if ends && at.guards == NO_GUARDS && at.line == Line::Middle && state != DEAD && lexer.extends(state) {
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

/// Make one node of the parts found under its members.
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
