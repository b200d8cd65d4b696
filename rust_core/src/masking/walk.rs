//! Masks by a walk over the token spanner table: the parser is asked once for each lexeme sequence, not for each token.

use crate::chart::left::{NO_SET, Read};
use crate::engine::stepping::{Branch, Engine, Mode, Nesting};
use crate::ids::{AcceptId, GuardId, SetId, StateId, TokenId};
use crate::language::ahead::AHEAD_WORDS;
use crate::language::follow::bit;
use crate::language::free::LINE;
use crate::language::shape::ShapeId;
use crate::lexing::guards::NO_GUARDS;
use crate::lexing::layout::{Column, IndentationId};
use crate::lexing::roles::Role;
use crate::limits;
use crate::masking::plain::{self, Recognizer};
use crate::masking::table::build::{End, Label, Line};
use crate::masking::table::file::{NodeId, Spanner};
use crate::masking::vocabulary::Vocabulary;
use crate::session::TrieWalk;
use rustc_hash::FxHashMap;

/// What may come next in brackets or outside of them.
pub(crate) struct Taken {
    /// The accept sets that can be read or ignored, as a mask.
    pub(crate) accepts: [u64; AHEAD_WORDS],
    /// The free states from which the middle can go on.
    pub(crate) free: u64,
}

/// Nothing is known of what may come: all is tried.
const EVERYTHING: Taken = Taken { accepts: [u64::MAX; AHEAD_WORDS], free: u64::MAX };

impl Taken {
    #[inline(always)]
    fn takes(&self, accept: AcceptId) -> bool {
        accept.index() >= 64 * AHEAD_WORDS || self.accepts[accept.index() / 64] >> (accept.index() % 64) & 1 == 1
    }
}

/// Where the parser is at a node.
#[derive(Clone, Copy)]
struct Place {
    set: SetId,
    depth: u32,
    indentation: IndentationId,
}

/// What a walk leaves to be done.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Tokens that are to be tried byte by byte.
    pub tokens: Vec<u32>,
    /// Branches that the table does not describe: the trie is to be walked.
    pub branches: Vec<Branch>,
}

/// Adds the tokens that may follow a branch by a walk over the vocabulary's trie.
pub(crate) fn add_by_trie(
    engine: &mut Engine,
    vocabulary: &Vocabulary,
    branch: &Branch,
    at: ShapeId,
    words: &mut [u32],
) {
    let mut walk = TrieWalk::new(engine, std::slice::from_ref(branch), at, vocabulary.longest());
    plain::add_tokens(&mut walk, vocabulary, words);
}

/// Adds those of some tokens that may follow, trying each byte by byte.
pub(crate) fn add_one_by_one(
    engine: &mut Engine,
    vocabulary: &Vocabulary,
    branches: &[Branch],
    at: ShapeId,
    rest: &Rest,
    words: &mut [u32],
) {
    let mut walk = TrieWalk::new(engine, branches, at, vocabulary.longest());
    for &token in &rest.tokens {
        walk.pop_to(0);
        if vocabulary.bytes_of(TokenId(token)).iter().all(|&byte| walk.try_push(byte)) {
            words[token as usize / 32] |= 1 << (token % 32);
        }
    }
}

struct Walk<'a> {
    engine: &'a mut Engine,
    spanner: &'a Spanner,
    words: &'a mut [u32],
    /// The branch before the token.
    before: Branch,
    rest: &'a mut Rest,
    guards: FxHashMap<GuardId, GuardId>,
    /// What may come next is known of dots, and R has no say in it.
    quick: bool,
    /// Lexemes of the sequence in progress.
    lexemes: usize,
}

/// Adds the tokens that may follow a branch to a packed mask, but for what the table does not describe.
pub(crate) fn add_tokens(engine: &mut Engine, spanner: &Spanner, branch: &Branch, words: &mut [u32], rest: &mut Rest) {
    let in_line = match branch.mode {
        Mode::Line { column, kept } => {
            // An indentation may not pass its limit within a token.
            if column.wide.max(kept.map_or(0, |kept| kept.wide)) + 8 * spanner.longest() > limits::COLUMN {
                rest.branches.push(*branch);
                return;
            }
            true
        }
        Mode::Middle => false,
    };
    let start = engine.start_at(branch.set);
    let Some(root) = spanner.root(branch.state, engine.guard_states(branch.guards), start, in_line) else {
        rest.branches.push(*branch);
        return;
    };
    let place = Place { set: branch.set, depth: branch.depth, indentation: branch.indentation };
    let quick = engine.is_loose() && !engine.language.aheads.is_empty();
    Walk { engine, spanner, words, before: *branch, rest, guards: FxHashMap::default(), quick, lexemes: 0 }
        .visit(root, place);
}

