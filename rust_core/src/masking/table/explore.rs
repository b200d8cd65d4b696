//! Exploration of the vocabulary's trie under the members of a node: a walk of lexer and layout, in which each question
//! to the parser becomes an edge.

use crate::ids::{AcceptId, GuardId, StateId, TokenId};
use crate::lexing::branch::{self, Cut, Reader};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::layout::Column;
use crate::lexing::lexer::{DEAD, Lexer};
use crate::lexing::roles::{LineByte, Role};
use crate::limits;
use crate::masking::table::configuration::{Configuration, End, Label, Line, NOTHING, Run};
use crate::masking::table::context::TableInputs;
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// Some tokens after a sequence of lexemes: those below a node of the vocabulary's trie.
pub(crate) type Member = (u32, Configuration);

/// Result of exploring some members; edges still name members.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    /// Tokens that end there.
    pub groups: Vec<(End, Vec<TokenId>)>,
    /// Lexemes with which other tokens go on.
    pub edges: Vec<(Label, Vec<Member>)>,
    /// Tokens to be tried byte by byte.
    pub odd: Vec<TokenId>,
}

/// Tables interned while nodes are explored.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Guard sets.
    pub guards: Guards,
    /// Runs of blanks.
    pub runs: Vec<Run>,
    run_ids: FxHashMap<(u32, u8), u32>,
}

impl Shared {
    /// Some guard sets, and the empty run.
    pub(crate) fn new(guards: Guards) -> Self {
        let empty = Run { before: 0, byte: 0, column: Column::ZERO };
        Self { guards, runs: vec![empty], run_ids: FxHashMap::default() }
    }

    /// A run with one more byte; `None` beyond the last column, wherever the run begins.
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

/// One walk through the trie.
pub(crate) struct Explorer<'a> {
    context: &'a TableInputs<'a>,
    shared: &'a Mutex<Shared>,
    /// The node of the trie whose byte is read.
    at: usize,
    groups: Vec<(End, Vec<TokenId>)>,
    group_of: FxHashMap<End, usize>,
    recent: usize,
    edges: FxHashMap<Label, Vec<Member>>,
    odd: Vec<TokenId>,
    /// Steps looked up before, so that threads do not wait for each other.
    guard_steps: FxHashMap<(GuardId, u8), Option<GuardId>>,
    run_steps: FxHashMap<(u32, u8), Option<u32>>,
}

impl<'a> Explorer<'a> {
    /// A walk without results yet.
    pub(crate) fn new(context: &'a TableInputs<'a>, shared: &'a Mutex<Shared>) -> Self {
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

    /// Take the first bytes of tokens: the edges, and the members that stay in the node.
    pub(crate) fn first_steps(mut self, root: Configuration) -> (Raw, Vec<Member>) {
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

    /// Explore some members.
    pub(crate) fn explore(mut self, members: &[Member]) -> Raw {
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

/// Each question to the parser becomes an edge, for each mode that its answer can leave in force.
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
        self.context.line_byte(byte)
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

    #[inline]
    fn pass_over(&mut self, branch: Configuration, mut each: impl FnMut(&mut Self, Configuration, Option<Label>)) {
        each(self, branch.with_state(branch.start), None);
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

    /// Read a newline. The table may not know whether brackets are open; then the newline is both ignored and read.
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
        let after = context.like(accept);
        for mode in context.modes(accept) {
            let start = context.language.lexer.start_of(mode);
            let inside = branch.inside && role == Role::Symbol;
            let ended = Configuration { state: start, start, line: Line::Middle, after, inside, ..branch };
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

    /// Begin a symbol. One that never follows the one before it is left out.
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
