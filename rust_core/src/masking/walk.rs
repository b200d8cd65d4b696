//! Masks by a walk over the token spanner table. The parser is asked once for each lexeme sequence, not for each token.

use crate::bits;
use crate::chart::left::{NO_SET, Read};
use crate::chart::texts::{PLAIN, WILD};
use crate::engine::branch::{BracketSide, Branch, InLine};
use crate::engine::verdicts::Engine;
use crate::ids::{AcceptId, GuardId, IndentationId, ModeId, SetId, ShapeId, SpanId, StateId, TextId, TokenId};
use crate::language::ahead::{AHEAD_WORDS, Ahead};
use crate::language::follow::bit;
use crate::language::free::LINE;
use crate::language::marks::Marks;
use crate::lexing::guards::NO_GUARDS;
use crate::lexing::layout::Column;
use crate::lexing::roles::Role;
use crate::limits;
use crate::masking::parts::{MANY_EDGES, Met, Parts, Record};
use crate::masking::plain::{self, Recognizer};
use crate::masking::table::configuration::{End, Label, Line};
use crate::masking::table::file::{Ending, Spanner, TokenSet};
use crate::masking::trie_walk::TrieWalk;
use crate::masking::vocabulary::Vocabulary;
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};

/// Lexemes and free states allowed next, in brackets or outside of them.
pub(super) struct Allowed {
    /// The accept sets that can be read or ignored, as a mask.
    accepts: [u64; AHEAD_WORDS],
    /// The free states from which the middle can go on.
    free: u64,
}

/// Everything, where the allowed lexemes are unknown: the walk tries all.
const EVERYTHING: Allowed = Allowed { accepts: [u64::MAX; AHEAD_WORDS], free: u64::MAX };

impl Allowed {
    #[inline(always)]
    fn allows(&self, accept: AcceptId) -> bool {
        accept.index() >= 64 * AHEAD_WORDS || bits::contains(&self.accepts, accept.index())
    }
}

/// Lexemes of a sequence up to which the walk does not ask whether another sequence came to the same place. Asking
/// costs more than walking the few such places twice.
const FEW: usize = 3;

/// Place of the parser at a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Position {
    pub(super) set: SetId,
    pub(super) depth: u32,
    indentation: IndentationId,
}

/// Work that a table walk leaves to the plain walk.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Tokens to be tried byte by byte.
    pub tokens: Vec<TokenId>,
    /// Branches that the table lacks, for which the trie is walked.
    pub branches: Vec<Branch>,
}

impl Rest {
    /// Add to a packed mask those remaining tokens that may follow.
    pub(crate) fn add_to(
        mut self,
        engine: &mut Engine,
        vocabulary: &Vocabulary,
        branches: &[Branch],
        words: &mut [u32],
    ) {
        // A walk of the table is for one place of the shape; these tokens go on from the middle's.
        let at = branches.first().map_or(ShapeId::default(), |branch| branch.at);
        self.branches.iter_mut().for_each(|branch| branch.at = at);
        self.branches.sort_unstable();
        self.branches.dedup();
        for branch in self.branches {
            plain::add_tokens(&mut TrieWalk::new(engine, &[branch], vocabulary.longest()), vocabulary, words);
        }
        if self.tokens.is_empty() {
            return;
        }
        self.tokens.sort_unstable();
        self.tokens.dedup();
        let mut walk = TrieWalk::new(engine, branches, vocabulary.longest());
        for token in self.tokens {
            poll();
            walk.pop_to(0);
            if vocabulary.bytes_of(token).iter().all(|&byte| walk.try_push(byte)) {
                bits::insert(words, token.index());
            }
        }
    }
}

pub(super) struct Walk<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) spanner: &'a Spanner,
    pub(super) words: &'a mut [u32],
    /// Wanted tokens as a packed mask, if not all are. Bits of other tokens need not be right.
    wanted: Option<&'a [u32]>,
    /// The branch before the token.
    before: Branch,
    pub(super) rest: &'a mut Rest,
    guards: FxHashMap<GuardId, GuardId>,
    /// True if dots decide what may come next: the stack is unconstrained.
    quick: bool,
    /// Text assumed for symbols that may bind or match.
    pub(super) text: TextId,
    /// True while the next lexeme began before the token.
    at_root: bool,
    /// True if a text of the sequence in progress was assumed to be the wanted one.
    pub(super) is_marked: bool,
    /// Lexemes of the sequence in progress.
    pub(super) lexemes: usize,
    /// Nodes and places that sequences of several lexemes have come to, in a language with modes. A symbol may be read
    /// in each of several modes, so as many sequences as powers of their number lead to one place.
    pub(super) reached: FxHashSet<(SpanId, Position, bool)>,
    /// Those outside of the part in progress; at an exit, those of the part. The tokens of one are not the other's.
    pub(super) reached_aside: FxHashSet<(SpanId, Position, bool)>,
    /// Parts of walks of all sessions, if they may be used.
    parts: Option<&'a Parts>,
    /// The part in progress, if it is to be kept.
    pub(super) record: Option<Record>,
    /// Room for answers.
    pub(super) met: Met,
    /// Room for a packed mask; empty or zero.
    pub(super) scratch: Vec<u32>,
}