impl Walk<'_> {
    /// Adds the tokens of a node, and of those that follow.
    fn visit(&mut self, node: NodeId, place: Place) {
        if self.lexemes >= limits::TOKEN_LEXEMES {
            self.rest.branches.push(self.before);
            return;
        }
        if self.quick && !self.is_at_limit(place) {
            let taken = self.engine.taken(place.set, self.is_outside(place));
            self.add_endings(node, &taken, place);
            self.follow(node, &taken, place);
            return;
        }
        for ending in self.spanner.endings(node) {
            if self.asks_column(ending.at) {
                self.spanner.tokens(ending).for_each(|token| self.rest.tokens.push(token));
            } else if self.may_end(ending.at, place) {
                self.spanner.tokens(ending).add_to(self.words);
            }
        }
        self.follow(node, &EVERYTHING, place);
    }

    /// Adds the tokens that end in a node, where the stack is loose.
    fn add_endings(&mut self, node: NodeId, taken: &Taken, place: Place) {
        let spanner = self.spanner;
        let words: &[u32; 2 * AHEAD_WORDS] = bytemuck::cast_ref(&taken.accepts);
        for ending in spanner.endings(node) {
            let may = if ending.at.in_line {
                taken.free & bit(LINE) != 0
            } else if ending.at.guards == NO_GUARDS {
                let live = self.engine.language.lexer.live_mask(ending.at.state);
                taken.accepts.iter().zip(live).any(|(one, other)| one & other != 0)
            } else {
                words.iter().zip(spanner.live_beside(ending)).any(|(one, other)| one & other != 0)
            };
            if may {
                spanner.tokens(ending).add_to(self.words);
            }
        }
        debug_assert!(!self.is_at_limit(place), "a limit is asked of the engine");
    }

    /// Adds the tokens of the nodes after a node. What may come next is asked before the parser is moved: most of them end
    /// there, or go on with nothing that may.
    fn follow(&mut self, node: NodeId, taken: &Taken, place: Place) {
        if self.lexemes >= limits::TOKEN_LEXEMES {
            self.rest.branches.push(self.before);
            return;
        }
        self.lexemes += 1;
        let spanner = self.spanner;
        self.rest.tokens.extend(spanner.odd(node));
        let mut previous = None;
        let mut after = Place { set: NO_SET, ..place };
        for index in spanner.edges(node) {
            let (label, target) = spanner.edge(index);
            match label {
                Label::Read(accept, _) | Label::Newline(accept, _) | Label::NewlineBegin(accept, _) => {
                    if !taken.takes(accept) || !matches!(label, Label::Read(..)) && place.depth > 0 {
                        continue;
                    }
                    if let (Label::Read(_, mode), true) = (label, self.quick)
                        && !self.opens_too_many(place, accept)
                    {
                        let Some(ahead) = self.engine.ahead(place.set, accept) else { continue };
                        let own = ahead.modes & !1;
                        if mode.index() != if own == 0 { 0 } else { own.trailing_zeros() as usize } {
                            continue;
                        }
                        let next = Place { depth: self.depth_after(place, accept), ..place };
                        if !self.is_at_limit(next) {
                            let next_taken = self.engine.taken_of(&ahead, self.is_outside(next));
                            self.add_endings(target, &next_taken, next);
                            if self.goes_on(target, &next_taken, next) {
                                let after = self.read(place, accept);
                                if after.set != NO_SET {
                                    self.follow(target, &next_taken, after);
                                }
                            }
                            continue;
                        }
                    }
                    // The edges of one symbol, in its different modes, stand side by side.
                    if previous != Some(accept) {
                        previous = Some(accept);
                        after = self.read(place, accept);
                    }
                    if after.set == NO_SET {
                        continue;
                    }
                    match label {
                        Label::Read(_, mode) | Label::Newline(_, mode) if self.engine.mode_of(after.set) == mode => {
                            self.visit(target, after);
                        }
                        Label::NewlineBegin(_, mode) if self.engine.mode_of(after.set) == mode => {
                            self.begin(target, after, Column::ZERO);
                        }
                        _ => {}
                    }
                }
                Label::Inside if place.depth > 0 => self.visit(target, place),
                Label::Inside => {}
                Label::Begin(line) => {
                    let column = self.column(line);
                    self.begin(target, place, column);
                }
            }
        }
        self.lexemes -= 1;
    }

    /// Whether anything at all may come after a node, of which the tokens that end in it have been taken.
    fn goes_on(&self, node: NodeId, taken: &Taken, place: Place) -> bool {
        !self.spanner.odd(node).is_empty()
            || self.spanner.edges(node).any(|index| match self.spanner.edge(index).0 {
                Label::Read(accept, _) => taken.takes(accept),
                Label::Newline(accept, _) | Label::NewlineBegin(accept, _) => place.depth == 0 && taken.takes(accept),
                Label::Inside => place.depth > 0,
                Label::Begin(_) => true,
            })
    }

    fn is_at_limit(&self, place: Place) -> bool {
        let limits = self.engine.language.limits;
        place.depth >= limits.brackets || self.engine.blocks(place.indentation) >= limits.blocks
    }

    fn opens_too_many(&self, place: Place, accept: AcceptId) -> bool {
        let language = &self.engine.language;
        language.accept_role(accept) == Role::Open && place.depth >= language.limits.brackets
    }

    fn depth_after(&self, place: Place, accept: AcceptId) -> u32 {
        match self.engine.language.accept_role(accept) {
            Role::Open => place.depth + 1,
            Role::Close => place.depth.saturating_sub(1),
            _ => place.depth,
        }
    }

    fn is_outside(&self, place: Place) -> bool {
        self.engine.nesting(&Branch { depth: place.depth, ..self.before }) == Nesting::Outside
    }

    /// Whether a line join that R may finish is in progress in an indentation: it fixes a column, which a node does not know.
    fn asks_column(&self, at: End) -> bool {
        let language = &self.engine.language;
        let joins = |accept| language.accept_role(accept) == Role::Join;
        at.in_line
            && language.shaped.is_some()
            && !language.lexer.is_start(at.state)
            && language.lexer.live(at.state).any(joins)
    }

    /// Whether a token may end in a symbol in progress.
    fn may_end(&mut self, at: End, place: Place) -> bool {
        let mode = if at.in_line { Mode::Line { column: Column::ZERO, kept: None } } else { Mode::Middle };
        let guards = self.guards(at.guards);
        let branch = Branch {
            set: place.set,
            state: at.state,
            guards,
            mode,
            depth: place.depth,
            indentation: place.indentation,
            joined: false,
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
        let own = self.engine.guards_of(states);
        self.guards.insert(id, own);
        own
    }

    fn read(&mut self, place: Place, accept: AcceptId) -> Place {
        if self.opens_too_many(place, accept) {
            return Place { set: NO_SET, ..place };
        }
        let depth = self.depth_after(place, accept);
        Place { set: self.engine.scan(place.set, Read::Accepted(accept)), depth, ..place }
    }

    /// The column after the run of blanks that a line begins with.
    fn column(&self, line: Line) -> Column {
        match (line, self.before.mode) {
            (Line::Relative(run), Mode::Line { column, kept }) => {
                kept.unwrap_or(column.after_all(self.spanner.run(run)))
            }
            (Line::Absolute(run) | Line::Relative(run), _) => Column::ZERO.after_all(self.spanner.run(run)),
            (Line::Middle, _) => Column::ZERO,
        }
    }

    fn begin(&mut self, target: NodeId, place: Place, column: Column) {
        let branch = Branch { set: place.set, indentation: place.indentation, depth: place.depth, ..self.before };
        if let Some(begun) = self.engine.begin_line(&branch, column) {
            self.visit(target, Place { set: begun.set, indentation: begun.indentation, depth: place.depth });
        }
    }
}
