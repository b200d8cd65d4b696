//! Branches: the lexer, the layout stage and the parser stepped together, one byte at a time.
//!
//! A branch is one way to cut the text so far into symbols. More than one lives only while a symbol may have ended or may
//! still go on; a branch that cannot be completed is dropped at once, so a list of branches is viable iff it is not empty.

use crate::chart::left::{FIRST_SET, Indents, LeftChart, Mark, NO_SET, Read, Set};
use crate::chart::next::{NextId, Nexts};
use crate::chart::predict::Predictions;
use crate::colour::colours::Context;
use crate::colour::demands::{Demands, Outlook};
use crate::ids::{AcceptId, FreeId, GuardId, ModeId, NodeId, SetId, StateId, SymbolId};
use crate::language::ahead::{AHEAD_WORDS, Ahead};
use crate::language::compiled::Language;
use crate::language::definition::CommentEnd;
use crate::language::follow::bit;
use crate::language::free::{Cost, INFINITE, LINE, MIDDLE};
use crate::language::shape::{ShapeId, ShapeIndex};
use crate::language::shaped::{Reach, ShapedLexer};
use crate::lexing::branch::{self, Cut, Reader};
use crate::lexing::guards::{Guards, NO_GUARDS, live_beside};
use crate::lexing::layout::{Column, Columns, IndentationId, Indentations};
use crate::lexing::lexer::{DEAD, Lexer, NEVER, bits};
use crate::lexing::roles::{LineByte, Role, line_bytes};
use crate::limits;
use crate::masking::cache::{Key, Mask, ShapeMemo};
use crate::masking::vocabulary::Vocabulary;
use crate::masking::walk::Taken;
use crate::right::queries::{Around, Right};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::sync::Arc;

/// Where in a logical line a branch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// The line has no symbol yet: its indentation so far, and the column a backslash-newline has fixed.
    Line {
        /// The column of the next byte.
        column: Column,
        /// The column that a backslash-newline has fixed.
        kept: Option<Column>,
    },
    /// The line has a symbol (always so in a language without layout).
    Middle,
}

/// One way to cut the text so far into symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Branch {
    /// The left chart's set after the last ended symbol.
    pub set: SetId,
    /// The symbol in progress; the lexer's start state between symbols.
    pub state: StateId,
    /// Ended symbols that must not match again.
    pub guards: GuardId,
    /// Where in the logical line.
    pub mode: Mode,
    /// Open brackets.
    pub depth: u32,
    /// Open blocks.
    pub indentation: IndentationId,
    /// The last byte ended a backslash-newline: the file must not end here.
    pub joined: bool,
}

/// One way in which a symbol in progress can go on, and where the cursor may fall then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Way {
    /// What is read; `None` for an ignored lexeme.
    accept: Option<AcceptId>,
    free: Option<FreeId>,
    /// Bitset over the colours' targets.
    targets: Vec<u64>,
}

/// An interned list of ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct WaysId(u32);

const UNKNOWN_WAYS: u32 = u32::MAX;

/// One thing the middle can begin with, for the explicit quotient grammar.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The rest of the symbol in progress, if there is one to be passed on.
    pub lexeme: Option<String>,
    /// The set after it.
    pub set: SetId,
    /// The free state after it.
    pub free: FreeId,
    /// The symbol ends in R: the middle holds nothing else.
    pub crosses: bool,
}

/// What a cursor can be inside of that is not code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// A comment.
    Comment,
    /// A string literal, or the text of one that holds code; not that code.
    String,
}

/// Which side of a bracket the newline is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Nesting {
    Outside,
    Inside,
}

/// Everything one session computes with.
#[derive(Debug)]
pub struct Engine {
    /// The language.
    pub language: Arc<Language>,
    /// The right context.
    pub right: Right,
    left: LeftChart,
    predictions: Predictions,
    demands: Demands,
    columns: Columns,
    indentations: Indentations,
    guards: Guards,
    ways: Vec<Vec<Way>>,
    ways_ids: FxHashMap<Vec<Way>, WaysId>,
    /// Ways of a state without guards: `[outside, inside]`.
    plain_ways: [Vec<u32>; 2],
    guarded_ways: FxHashMap<(StateId, GuardId, Nesting), WaysId>,
    allowed: FxHashMap<(SetId, WaysId), bool>,
    /// The last answer of `allowed`: a mask asks the same again for every byte of an identifier or a string.
    recent: Option<(SetId, WaysId, bool)>,
    nexts: Nexts,
    /// Where in the shape the middle is, if it must have one.
    at: ShapeId,
    /// How R goes on with a symbol that the cursor cuts, and which of these each pair of lexer and shape can come to.
    cuts: Option<(Vec<(u32, AcceptId)>, Reach)>,
    shaped_ways: FxHashMap<(StateId, GuardId, ShapeId, Nesting), WaysId>,
    /// The stacks of all branches are loose: what may come next depends on nothing in R.
    loose: bool,
    /// The tokens that do not leave the shape, by vocabulary and place.
    shape_indexes: FxHashMap<(u128, ShapeId), Arc<ShapeIndex>>,
    /// `loose` was found out for some branch, and holds for all sessions that share this engine.
    settled: bool,
    /// Masks where R has a say, and the size of the chart when the last session was opened.
    own_masks: FxHashMap<Key, Mask>,
    own_masks_of: (u64, u64),
    opened: usize,
    /// Sets and colours when the first session was opened.
    begun: Option<(usize, usize)>,
    shapes: ShapeMemo,
    key: Vec<u32>,
    /// R was asked whether a branch is viable: at a limit even where the stack is loose, since R may close what the middle could
    /// not open.
    pub(crate) asked_right: bool,
    /// Accept sets that a symbol in progress beside guards can still be, as masks.
    guarded_live: FxHashMap<(StateId, GuardId), Box<[u64]>>,
    line_bytes: Vec<LineByte>,
    newline_accepts: Vec<AcceptId>,
    /// What a symbol in progress may be that goes on by at least one byte.
    live_later: FxHashMap<StateId, Box<[u64]>>,
}