/// Add the tokens that may follow a branch to a packed mask, except those that the table lacks. `wanted` holds the
/// tokens that matter, if not all do; some others are added as well.
pub(crate) fn add_tokens(
    engine: &mut Engine,
    spanner: &Spanner,
    branch: &Branch,
    (wanted, words): (Option<&[u32]>, &mut [u32]),
    parts: Option<&Parts>,
    rest: &mut Rest,
) {
    let in_line = match branch.line {
        InLine::Start { column, kept } => {
            // An indentation may not pass its limit within a token.
            if column.wide.max(kept.map_or(0, |kept| kept.wide)) + 8 * spanner.longest() > limits::COLUMN {
                rest.branches.push(*branch);
                return;
            }
            true
        }
        InLine::Middle => false,
    };
    let Some(roots) = roots(engine, spanner, branch, in_line) else {
        rest.branches.push(*branch);
        return;
    };
    let position = Position { set: branch.set, depth: branch.depth, indentation: branch.indentation };
    engine.parser.record(false); // a stop may have ended a recording walk
    let quick = engine.is_unconstrained() && !engine.language.aheads.is_empty();
    let guards = FxHashMap::default();
    let text = engine.parser.assumed_text();
    let mut walk = Walk {
        engine,
        spanner,
        words,
        wanted,
        before: *branch,
        rest,
        guards,
        quick,
        text,
        at_root: true,
        is_marked: false,
        lexemes: 0,
        reached: FxHashSet::default(),
        reached_aside: FxHashSet::default(),
        parts: parts.filter(|parts| parts.pay()),
        record: None,
        met: Met::default(),
        scratch: Vec::new(),
    };
    for root in roots {
        walk.at_root = true;
        walk.visit(root, position);
    }
}

/// The nodes before a token, one for each mode that can be in force after an ignored lexeme in progress; `None` if the
/// table lacks one.
fn roots(engine: &Engine, spanner: &Spanner, branch: &Branch, in_line: bool) -> Option<Vec<SpanId>> {
    let (lexer, parser) = (&engine.language.lexer, &engine.parser);
    let guards = parser.guard_states(branch.guards);
    if engine.language.grammar.unites_modes() && lexer.is_start(branch.state) {
        return Some(vec![spanner.root(branch.state, guards, branch.state, in_line)?]);
    }
    let modes = bits::ones(parser.modes_after_ignored(branch.set)).map(ModeId::from_index);
    let mut roots: Vec<SpanId> =
        modes.map(|mode| spanner.root(branch.state, guards, lexer.start_of(mode), in_line)).collect::<Option<_>>()?;
    if roots.is_empty() {
        roots.push(spanner.root(branch.state, guards, lexer.start(), in_line)?);
    }
    roots.sort_unstable();
    roots.dedup();
    Some(roots)
}

