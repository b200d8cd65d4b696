//! Masks by a walk over the token spanner table: the parser is asked once for each lexeme sequence, not for each token.

use crate::engine::{Branch, Engine, Mode, Nesting};
use crate::guards::NO_GUARDS;
use crate::ids::{AcceptId, GuardId, SetId, StateId, TokenId};
use crate::language::Role;
use crate::layout::{Column, IndentationId};
use crate::left::{NO_SET, Read};
use crate::limits;
use crate::mask::{self, Recognizer};
use crate::session::TrieWalk;
use crate::spanner::{NodeId, Spanner};
use crate::spanner_builder::{End, Label, Line};
use crate::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;

/// Where the parser is at a node.
#[derive(Clone, Copy)]
struct Place {
    set: SetId,
    depth: u32,
    indentation: IndentationId,
}

/// What a walk leaves to be done.
#[derive(Debug, Default)]
pub struct Rest {
    /// Tokens that are to be tried byte by byte.
    pub tokens: Vec<u32>,
}

/// Adds the tokens that may follow a branch by a walk over the vocabulary's trie.
pub fn add_by_trie(engine: &mut Engine, vocabulary: &Vocabulary, branch: &Branch, words: &mut [u32]) {
    mask::add_tokens(&mut TrieWalk::new(engine, std::slice::from_ref(branch), vocabulary.longest()), vocabulary, words);
}

/// Adds those of some tokens that may follow, trying each byte by byte.
pub fn add_one_by_one(
    engine: &mut Engine,
    vocabulary: &Vocabulary,
    branches: &[Branch],
    rest: &Rest,
    words: &mut [u32],
) {
    let mut walk = TrieWalk::new(engine, branches, vocabulary.longest());
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
}

/// Adds the tokens that may follow a branch to a packed mask. Returns false, and adds nothing that is not allowed, if the
/// table does not describe the branch: then the trie has to be walked.
pub fn add_tokens(engine: &mut Engine, spanner: &Spanner, branch: &Branch, words: &mut [u32], rest: &mut Rest) -> bool {
    let in_line = match branch.mode {
        Mode::Line { column, kept } => {
            // An indentation may not pass its limit within a token.
            if column.wide.max(kept.map_or(0, |kept| kept.wide)) + 8 * spanner.longest() > limits::COLUMN {
                return false;
            }
            true
        }
        Mode::Middle => false,
    };
    let start = engine.start_at(branch.set);
    let Some(root) = spanner.root(branch.state, engine.guard_states(branch.guards), start, in_line) else {
        return false;
    };
    let place = Place { set: branch.set, depth: branch.depth, indentation: branch.indentation };
    Walk { engine, spanner, words, before: *branch, rest, guards: FxHashMap::default() }.visit(root, place);
    true
}

impl Walk<'_> {
    fn visit(&mut self, node: NodeId, place: Place) {
        let spanner = self.spanner;
        if self.engine.is_loose() {
            self.add_loosely(node, place);
        } else {
            for ending in spanner.endings(node) {
                if self.may_end(ending.at, place) {
                    spanner.tokens(ending).add_to(self.words);
                }
            }
        }
        self.rest.tokens.extend(spanner.odd(node));
        for index in spanner.edges(node) {
            let (label, target) = spanner.edge(index);
            match label {
                Label::Read(accept, mode) => {
                    // The edges of one symbol, in its different modes, stand side by side.
                    let after = self.read(place, accept);
                    if after.set != NO_SET && self.engine.mode_of(after.set) == mode {
                        self.visit(target, after);
                    }
                }
                Label::Inside if place.depth > 0 => self.visit(target, place),
                Label::Newline(accept, mode) if place.depth == 0 => {
                    let after = self.read(place, accept);
                    if after.set != NO_SET && self.engine.mode_of(after.set) == mode {
                        self.visit(target, after);
                    }
                }
                Label::NewlineBegin(accept, mode) if place.depth == 0 => {
                    let after = self.read(place, accept);
                    if after.set != NO_SET && self.engine.mode_of(after.set) == mode {
                        self.begin(target, after, Column::ZERO);
                    }
                }
                Label::Inside | Label::Newline(..) | Label::NewlineBegin(..) => {}
                Label::Begin(line) => {
                    let column = self.column(line);
                    self.begin(target, place, column);
                }
            }
        }
    }

    fn add_loosely(&mut self, node: NodeId, place: Place) {
        let spanner = self.spanner;
        let outside = self.is_outside(place);
        let id = self.engine.next_of(place.set);
        let limits = self.engine.language.limits;
        let at_limit = place.depth >= limits.brackets || self.engine.blocks(place.indentation) >= limits.blocks;
        for ending in spanner.endings(node) {
            let may = match ending.at {
                Some((state, NO_GUARDS)) if !at_limit => {
                    self.engine.next(id).takes(outside, self.engine.language.lexer.live_mask(state))
                }
                at => self.may_end(at, place),
            };
            if may {
                spanner.tokens(ending).add_to(self.words);
            }
        }
    }

    fn is_outside(&self, place: Place) -> bool {
        self.engine.nesting(&Branch { depth: place.depth, ..self.before }) == Nesting::Outside
    }

    /// Whether a token may end in a symbol in progress.
    fn may_end(&mut self, at: End, place: Place) -> bool {
        let (state, guards, mode) = match at {
            Some((state, guards)) => (state, self.guards(guards), Mode::Middle),
            None => (self.engine.start_at(place.set), NO_GUARDS, Mode::Line { column: Column::ZERO, kept: None }),
        };
        let branch = Branch {
            set: place.set,
            state,
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
        if self.engine.is_loose() {
            let id = self.engine.next_of(place.set);
            if !self.engine.next(id).takes_one(self.is_outside(place), accept) {
                return Place { set: NO_SET, ..place };
            }
        }
        let depth = match self.engine.language.accept_role(accept) {
            Role::Open if place.depth >= self.engine.language.limits.brackets => return Place { set: NO_SET, ..place },
            Role::Open => place.depth + 1,
            Role::Close => place.depth.saturating_sub(1),
            _ => place.depth,
        };
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