impl Engine {
    /// Lexes and parses R, and prepares an empty left chart.
    #[must_use]
    pub fn open(language: &Arc<Language>, right_text: &[u8]) -> Self {
        let mut predictions = Predictions::default();
        let right = Right::open(language, &mut predictions, right_text);
        let left = LeftChart::new(language, &mut predictions);
        let demands = Demands::new(language, &right);
        let states = language.lexer.state_count();
        Self {
            language: language.clone(),
            left,
            predictions,
            demands,
            columns: Columns::default(),
            indentations: Indentations::default(),
            guards: Guards::default(),
            ways: Vec::new(),
            ways_ids: FxHashMap::default(),
            plain_ways: [vec![UNKNOWN_WAYS; states], vec![UNKNOWN_WAYS; states]],
            guarded_ways: FxHashMap::default(),
            allowed: FxHashMap::default(),
            recent: None,
            nexts: Nexts::default(),
            at: ShapeId(0),
            cuts: language.shaped.as_ref().map(|shaped| cuts(language, shaped, &right)),
            shaped_ways: FxHashMap::default(),
            loose: false,
            shape_indexes: FxHashMap::default(),
            own_masks: FxHashMap::default(),
            settled: false,
            own_masks_of: (0, 0),
            opened: 0,
            begun: None,
            shapes: ShapeMemo::default(),
            key: Vec::new(),
            asked_right: false,
            guarded_live: FxHashMap::default(),
            live_later: FxHashMap::default(),
            line_bytes: line_bytes(&language.lexer, |accept| language.accept_role(accept)),
            newline_accepts: language
                .lexer
                .accept_sets()
                .filter(|&accept| language.accept_role(accept) == Role::Newline)
                .collect(),
            right,
        }
    }

    /// The branch before any text.
    #[must_use]
    pub fn first_branch(&self) -> Branch {
        Branch {
            set: FIRST_SET,
            state: self.start_at(FIRST_SET),
            guards: NO_GUARDS,
            mode: if self.language.layout.is_some() {
                Mode::Line { column: Column::ZERO, kept: None }
            } else {
                Mode::Middle
            },
            depth: 0,
            indentation: IndentationId::default(),
            joined: false,
        }
    }

    /// The lexer's state between two symbols, in the mode that the set before them is in.
    #[inline]
    pub(crate) fn start_at(&self, set: SetId) -> StateId {
        self.language.lexer.start_of(self.left.set(set).mode)
    }