impl Walk<'_> {
    /// Add the tokens of a node and of its descendants.
    fn visit(&mut self, node: SpanId, position: Position) {
        if self.lexemes >= limits::TOKEN_LEXEMES {
            self.give_up();
            return;
        }
        let expects = self.engine.parser.expects(position.set);
        if self.quick && !self.is_at_limit(position) && !expects.binds {
            let mut allowed = self.allowed(position);
            self.add_endings(node, &allowed, position);
            if expects.matches {
                self.engine.parser.note_match();
                if self.text() == WILD {
                    self.add_marked_endings(node, &allowed, position);
                    bits::unite(&mut allowed.accepts, self.engine.language.marked_accepts());
                }
            }
            self.follow(node, &allowed, position);
            return;
        }
        for ending in self.spanner.endings(node) {
            poll();
            if self.asks_column(ending.at) {
                self.spanner.tokens(ending).for_each(|token| self.rest.tokens.push(token));
            } else if self.wants(ending) && self.may_end(ending.at, position) {
                self.spanner.tokens(ending).add_to(self.words);
            }
        }
        self.follow(node, &EVERYTHING, position);
    }

    /// Lexemes allowed next on an unconstrained stack.
    fn allowed(&mut self, position: Position) -> Allowed {
        let outside = self.is_outside(position);
        let next = self.engine.parser.next(position.set);
        let own = if outside { &next.outside } else { &next.inside };
        let mut accepts = [0; AHEAD_WORDS];
        accepts[..own.len()].copy_from_slice(own);
        Allowed { accepts, free: next.free }
    }

    /// Add the tokens that end in a node, on an unconstrained stack.
    fn add_endings(&mut self, node: SpanId, allowed: &Allowed, position: Position) {
        if self.text == WILD && !self.is_marked {
            return; // they were added under the assumption that no text is the wanted one
        }
        let spanner = self.spanner;
        let words: &[u32; 2 * AHEAD_WORDS] = bytemuck::cast_ref(&allowed.accepts);
        for ending in spanner.endings(node) {
            let may = if ending.at.in_line {
                allowed.free & bit(LINE) != 0
            } else if ending.at.guards == NO_GUARDS {
                let live = self.engine.language.lexer.live_mask(ending.at.state);
                bits::meet(&allowed.accepts, live)
            } else {
                bits::meet(words, spanner.live_beside(ending))
            };
            if may {
                spanner.tokens(ending).add_to(self.target());
            }
        }
        debug_assert!(!self.is_at_limit(position), "a limit is asked of the engine");
    }

    /// Add the tokens that end in a node with a symbol in progress that may become the wanted text, whatever it is.
    fn add_marked_endings(&mut self, node: SpanId, allowed: &Allowed, position: Position) {
        let spanner = self.spanner;
        for ending in spanner.endings(node) {
            let mut accepts = [0; AHEAD_WORDS];
            bits::unite(&mut accepts, self.engine.language.marked_accepts());
            // Accept sets that can be the wanted text, and those allowed for any text.
            let [is_live, is_allowed] = [&accepts, &allowed.accepts].map(|accepts| match ending.at.guards {
                NO_GUARDS => bits::meet(accepts, self.engine.language.lexer.live_mask(ending.at.state)),
                _ => bits::meet(bytemuck::cast_ref::<_, [u32; 2 * AHEAD_WORDS]>(accepts), spanner.live_beside(ending)),
            });
            if !ending.at.in_line && is_live && !is_allowed && self.may_end(ending.at, position) {
                spanner.tokens(ending).add_to(self.words);
            }
        }
    }

    /// The text assumed for the next lexeme. For a lexeme that began before the token, it is the known text.
    fn text(&self) -> TextId {
        // Blanks in progress lead to no other node, and the next symbol begins in the token.
        let is_live = |marks: &Marks| marks.are_live(self.before.state);
        let in_progress = self.at_root
            && !self.engine.language.lexer.is_start(self.before.state)
            && self.engine.language.marks.as_ref().is_some_and(is_live);
        if in_progress { self.before.text } else { self.text }
    }

    /// Return whether reading an accept set depends on its unknown text.
    fn asks_text(&self, set: SetId, accept: AcceptId) -> bool {
        let expects = self.engine.parser.expects(set);
        (expects.binds || expects.matches && self.text() == WILD) && self.engine.language.has_marks(accept)
    }

    /// Add the tokens of the nodes after a node. The allowed lexemes are checked before the parser moves: most
    /// sequences end there, or go on with no allowed lexeme.
    pub(super) fn follow(&mut self, node: SpanId, allowed: &Allowed, position: Position) {
        if self.lexemes >= limits::TOKEN_LEXEMES {
            self.give_up();
            return;
        }
        if self.lexemes >= FEW
            && self.engine.language.grammar.has_modes()
            && !self.reached.insert((node, position, self.is_marked))
        {
            return;
        }
        self.lexemes += 1;
        let at_root = self.at_root;
        let spanner = self.spanner;
        match &mut self.record {
            Some(record) => record.rest.extend(spanner.odd(node)),
            None => self.rest.tokens.extend(spanner.odd(node)),
        }
        let parts_begin = spanner.edges(node).len() >= MANY_EDGES;
        let mut ahead_of = None;
        for index in spanner.edges(node) {
            poll();
            self.at_root = at_root;
            let (label, target) = spanner.edge(index);
            match label {
                Label::Read(accept, _) | Label::Newline(accept, _) | Label::NewlineBegin(accept, _) => {
                    if !allowed.allows(accept) || !matches!(label, Label::Read(..)) && position.depth > 0 {
                        continue;
                    }
                    // PERF: on an unconstrained stack the dots decide what the set after `accept` would allow. Most
                    // edges lead to no further token, so the set itself is rarely made. The modes in force follow from
                    // the allowed lexemes as well.
                    if let (Label::Read(_, mode), true) = (label, self.quick)
                        && !self.opens_too_many(position, accept)
                        && !self.asks_text(position.set, accept)
                        && let ahead = self.ahead_of(&mut ahead_of, position.set, accept)
                        && ahead.is_none_or(|ahead| !ahead.marks || self.text != WILD)
                    {
                        let Some(ahead) = ahead else { continue };
                        if ahead.marks {
                            self.note_impure();
                            self.engine.parser.note_match();
                        }
                        if !bits::has(self.engine.language.grammar.modes_in_force(ahead.modes), mode.index()) {
                            continue;
                        }
                        let next = Position { depth: self.depth_after(position, accept), ..position };
                        if !self.is_at_limit(next) {
                            let accepts = self.engine.language.aheads.allowed(&ahead, self.is_outside(next));
                            let next_allowed = Allowed { accepts, free: ahead.free };
                            self.add_endings(target, &next_allowed, next);
                            if self.goes_on(target, &next_allowed, next) {
                                let after = self.read(position, accept);
                                if after.set != NO_SET {
                                    self.at_root = false;
                                    self.record.iter_mut().for_each(|record| record.path.push(accept));
                                    match self
                                        .parts
                                        .filter(|_| parts_begin && !ahead.marks && self.is_part(target, after))
                                    {
                                        Some(parts) => self.follow_part(parts, target, &next_allowed, after),
                                        None => self.follow(target, &next_allowed, after),
                                    }
                                    self.record.iter_mut().for_each(|record| _ = record.path.pop());
                                }
                            }
                            continue;
                        }
                    }
                }
                Label::Inside if position.depth == 0 => continue,
                Label::Inside | Label::Begin(_) => {}
            }
            self.leave_part(index, position);
        }
        self.lexemes -= 1;
    }

    /// Add the tokens of the nodes after an edge.
    pub(super) fn leave(&mut self, index: usize, position: Position) {
        let (label, target) = self.spanner.edge(index);
        match label {
            Label::Read(accept, mode) | Label::Newline(accept, mode) | Label::NewlineBegin(accept, mode) => {
                let after = self.read(position, accept);
                if after.set == NO_SET {
                    return;
                }
                let was_marked = self.is_marked;
                self.is_marked |= self.asks_text(position.set, accept);
                self.at_root = false;
                if bits::has(self.engine.parser.modes_of(after.set), mode.index()) {
                    match label {
                        Label::NewlineBegin(..) => self.begin(target, after, Column::ZERO),
                        _ => self.visit(target, after),
                    }
                }
                self.is_marked = was_marked;
            }
            Label::Inside => {
                self.at_root = false;
                self.visit(target, position);
            }
            Label::Begin(line) => {
                let column = self.column(line);
                self.at_root = false;
                self.begin(target, position, column);
            }
        }
    }

    /// Leave all tokens to the plain walk.
    fn give_up(&mut self) {
        self.note_impure();
        self.rest.branches.push(self.before);
    }

    /// Symbols that may come after an accept set. The edges of one symbol, in its different modes, stand side by side.
    fn ahead_of(
        &mut self,
        last: &mut Option<(AcceptId, Option<Ahead>)>,
        set: SetId,
        accept: AcceptId,
    ) -> Option<Ahead> {
        if let Some((_, ahead)) = last.filter(|last| last.0 == accept) {
            return ahead;
        }
        let ahead = self.engine.parser.ahead(set, accept);
        *last = Some((accept, ahead));
        ahead
    }

    /// Return whether an allowed lexeme follows a node whose own tokens have been added.
    fn goes_on(&self, node: SpanId, allowed: &Allowed, position: Position) -> bool {
        self.spanner.odd(node).len() > 0
            || self.spanner.edges(node).any(|index| match self.spanner.edge(index).0 {
                Label::Read(accept, _) => allowed.allows(accept),
                Label::Newline(accept, _) | Label::NewlineBegin(accept, _) => {
                    position.depth == 0 && allowed.allows(accept)
                }
                Label::Inside => position.depth > 0,
                Label::Begin(_) => true,
            })
    }

    fn is_at_limit(&self, position: Position) -> bool {
        let limits = self.engine.language.limits;
        position.depth >= limits.brackets || self.engine.parser.blocks(position.indentation) >= limits.blocks
    }

    fn opens_too_many(&self, position: Position, accept: AcceptId) -> bool {
        let language = &self.engine.language;
        language.accept_role(accept) == Role::Open && position.depth >= language.limits.brackets
    }

    fn closes_too_many(&self, position: Position, accept: AcceptId) -> bool {
        self.engine.language.accept_role(accept) == Role::Close && self.engine.parser.is_on_floor(position.depth)
    }

    fn depth_after(&self, position: Position, accept: AcceptId) -> u32 {
        match self.engine.language.accept_role(accept) {
            Role::Open => position.depth + 1,
            Role::Close => position.depth.saturating_sub(1),
            _ => position.depth,
        }
    }

    fn is_outside(&self, position: Position) -> bool {
        self.engine.parser.nesting(&Branch { depth: position.depth, ..self.before }) == BracketSide::Outside
    }

    /// Return whether a line join that R may finish is in progress in an indentation. It fixes a column, which a node
    /// does not know.
    fn asks_column(&self, at: End) -> bool {
        let language = &self.engine.language;
        let joins = |accept| language.accept_role(accept) == Role::Join;
        at.in_line
            && language.shaped.is_some()
            && !language.lexer.is_start(at.state)
            && language.lexer.live(at.state).any(joins)
    }

    /// Return whether any of some tokens is wanted.
    fn wants(&self, ending: Ending) -> bool {
        self.wanted.is_none_or(|wanted| match self.spanner.tokens(ending) {
            TokenSet::Sparse(tokens) => tokens.iter().any(|&token| bits::contains(wanted, token as usize)),
            TokenSet::Dense(mask) => bits::meet(mask, wanted),
        })
    }

    /// Return whether a token may end in a symbol in progress.
    fn may_end(&mut self, at: End, position: Position) -> bool {
        let line = if at.in_line { InLine::Start { column: Column::ZERO, kept: None } } else { InLine::Middle };
        let guards = self.guards(at.guards);
        let branch = Branch {
            set: position.set,
            state: at.state,
            guards,
            line,
            depth: position.depth,
            indentation: position.indentation,
            joined: false,
            at: self.before.at,
            text: if self.engine.parser.asks_text(position.set, at.state) { self.text() } else { PLAIN },
        };
        self.engine.viable(&branch)
    }

    fn guards(&mut self, id: GuardId) -> GuardId {
        if id == NO_GUARDS {
            return id;
        }
        if let Some(&known) = self.guards.get(&id) {
            return known;
        }
        let states: &[StateId] = self.spanner.guards(id);
        let own = self.engine.parser.guards_of(states);
        self.guards.insert(id, own);
        own
    }

    pub(super) fn read(&mut self, position: Position, accept: AcceptId) -> Position {
        if self.opens_too_many(position, accept) || self.closes_too_many(position, accept) {
            return Position { set: NO_SET, ..position };
        }
        let depth = self.depth_after(position, accept);
        let marked = self.engine.language.has_marks(accept);
        if marked && self.engine.parser.expects(position.set).any() {
            self.note_impure();
            self.engine.parser.note_asked(position.set);
        }
        let text = if marked { self.text() } else { PLAIN };
        let read = Read::Accepted(accept, text);
        Position { set: self.engine.parser.scan(position.set, read), depth, ..position }
    }

    /// The column after a line's leading run of blanks.
    fn column(&self, line: Line) -> Column {
        match (line, self.before.line) {
            (Line::Relative(run), InLine::Start { column, kept }) => {
                kept.unwrap_or(column.after_all(self.spanner.run(run)))
            }
            (Line::Absolute(run) | Line::Relative(run), _) => Column::ZERO.after_all(self.spanner.run(run)),
            (Line::Middle, _) => Column::ZERO,
        }
    }

    fn begin(&mut self, target: SpanId, position: Position, column: Column) {
        let branch =
            Branch { set: position.set, indentation: position.indentation, depth: position.depth, ..self.before };
        if let Some(begun) = self.engine.parser.begin_line(&branch, column) {
            self.visit(target, Position { set: begun.set, indentation: begun.indentation, depth: position.depth });
        }
    }
}