    /// The left chart's size, to go back to.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.left.mark()
    }

    /// Forgets the sets made since a mark. No branch made since may be used again.
    pub fn truncate(&mut self, mark: Mark) {
        self.left.truncate(mark);
        let sets = self.left.len();
        self.demands.truncate(sets);
        self.allowed.retain(|key, _| key.0.index() < sets);
        self.recent = None;
        self.nexts.truncate(sets);
        self.shapes.truncate(sets);
    }

    /// A set of the left chart.
    #[inline]
    pub(crate) fn left_set(&self, id: SetId) -> &Set {
        self.left.set(id)
    }

    /// The tokens that do not leave the shape; `None` where any middle will do.
    pub(crate) fn shape_index(&mut self, vocabulary: &Vocabulary, at: ShapeId) -> Option<Arc<ShapeIndex>> {
        let shape = self.language.free.shape()?;
        let key = (vocabulary.fingerprint(), at);
        if self.shape_indexes.len() >= limits::SHAPE_INDEXES {
            self.shape_indexes.clear();
        }
        Some(self.shape_indexes.entry(key).or_insert_with(|| Arc::new(shape.index(vocabulary, at))).clone())
    }

    /// Masks where R has a say; those of another vocabulary, or from before they were cleared, are forgotten.
    pub(crate) fn own_masks(&mut self, of: (u64, u64)) -> &mut FxHashMap<Key, Mask> {
        if self.own_masks_of != of {
            self.own_masks_of = of;
            self.own_masks.clear();
        }
        &mut self.own_masks
    }

    /// Whether masks have left so many sets behind that the next one shall leave none.
    pub(crate) fn is_full(&self) -> bool {
        self.left.len() > self.opened + limits::MASK_SETS
    }

    /// Room for the key of a mask.
    pub(crate) fn take_key(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.key)
    }

    pub(crate) fn put_key(&mut self, key: Vec<u32>) {
        self.key = key;
    }

    pub(crate) fn take_shapes(&mut self) -> ShapeMemo {
        std::mem::take(&mut self.shapes)
    }

    pub(crate) fn put_shapes(&mut self, shapes: ShapeMemo) {
        self.shapes = shapes;
    }

    /// The columns of the open blocks, innermost first.
    pub(crate) fn for_each_block(&self, indentation: IndentationId, mut each: impl FnMut(Column)) {
        let mut at = indentation;
        while let Some(parent) = self.indentations.parent(at) {
            each(self.indentations.top(at));
            at = parent;
        }
    }

    /// Whether a branch is in an indentation.
    pub(crate) fn is_indentation(&self, branch: &Branch) -> bool {
        self.indentation(branch).is_some()
    }

    /// The column of the next byte, in an indentation.
    pub(crate) fn indentation(&self, branch: &Branch) -> Option<Column> {
        match branch.mode {
            Mode::Line { column, .. } if self.language.lexer.is_start(branch.state) => Some(column),
            Mode::Line { .. } | Mode::Middle => None,
        }
    }

    /// Whether the symbol in progress may end as it is.
    pub(crate) fn may_end(&mut self, branch: &Branch) -> bool {
        let accept = self.language.lexer.accept(branch.state);
        self.end_symbol(branch, accept).is_some()
    }

    /// The branches after some bytes that leave the whole viable.
    pub(crate) fn advance_all(&mut self, branches: &[Branch], bytes: &[u8], out: &mut Vec<Branch>) {
        let mut before = branches.to_vec();
        for &byte in bytes {
            self.advance(&before, byte, out);
            std::mem::swap(&mut before, out);
        }
        std::mem::swap(&mut before, out);
    }

    /// Finds out whether R has a say in what may follow the branches that a session opens with. Branches that come of them
    /// need not be asked again. False where it is otherwise for an earlier session: the two cannot share an engine.
    pub fn loosen(&mut self, branches: &[Branch]) -> bool {
        self.opened = self.left.len();
        self.begun.get_or_insert((self.left.len(), self.demands.sizes().0));
        let loose = branches.iter().all(|branch| {
            let (demands, context) = self.parts();
            demands.is_loose(context, branch.set)
        });
        // Without branches nothing is ever asked.
        if self.settled {
            return branches.is_empty() || loose == self.loose;
        }
        self.loose = loose;
        self.settled = !branches.is_empty();
        true
    }

    /// Whether sessions have left so much behind in this engine that the next one shall have its own.
    #[must_use]
    pub fn is_worn(&self) -> bool {
        self.begun.is_some_and(|(sets, colours)| {
            self.left.len() > sets + limits::REUSED_SETS || self.demands.sizes().0 > colours + limits::REUSED_COLOURS
        })
    }

    /// Whether R has no say in what may come next.
    #[must_use]
    pub fn is_loose(&self) -> bool {
        self.loose
    }

    /// Takes R into account at every step, even where it has no say: the plain twin.
    pub fn tighten(&mut self) {
        self.loose = false;
    }

    /// The sizes of everything kept: sets, lattice nodes, colours, frames.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize, usize, usize) {
        let (colours, frames) = self.demands.sizes();
        (self.left.len(), self.right.node_count(), colours, frames)
    }

    /// The colours and what they are computed from, for the explicit quotient grammar.
    pub fn parts(&mut self) -> (&mut Demands, Context<'_>) {
        (
            &mut self.demands,
            Context {
                language: &self.language,
                right: &self.right,
                left: &self.left,
                predictions: &self.predictions,
                columns: &self.columns,
            },
        )
    }

    pub(crate) fn scan(&mut self, set: SetId, read: Read) -> SetId {
        self.left.scan(&self.language, &mut self.predictions, set, read)
    }

    /// Where the cursor may fall right after a set.
    pub fn outlook(&mut self, set: SetId) -> Arc<Outlook> {
        let (demands, context) = self.parts();
        demands.outlook(context, set)
    }

    /// One byte's step of every branch, those that cannot be parsed left out; viability is not asked.
    pub fn step_all(&mut self, branches: &[Branch], byte: u8, out: &mut Vec<Branch>) {
        out.clear();
        for branch in branches {
            branch::step(self, *branch, byte, out);
        }
        if out.len() > 1 {
            out.sort_unstable();
            out.dedup();
        }
    }

    /// One byte's step of every branch, those that cannot be completed left out.
    pub fn advance(&mut self, branches: &[Branch], byte: u8, out: &mut Vec<Branch>) {
        self.step_all(branches, byte, out);
        out.retain(|branch| self.viable(branch));
    }

    /// The branch after a byte that only goes on with its symbol: nothing ends, nothing forks. `None` if more happens; the
    /// general step then says what.
    #[inline]
    #[must_use]
    pub fn continued(&self, branch: &Branch, byte: u8) -> Option<Branch> {
        let lexer = &self.language.lexer;
        if branch.guards != NO_GUARDS || lexer.is_start(branch.state) {
            return None;
        }
        let state = lexer.step(branch.state, byte);
        if state == DEAD || lexer.accepts(branch.state) && !lexer.accepts(state) {
            return None;
        }
        Some(Branch { state, joined: false, ..*branch })
    }

    /// Reads the layout symbols that a line's first symbol at a column brings about.
    pub(crate) fn begin_line(&mut self, branch: &Branch, column: Column) -> Option<Branch> {
        let mut begun = Branch { mode: Mode::Middle, ..*branch };
        loop {
            let top = self.indentations.top(begun.indentation);
            match column.compare(top) {
                Some(Ordering::Equal) => return Some(begun),
                Some(Ordering::Greater) if begun.indentation == branch.indentation => {
                    if self.indentations.depth(begun.indentation) >= self.language.limits.blocks {
                        return None;
                    }
                    let id = self.columns.intern(column);
                    let indents = Indents { own: column.least_bytes(), deeper: column.least_bytes_right_of() };
                    self.left.price(id, indents);
                    begun.set = self.scan(begun.set, Read::Indent(id));
                    begun.indentation = self.indentations.push(begun.indentation, column);
                    return (begun.set != NO_SET).then_some(begun);
                }
                // Only the wide column pops, as in CPython's tokenizer; the last comparison looks at both.
                _ if column.wide < top.wide => {
                    begun.set = self.scan(begun.set, Read::Dedent);
                    begun.indentation = self.indentations.parent(begun.indentation)?;
                    if begun.set == NO_SET {
                        return None;
                    }
                }
                _ => return None,
            }
        }
    }

    /// The branch after the symbol in progress has been ended as `accept`, guards left as they were.
    pub(crate) fn end_symbol(&mut self, branch: &Branch, accept: AcceptId) -> Option<Branch> {
        let mut found = None;
        branch::end_symbol(self, *branch, accept, |_, ended, ()| found = Some(ended));
        found
    }

    /// What comes of a symbol that is passed on, between two symbols; `None` where the parser refuses it.
    fn pass_on(&mut self, branch: Branch, accept: AcceptId) -> Option<Branch> {
        let set = self.scan(branch.set, Read::Accepted(accept));
        (set != NO_SET).then(|| Branch { set, state: self.start_at(set), ..branch })
    }

    /// Whether a symbol in progress can still become one that may come here, or that is ignored. Text has to be read to its
    /// symbol's end before the parser refuses it; this says from which byte on that was certain.
    #[must_use]
    pub fn can_go_on(&self, branch: &Branch) -> bool {
        let lexer = &self.language.lexer;
        lexer.is_start(branch.state) || lexer.live(branch.state).any(|accept| self.can_read(branch, accept))
    }

    /// Whether the symbol in progress of a branch may end as an accept set, as far as grammar and brackets say it.
    fn can_read(&self, branch: &Branch, accept: AcceptId) -> bool {
        match self.language.accept_role(accept) {
            Role::Blank | Role::Comment | Role::Join => true,
            Role::Newline if branch.depth > 0 => true,
            Role::Open if branch.depth >= self.language.limits.brackets => false,
            _ => self.left.can_scan(&self.language, &self.predictions, branch.set, accept),
        }
    }

    /// What the cursor is inside of at the end of a branch, whichever way the symbol in progress goes on.
    pub fn inside(&mut self, branch: &Branch) -> Option<Inside> {
        let language = self.language.clone();
        let lexer = &language.lexer;
        if lexer.is_start(branch.state) {
            return self.inside_between(branch);
        }
        // Every way counts: to end here, as a closing quote does, and to go on.
        let mut found = Vec::new();
        let accept = lexer.accept(branch.state);
        if accept.0 != 0 && self.can_read(branch, accept) {
            found.push(match language.comment(accept) {
                Some(CommentEnd::Line) => Some(Inside::Comment),
                _ => self.end_symbol(branch, accept).and_then(|ended| self.inside_between(&ended)),
            });
        }
        let live = self.live_later.entry(branch.state).or_insert_with(|| live_later(lexer, branch.state));
        let live: Vec<AcceptId> = bits(live).map(AcceptId::from_index).collect();
        for accept in live {
            if self.can_read(branch, accept) {
                found.push(match language.comment(accept) {
                    Some(_) => Some(Inside::Comment),
                    None => language.is_string(accept).then_some(Inside::String),
                });
            }
        }
        let first = *found.first()?;
        first.filter(|_| found.iter().all(|other| *other == first))
    }

    /// The same between two symbols: the text of a literal that holds code, or code.
    fn inside_between(&self, branch: &Branch) -> Option<Inside> {
        let mode = self.mode_of(branch.set);
        let text = self.language.grammar.code_modes() >> mode.index() & 1 == 0;
        (branch.mode == Mode::Middle && text).then_some(Inside::String)
    }

    /// Where R stops being the end of a program, for people: the first byte of the symbol that no parse of R gets past. R is
    /// read from where the symbol in progress at the end of L ends in it, and from its first byte if that symbol may be over.
    #[must_use]
    pub fn right_reach(&self, branches: &[Branch]) -> usize {
        let lexer = &self.language.lexer;
        let mut furthest = None;
        for branch in branches {
            let begun = self.begins_text(branch);
            let held = begun || self.is_held_by_text(branch.set);
            let mut read = |start: u32, text: bool| {
                let around = Around { code: !held || text, text: held };
                furthest = furthest.max(Some(self.right.reach(start, around)));
            };
            if lexer.is_start(branch.state) || lexer.accepts(branch.state) {
                read(0, false);
            }
            if let Some((end, accept)) = self.right.lookahead.end(branch.state) {
                read(end, self.language.is_string(accept));
            }
        }
        // What L has begun may not end in R: then the middle would have to end it.
        let code = Around { code: true, text: false };
        furthest.unwrap_or_else(|| self.right.reach(0, code)) as usize
    }

    /// Whether the symbol in progress may end as one that leads into the text of a literal that holds code.
    fn begins_text(&self, branch: &Branch) -> bool {
        let accept = self.language.lexer.accept(branch.state);
        let mut lexemes = self.language.lexer.lexemes(accept).iter();
        accept.0 != 0 && lexemes.any(|&lexeme| self.language.grammar.leads_away(Language::symbol(lexeme)))
    }

    /// Whether some open rule of a stack holds lexemes of modes that read no code: it is one of a literal that holds code.
    fn is_held_by_text(&self, set: SetId) -> bool {
        let grammar = &self.language.grammar;
        let text = |symbol: &SymbolId| {
            grammar.is_lexeme(*symbol) && grammar.code_modes() >> grammar.mode_of(*symbol).index() & 1 == 0
        };
        let mut seen: FxHashSet<SetId> = FxHashSet::default();
        let mut stack = vec![set];
        while let Some(at) = stack.pop() {
            if seen.insert(at) {
                let items = &self.left.set(at).items;
                if grammar.has_modes() && items.iter().any(|item| grammar.rule(item.dot).rhs.iter().any(text)) {
                    return true;
                }
                stack.extend(items.iter().map(|item| item.origin));
            }
        }
        false
    }

    /// Whether some further middle completes the branch.
    pub fn viable(&mut self, branch: &Branch) -> bool {
        if self.loose && !self.is_at_limit(branch) {
            return self.viable_loosely(branch);
        }
        self.asked_right = true;
        self.viable_by_colours(branch)
    }

    /// The same where the stack is loose.
    fn viable_loosely(&mut self, branch: &Branch) -> bool {
        let id = self.next_of(branch.set);
        if let Mode::Line { .. } = branch.mode {
            return self.nexts.get(id).free & bit(LINE) != 0;
        }
        let lexer = &self.language.lexer;
        if lexer.is_start(branch.state) {
            return self.nexts.get(id).free & bit(MIDDLE) != 0;
        }
        let outside = self.nesting(branch) == Nesting::Outside;
        if branch.guards == NO_GUARDS {
            return self.nexts.get(id).takes(outside, lexer.live_mask(branch.state));
        }
        self.live_beside(branch.state, branch.guards);
        self.nexts.get(id).takes(outside, &self.guarded_live[&(branch.state, branch.guards)])
    }

    /// An interned set of guards.
    pub(crate) fn guards_of(&mut self, states: &[StateId]) -> GuardId {
        self.guards.intern(&self.language.lexer, states.to_vec())
    }

    /// The states of a set of guards.
    pub(crate) fn guard_states(&self, id: GuardId) -> &[StateId] {
        self.guards.states(id)
    }

    /// The mode of a set.
    #[inline]
    pub(crate) fn mode_of(&self, set: SetId) -> ModeId {
        self.left.set(set).mode
    }

    /// Open blocks of a stack.
    pub(crate) fn blocks(&self, indentation: IndentationId) -> u32 {
        self.indentations.depth(indentation)
    }

    /// What may come after an accept set has been read after a set of a loose stack, as far as the set after that says it.
    pub(crate) fn ahead(&mut self, set: SetId, accept: AcceptId) -> Option<Ahead> {
        self.left.ahead(&self.language, &mut self.predictions, set, accept)
    }

    /// What may come next after a set of a loose stack.
    pub(crate) fn taken(&mut self, set: SetId, outside: bool) -> Taken {
        let id = self.next_of(set);
        let next = self.nexts.get(id);
        let own = if outside { &next.outside } else { &next.inside };
        let mut accepts = [0; AHEAD_WORDS];
        accepts[..own.len()].copy_from_slice(own);
        Taken { accepts, free: next.free }
    }

    /// What may come next where what a set allows is known.
    pub(crate) fn taken_of(&self, ahead: &Ahead, outside: bool) -> Taken {
        Taken { accepts: self.language.aheads.taken(ahead, outside), free: ahead.free }
    }

    /// What a set allows next where its stack is loose.
    #[inline]
    pub fn next_of(&mut self, set: SetId) -> NextId {
        match self.nexts.known(set) {
            Some(known) => known,
            None => self.nexts.of(&self.language, &self.left, &self.predictions, set),
        }
    }

    /// Finds the accept sets that a symbol in progress beside guards can still be.
    fn live_beside(&mut self, state: StateId, guards: GuardId) {
        if self.guarded_live.contains_key(&(state, guards)) {
            return;
        }
        let live = live_beside(&self.language.lexer, &mut self.guards, state, guards);
        self.guarded_live.insert((state, guards), live);
    }

    pub(crate) fn viable_by_colours(&mut self, branch: &Branch) -> bool {
        if let Mode::Line { .. } = branch.mode {
            if self.cuts.is_some() && !self.language.lexer.is_start(branch.state) {
                return self.viable_in_trivia(branch);
            }
            let Some(line) = self.free_at(LINE) else { return false };
            return self.outlook(branch.set).cost(line) != INFINITE && !self.needs_one_block_more(branch);
        }
        if self.language.lexer.is_start(branch.state) {
            let free = self.language.free.at_boundary(self.guards.states(branch.guards));
            return match free.and_then(|free| self.free_at(free)) {
                Some(free) => self.outlook(branch.set).cost(free) != INFINITE,
                None => false,
            };
        }
        let mut ways = self.ways_of(branch);
        if self.is_at_limit(branch) {
            ways = self.ways_at_limit(branch, ways);
        }
        if let Some((set, asked, allowed)) = self.recent
            && (set, asked) == (branch.set, ways)
        {
            return allowed;
        }
        let allowed = match self.allowed.get(&(branch.set, ways)) {
            Some(&known) => known,
            None => {
                let found = self.any_way(branch.set, ways);
                self.allowed.insert((branch.set, ways), found);
                found
            }
        };
        self.recent = Some((branch.set, ways, allowed));
        allowed
    }

    /// Those of a branch's ways that open neither a bracket nor a block too many.
    fn ways_at_limit(&mut self, branch: &Branch, ways: WaysId) -> WaysId {
        let language = self.language.clone();
        let mut few = self.ways[ways.0 as usize].clone();
        few.retain(|way| {
            let Some(accept) = way.accept else { return true };
            match language.accept_role(accept) {
                Role::Open => branch.depth < language.limits.brackets,
                Role::Newline => {
                    let set = self.scan(branch.set, Read::Accepted(accept));
                    set == NO_SET || !self.needs_one_block_more(&Branch { set, ..*branch })
                }
                _ => true,
            }
        });
        self.intern_ways(few)
    }

    /// Whether a block must open here and the limit on blocks forbids it.
    fn needs_one_block_more(&self, branch: &Branch) -> bool {
        let Some((indent, _)) = self.language.grammar.indent_dedent else { return false };
        self.indentations.depth(branch.indentation) >= self.language.limits.blocks
            && self.left.set(branch.set).items.iter().all(|item| self.language.grammar.next(item.dot) == indent)
            && branch.set != FIRST_SET
    }

    fn any_way(&mut self, set: SetId, ways: WaysId) -> bool {
        let ways = std::mem::take(&mut self.ways[ways.0 as usize]).into_boxed_slice();
        let mut found = false;
        for way in &ways {
            let after = match way.accept {
                Some(accept) => self.scan(set, Read::Accepted(accept)),
                None => set,
            };
            if after == NO_SET {
                continue;
            }
            let outlook = self.outlook(after);
            if way.free.is_some_and(|free| outlook.cost(free) != INFINITE)
                || way.targets.iter().zip(&outlook.targets).any(|(one, other)| one & other != 0)
            {
                found = true;
                break;
            }
        }
        let id = self.ways_ids[&*ways];
        self.ways[id.0 as usize] = ways.into_vec();
        found
    }

    pub(crate) fn nesting(&self, branch: &Branch) -> Nesting {
        if self.language.layout.is_some() && branch.depth == 0 { Nesting::Outside } else { Nesting::Inside }
    }

    fn ways_of(&mut self, branch: &Branch) -> WaysId {
        let nesting = self.nesting(branch);
        if self.cuts.is_some() {
            let key = (branch.state, branch.guards, self.at, nesting);
            if let Some(&known) = self.shaped_ways.get(&key) {
                return known;
            }
            let ways = self.shaped(branch.state, branch.guards, nesting);
            let id = self.intern_ways(ways);
            self.shaped_ways.insert(key, id);
            return id;
        }
        if branch.guards == NO_GUARDS && self.language.free.is_separated() {
            let known = self.plain_ways[nesting as usize][branch.state.index()];
            if known != UNKNOWN_WAYS {
                return WaysId(known);
            }
            let ways = self.plain(branch.state, nesting);
            let id = self.intern_ways(ways);
            self.plain_ways[nesting as usize][branch.state.index()] = id.0;
            return id;
        }
        let key = (branch.state, branch.guards, nesting);
        if let Some(&known) = self.guarded_ways.get(&key) {
            return known;
        }
        let ways = self.guarded(branch.state, branch.guards, nesting);
        let id = self.intern_ways(ways);
        self.guarded_ways.insert(key, id);
        id
    }

    fn intern_ways(&mut self, mut ways: Vec<Way>) -> WaysId {
        ways.sort_unstable_by(|one, other| {
            (one.accept, one.free, &one.targets).cmp(&(other.accept, other.free, &other.targets))
        });
        ways.dedup();
        if let Some(&id) = self.ways_ids.get(&ways) {
            return id;
        }
        let id = WaysId(u32::try_from(self.ways.len()).expect("ways fit u32"));
        self.ways.push(ways.clone());
        self.ways_ids.insert(ways, id);
        id
    }

    /// The free state of a kind where in the shape the middle is; `None` between the bytes of a character.
    fn free_at(&self, kind: FreeId) -> Option<FreeId> {
        let free = &self.language.free;
        free.shape().map_or(Some(kind), |shape| shape.place(self.at).map(|place| free.at_place(kind, place)))
    }

    /// Where in the shape the middle is, from now on.
    pub fn set_shape(&mut self, at: ShapeId) {
        self.at = at;
    }

    /// Goes on in the shape by a byte; `None` if no middle of the shape does.
    #[inline]
    pub fn enter_shape(&mut self, from: ShapeId, byte: u8) -> Option<ShapeId> {
        if let Some(shape) = self.language.free.shape() {
            self.at = shape.step(from, byte)?;
        }
        Some(self.at)
    }

    /// Whether the middle has its shape.
    fn has_shape(&self) -> bool {
        self.language.free.shape().is_none_or(|shape| shape.accepts(self.at))
    }

    /// Ways of a state where the middle must have a shape.
    fn shaped(&mut self, state: StateId, guards: GuardId, nesting: Nesting) -> Vec<Way> {
        let language = self.language.clone();
        let (Some(shaped), Some(shape)) = (&language.shaped, language.free.shape()) else { return Vec::new() };
        let mut ends: Vec<(AcceptId, usize)> = Vec::new();
        let mut ended: Vec<(u32, AcceptId)> = Vec::new();
        if guards == NO_GUARDS {
            ends.extend(shaped.ends(state, self.at));
            if let Some((cuts, reach)) = &self.cuts {
                ended.extend(shaped.reached(reach, state, self.at).map(|index| cuts[index]));
            }
        } else {
            for (state, guards, inside) in shaped.beside(&mut self.guards, (state, guards, self.at)) {
                if let (true, Some(place)) = (language.lexer.accepts(state), shape.place(inside)) {
                    ends.push((language.lexer.accept(state), place));
                }
                if shape.accepts(inside) && self.guards_hold(guards) {
                    let end = self.right.lookahead.end(state);
                    ended.extend(end.or_else(|| ended_comment(&language, state)));
                }
            }
            ended.sort_unstable();
            ended.dedup();
        }
        let mut ways = Vec::new();
        for (accept, place) in ends {
            ways.extend(self.ended_at(accept, nesting, place).into_iter().map(|(accept, free)| Way {
                accept,
                free: Some(free),
                targets: Vec::new(),
            }));
        }
        ways.extend(ended.into_iter().filter_map(|(end, accept)| self.cut(end, accept, nesting)));
        ways
    }

    /// The same for a comment or a line join in a line that has no symbol yet, where the middle must have a shape: the shape
    /// may leave no way to end it but in R.
    fn viable_in_trivia(&mut self, branch: &Branch) -> bool {
        let language = self.language.clone();
        let Some(shaped) = &language.shaped else { return false };
        let mut after: Vec<FreeId> = Vec::new();
        for (accept, place) in shaped.ends(branch.state, self.at) {
            match language.accept_role(accept) {
                Role::Comment => {
                    let ended = self.ended_at(accept, Nesting::Outside, place).into_iter();
                    after.extend(ended.map(|(_, free)| free));
                }
                _ => after.push(language.free.at_place(LINE, place)),
            }
        }
        let outlook = self.outlook(branch.set);
        if after.into_iter().any(|free| outlook.cost(free) != INFINITE) && !self.needs_one_block_more(branch) {
            return true;
        }
        let ends: Vec<(u32, AcceptId)> = match &self.cuts {
            Some((cuts, reach)) => shaped.reached(reach, branch.state, self.at).map(|index| cuts[index]).collect(),
            None => Vec::new(),
        };
        self.guards_hold(branch.guards)
            && ends.into_iter().any(|(end, accept)| {
                let ended = self.end_symbol(branch, accept);
                ended.is_some_and(|ended| self.complete_between(&ended, end, false))
            })
    }

    /// What the parser reads when a symbol ends at a place of the shape, and the free states after it.
    fn ended_at(&self, accept: AcceptId, nesting: Nesting, place: usize) -> Vec<(Option<AcceptId>, FreeId)> {
        let free = &self.language.free;
        if self.language.layout.is_none() || self.language.accept_role(accept) != Role::Comment {
            let ended = self.ended(accept, nesting).into_iter();
            return ended.map(|(accept, kind)| (accept, free.at_place(kind, place))).collect();
        }
        // A comment ends with its line.
        let mut found = Vec::new();
        for &newline in &self.newline_accepts {
            for &lexeme in self.language.lexer.lexemes(newline) {
                for after in (0..free.count()).map(FreeId::from_index).filter(|&after| free.is_line(after)) {
                    if free.relation(Language::symbol(lexeme), free.at_place(MIDDLE, place), after) != INFINITE {
                        let inside = FreeId::from_index(after.index() - LINE.index() + MIDDLE.index());
                        found.push(match nesting {
                            Nesting::Outside => (Some(newline), after),
                            Nesting::Inside => (None, inside),
                        });
                    }
                }
            }
        }
        found
    }

    /// Ways of a state that no guard runs beside, in a language with separators.
    fn plain(&self, state: StateId, nesting: Nesting) -> Vec<Way> {
        let language = &self.language;
        let mut ways = Vec::new();
        for accept in language.lexer.live(state) {
            ways.extend(self.ended(accept, nesting).into_iter().map(|(accept, free)| Way {
                accept,
                free: Some(free),
                targets: Vec::new(),
            }));
        }
        let reachable = language.lexer.reachable(state);
        let mut cuts: Vec<(u32, AcceptId)> =
            reachable.into_iter().filter_map(|state| self.right.lookahead.end(state)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        ways.extend(cuts.into_iter().filter_map(|(end, accept)| self.cut(end, accept, nesting)));
        ways
    }

    /// What the parser reads when a symbol ends inside the middle, and the free state after it.
    fn ended(&self, accept: AcceptId, nesting: Nesting) -> Vec<(Option<AcceptId>, FreeId)> {
        let layout = self.language.layout.is_some();
        match self.language.accept_role(accept) {
            Role::Symbol | Role::Open | Role::Close => vec![(Some(accept), MIDDLE)],
            Role::Newline if nesting == Nesting::Outside => vec![(Some(accept), LINE)],
            // A comment ends with its line.
            Role::Comment if layout && nesting == Nesting::Outside => {
                self.newline_accepts.iter().map(|&newline| (Some(newline), LINE)).collect()
            }
            _ => vec![(None, MIDDLE)],
        }
    }

    /// A symbol in progress where the cursor falls, ended in R.
    fn cut(&self, end: u32, accept: AcceptId, nesting: Nesting) -> Option<Way> {
        let language = &self.language;
        let words = self.demands.colours.targets().len().div_ceil(64);
        let mut targets = vec![0u64; words];
        let mut add = |node| {
            if let Some(bit) = self.demands.colours.target(node) {
                targets[bit / 64] |= 1 << (bit % 64);
            }
        };
        let role = language.accept_role(accept);
        let read = matches!(role, Role::Symbol | Role::Open | Role::Close)
            || role == Role::Newline && nesting == Nesting::Outside;
        if role == Role::Newline && nesting == Nesting::Outside {
            for &(_, symbol, node, _) in self.right.symbol_crossings() {
                if language.lexer.lexemes(accept).iter().any(|&lexeme| Language::symbol(lexeme) == symbol)
                    && self.right.begins_line(node, self.right.line_start(end, true)?.position)
                {
                    add(node);
                }
            }
        } else {
            if role == Role::Join && end as usize == self.right.text().len() {
                return None;
            }
            let mut found = false;
            for node in self.right.nodes_after(end, read.then_some(accept)) {
                add(node);
                found = true;
            }
            if !found {
                return None;
            }
        }
        Some(Way { accept: read.then_some(accept), free: None, targets })
    }

    /// Ways of a state beside guards, or in a language without separators: a walk over the product with the guards.
    fn guarded(&mut self, state: StateId, guards: GuardId, nesting: Nesting) -> Vec<Way> {
        let language = self.language.clone();
        let lexer = &language.lexer;
        let mut ways = Vec::new();
        let mut seen: FxHashSet<(StateId, GuardId)> = FxHashSet::default();
        let mut stack = vec![(state, guards)];
        let representatives = lexer.representatives();
        while let Some((state, guards)) = stack.pop() {
            if !seen.insert((state, guards)) {
                continue;
            }
            if guards == NO_GUARDS && language.free.is_separated() {
                ways.extend(self.plain(state, nesting));
                continue;
            }
            if lexer.accepts(state) {
                let after = self.guards.with(lexer, guards, state);
                if let Some(boundary) = language.free.at_boundary(self.guards.states(after)) {
                    for (accept, free) in self.ended(lexer.accept(state), nesting) {
                        let free = if language.free.is_separated() { free } else { boundary };
                        ways.push(Way { accept, free: Some(free), targets: Vec::new() });
                    }
                }
            }
            if let Some((end, accept)) = self.right.lookahead.end(state)
                && self.guards_hold(guards)
            {
                ways.extend(self.cut(end, accept, nesting));
            }
            for &byte in &representatives {
                let target = lexer.step(state, byte);
                if target != DEAD
                    && let Some(stepped) = self.guards.step(lexer, guards, byte)
                {
                    stack.push((target, stepped));
                }
            }
        }
        ways
    }

    /// Whether no guard matches again in R.
    fn guards_hold(&self, guards: GuardId) -> bool {
        self.guards.states(guards).iter().all(|&state| self.right.lookahead.end(state).is_none())
    }

    /// Whether the text so far is a whole middle: L, it and R are a program.
    pub fn complete(&mut self, branch: &Branch) -> bool {
        if !self.has_shape() || !self.guards_hold(branch.guards) {
            return false;
        }
        if self.language.lexer.is_start(branch.state) {
            return self.complete_between(branch, 0, false);
        }
        let ended = match self.right.lookahead.end(branch.state) {
            Some(end) => Some(end),
            None => self.language.lexer.accepts(branch.state).then(|| (0, self.language.lexer.accept(branch.state))),
        };
        let Some((end, accept)) = ended else { return false };
        match self.end_symbol(branch, accept) {
            Some(ended) => {
                let begun = self.language.accept_role(accept) == Role::Newline && end > 0;
                self.complete_between(&ended, end, begun)
            }
            None => false,
        }
    }

    /// The same for a branch between two symbols, the first of them already read into R up to `position`; `begun` if it was
    /// a newline that ended in R.
    fn complete_between(&mut self, branch: &Branch, position: u32, begun: bool) -> bool {
        if branch.joined && position as usize == self.right.text().len() {
            return false;
        }
        let (set, nodes) = match branch.mode {
            Mode::Middle => (branch.set, self.right.nodes_at(position, self.left.set(branch.set).mode).collect()),
            Mode::Line { column, kept } => {
                let Some(start) = self.right.line_start(position, begun) else { return false };
                if let Some(line) = start.column {
                    let top = self.indentations.top(branch.indentation);
                    (branch.set, Vec::from_iter(self.right.line_node(start.position, line, top)))
                } else {
                    let Some((at, column)) = self.right.column_through(position, column, kept) else {
                        return false;
                    };
                    let Some(begun) = self.begin_line(branch, column) else { return false };
                    (begun.set, Vec::from_iter(self.right.entry_node(at, column)))
                }
            }
        };
        let fits = |node: &NodeId| self.right.depth(*node).is_none_or(|depth| depth == branch.depth);
        let nodes = nodes.into_iter().filter(fits);
        let targets: Vec<usize> = nodes.filter_map(|node| self.demands.colours.target(node)).collect();
        if targets.is_empty() {
            return false;
        }
        let (demands, context) = self.parts();
        demands.reaches(context, set, &targets)
    }

    /// A lower bound on the bytes of further middle that complete the branch; [`INFINITE`] if it is not viable.
    pub fn bound(&mut self, branch: &Branch) -> Cost {
        if let Mode::Line { column, kept } = branch.mode {
            // Part of the indentation that the cost counts may have been written; a backslash-newline in progress is part of
            // the cost of the column that it will fix.
            let joining = if self.language.lexer.is_start(branch.state) { 0 } else { 2 };
            let written = kept.unwrap_or(column).least_bytes() + joining;
            return match self.outlook(branch.set).cost(LINE) {
                INFINITE => INFINITE,
                cost => cost.saturating_sub(written),
            };
        }
        if self.language.lexer.is_start(branch.state) {
            return match self.language.free.at_boundary(self.guards.states(branch.guards)) {
                Some(free) => self.outlook(branch.set).cost(free),
                None => INFINITE,
            };
        }
        let id = self.ways_of(branch);
        let ways = self.ways[id.0 as usize].clone();
        let mut best = INFINITE;
        for way in ways {
            let after = match way.accept {
                Some(accept) => self.scan(branch.set, Read::Accepted(accept)),
                None => branch.set,
            };
            if after == NO_SET {
                continue;
            }
            let outlook = self.outlook(after);
            if way.targets.iter().zip(&outlook.targets).any(|(one, other)| one & other != 0) {
                return 0;
            }
            if let Some(free) = way.free {
                let finish = match way.accept.map(|accept| self.language.lexer.to_accept(branch.state, accept)) {
                    Some(NEVER) | None => 0,
                    Some(bytes) => bytes.into(),
                };
                best = best.min(outlook.cost(free).saturating_add(finish));
            }
        }
        best
    }

    /// The limit of the language that some branch has reached, for people.
    #[must_use]
    pub fn limit_reached(&self, branches: &[Branch]) -> Option<String> {
        let limits = self.language.limits;
        branches.iter().find(|branch| self.is_at_limit(branch)).map(|branch| {
            let (count, what) =
                if branch.depth >= limits.brackets { (limits.brackets, "brackets") } else { (limits.blocks, "blocks") };
            format!("{count} {what} are open, and no more may be")
        })
    }

    #[inline]
    fn is_at_limit(&self, branch: &Branch) -> bool {
        let limits = self.language.limits;
        branch.depth >= limits.brackets || self.indentations.depth(branch.indentation) >= limits.blocks
    }

    /// The lexemes that may be read next, for people: after the symbol in progress, if it can end here.
    pub fn expected(&mut self, branch: &Branch) -> Vec<String> {
        let language = self.language.clone();
        let accept = language.lexer.accept(branch.state);
        let ended = if accept.0 == 0 { None } else { self.end_symbol(branch, accept) };
        let branch = &ended.unwrap_or(*branch);
        let mut names = Vec::new();
        let line = matches!(branch.mode, Mode::Line { .. });
        for accept in language.lexer.accept_sets() {
            let role = language.accept_role(accept);
            if role.is_ignored() || line && role == Role::Newline {
                continue;
            }
            let mut befores = vec![branch.set];
            if line {
                befores.extend(self.sets_after_layout(branch));
            }
            for before in befores {
                let after = self.scan(before, Read::Accepted(accept));
                if after != NO_SET {
                    let outlook = self.outlook(after);
                    if outlook.free.iter().any(|&cost| cost != INFINITE)
                        || outlook.targets.iter().any(|&word| word != 0)
                    {
                        names.extend(language.lexer.lexemes(accept).iter().map(|&lexeme| language.display(lexeme)));
                    }
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    fn sets_after_layout(&mut self, branch: &Branch) -> Vec<SetId> {
        let mut columns = self.indentations.columns(branch.indentation);
        let top = self.indentations.top(branch.indentation);
        columns.push(Column::ZERO);
        columns.push(top.after(b' '));
        columns.into_iter().filter_map(|column| self.begin_line(branch, column)).map(|begun| begun.set).collect()
    }

    /// What the middle can begin with.
    pub fn opening_reads(&mut self, branch: &Branch) -> Vec<Opening> {
        let language = self.language.clone();
        let between = |set, free| Opening { lexeme: None, set, free, crosses: false };
        if let Mode::Line { .. } = branch.mode {
            return vec![between(branch.set, LINE)];
        }
        if language.lexer.is_start(branch.state) {
            let boundary = language.free.at_boundary(self.guards.states(branch.guards));
            return boundary.map(|free| between(branch.set, free)).into_iter().collect();
        }
        let id = self.ways_of(branch);
        let ways = self.ways[id.0 as usize].clone();
        let mut found = Vec::new();
        for way in ways {
            let names: Vec<String> = match way.accept {
                Some(accept) => {
                    let display = |&lexeme: &crate::ids::LexemeId| language.display(lexeme);
                    vec![language.lexer.lexemes(accept).iter().map(display).collect::<Vec<_>>().join("/")]
                }
                None => Vec::new(),
            };
            let set = way.accept.map_or(branch.set, |accept| self.scan(branch.set, Read::Accepted(accept)));
            if set == NO_SET {
                continue;
            }
            let outlook = self.outlook(set);
            if way.targets.iter().zip(&outlook.targets).any(|(one, other)| one & other != 0) {
                let lexeme = names.first().map(|name| format!("…{name}…"));
                found.push(Opening { lexeme, set, free: MIDDLE, crosses: true });
            }
            if let Some(free) = way.free {
                let lexeme = names.first().map(|name| format!("…{name}"));
                found.push(Opening { lexeme, set, free, crosses: false });
            }
        }
        found
    }

    /// Nonterminals of L that are open at a branch, innermost first, with the set each began at. Lists that Lark made out of
    /// `*` and `+` (their names begin with `__`) are left out.
    #[must_use]
    pub fn open_constructs(&self, branch: &Branch) -> Vec<(String, SetId)> {
        let grammar = &self.language.grammar;
        let mut found: Vec<(String, SetId)> = Vec::new();
        let mut set = branch.set;
        while set != FIRST_SET {
            let items = &self.left.set(set).items;
            let Some(item) = items.iter().filter(|item| item.origin < set).max_by_key(|item| item.origin) else {
                break;
            };
            let name = grammar.title(grammar.lhs(item.dot));
            if !name.starts_with("__") {
                found.push((name.to_string(), item.origin));
            }
            set = item.origin;
        }
        found
    }
}

impl Cut for Branch {
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
        matches!(self.mode, Mode::Line { .. })
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
        Self { mode: Mode::Line { column: Column::ZERO, kept: None }, ..self }
    }
}

/// The parser reads a symbol as soon as it has ended, so that a branch which cannot be parsed is dropped at once.
impl Reader for Engine {
    type Branch = Branch;
    type Read = ();

    const NOTHING: () = ();

    #[inline(always)]
    fn lexer(&self) -> &Lexer {
        &self.language.lexer
    }

    #[inline(always)]
    fn role(&self, accept: AcceptId) -> Role {
        self.language.accept_role(accept)
    }

    #[inline(always)]
    fn line_byte(&self, byte: u8) -> LineByte {
        self.line_bytes[byte as usize]
    }

    #[inline]
    fn step_guards(&mut self, guards: GuardId, byte: u8) -> Option<GuardId> {
        self.guards.step(&self.language.lexer, guards, byte)
    }

    #[inline]
    fn add_guard(&mut self, guards: GuardId, state: StateId) -> GuardId {
        self.guards.with(&self.language.lexer, guards, state)
    }

    #[inline(always)]
    fn between(&self, branch: &Branch) -> StateId {
        self.start_at(branch.set)
    }

    fn indent(&mut self, branch: Branch, byte: u8) -> Option<Branch> {
        let Mode::Line { column, kept } = branch.mode else { return Some(branch) };
        let column = column.after(byte);
        (column.wide <= limits::COLUMN).then_some(Branch { mode: Mode::Line { column, kept }, ..branch })
    }

    fn join(&mut self, branch: Branch) -> Option<Branch> {
        let mode = match branch.mode {
            Mode::Line { column, kept } => Mode::Line { column, kept: kept.or(column.kept()) },
            Mode::Middle => Mode::Middle,
        };
        Some(Branch { mode, joined: true, ..branch })
    }

    #[inline]
    fn end_line(&mut self, branch: Branch, accept: AcceptId, mut each: impl FnMut(&mut Self, Branch, ())) {
        if branch.depth > 0 {
            each(self, branch.with_state(self.start_at(branch.set)), ());
        } else if let Some(ended) = self.pass_on(branch.at_line_start(), accept) {
            each(self, ended, ());
        }
    }

    #[inline]
    fn read(&mut self, branch: Branch, accept: AcceptId, role: Role, mut each: impl FnMut(&mut Self, Branch, ())) {
        let depth = match role {
            Role::Open if branch.depth >= self.language.limits.brackets => return,
            Role::Open => branch.depth + 1,
            Role::Close => branch.depth.saturating_sub(1),
            _ => branch.depth,
        };
        if let Some(ended) = self.pass_on(Branch { depth, ..branch }, accept) {
            each(self, ended, ());
        }
    }

    #[inline(always)]
    fn reach(&mut self, branch: Branch, (): (), out: &mut Vec<Branch>) {
        out.push(Branch { joined: false, ..branch });
    }

    #[inline(always)]
    fn begin_symbol(&mut self, branch: Branch, (): (), out: &mut Vec<Branch>) {
        self.reach(branch, (), out);
    }

    fn begin_line(&mut self, branch: Branch, state: StateId, (): (), out: &mut Vec<Branch>) {
        let Mode::Line { column, kept } = branch.mode else { return };
        if let Some(begun) = Engine::begin_line(self, &branch, kept.unwrap_or(column)) {
            self.reach(begun.with_state(state), (), out);
        }
    }
}

/// What a symbol in progress may be that goes on by at least one byte.
fn live_later(lexer: &Lexer, state: StateId) -> Box<[u64]> {
    let mut live = vec![0u64; lexer.live_mask(state).len()];
    for byte in lexer.representatives() {
        let target = lexer.step(state, byte);
        if target != DEAD {
            live.iter_mut().zip(lexer.live_mask(target)).for_each(|(word, more)| *word |= more);
        }
    }
    live.into()
}

/// A comment may end with the middle, whatever the shape says of line breaks: its line ends in R.
fn ended_comment(language: &Language, state: StateId) -> Option<(u32, AcceptId)> {
    let accept = language.lexer.accept(state);
    let comment = language.layout.is_some() && accept.0 != 0 && language.accept_role(accept) == Role::Comment;
    comment.then_some((0, accept))
}

/// How R goes on with symbols that the cursor cuts where the middle has its shape.
fn cuts(language: &Language, shaped: &ShapedLexer, right: &Right) -> (Vec<(u32, AcceptId)>, Reach) {
    let shape = language.free.shape().expect("a shaped language has a shape");
    let end = |state: StateId| right.lookahead.end(state).or_else(|| ended_comment(language, state));
    let ends = (1..language.lexer.state_count()).filter_map(|state| end(StateId::from_index(state)));
    let mut ends: Vec<(u32, AcceptId)> = ends.collect();
    ends.sort_unstable();
    ends.dedup();
    let reach = shaped.reach(ends.len(), |state, inside, row| {
        if let (true, Some(end)) = (shape.accepts(inside), end(state)) {
            let index = ends.binary_search(&end).expect("listed above");
            row[index / 64] |= 1 << (index % 64);
        }
    });
    (ends, reach)
}
