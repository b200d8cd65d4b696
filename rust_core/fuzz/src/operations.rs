//! Sessions in use: operations in any order, each answer compared with one from a plainer way.
//!
//! | answer | plainer way |
//! |---|---|
//! | completeness | a handwritten parser |
//! | `check` | the middle byte by byte |
//! | a moved or stopped session | a session opened afresh |
//! | a mask | the plain walk |
//! | a state moved to and fro | a new state |

use super::naive;
use super::{blocks, tables, text};
use arbitrary::Arbitrary;
use fim_server_core::{Language, Matcher, Outcome, Session, Shape, State, Stop, TokenId, mask_words, watched};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A text in which a byte is a piece of the small language. Long ones are cut, so that an input is answered in
/// milliseconds.
#[derive(Debug, Clone, Arbitrary)]
pub struct Pieces(Vec<u8>);

const MOST_PIECES: usize = 24;
const MOST_OPERATIONS: usize = 24;
const MOST_HELD: usize = 4;

impl Pieces {
    fn text(&self) -> String {
        text(&self.0[..self.0.len().min(MOST_PIECES)])
    }
}

/// Operation on a session. Numbers are taken modulo what exists.
#[derive(Debug, Clone, Arbitrary)]
pub enum Operation {
    Open(Pieces, Pieces),
    Move(Pieces),
    Type(Pieces),
    Erase(u8),
    Check(Pieces),
    Start,
    Advance(u8, Pieces),
    AdvanceBytes(u8, [u8; 3]),
    Rollback(u8, u8),
    Fork(u8),
    Shortest(u8),
    Explain(u8, Pieces),
    Grammar,
    Match(u8),
    Commit(u8, u16),
    TakeBack(u8, u8),
    Mask(u8),
    Plan(u8, u8),
    Land(u8, u8),
    Forced(u8),
    Stop(Pieces, u8),
}

struct HeldState {
    state: State,
    middle: Vec<u8>,
}

struct HeldMatcher {
    matcher: Matcher,
    shape: usize,
    tokens: Vec<TokenId>,
}

struct World {
    left: String,
    right: String,
    session: Arc<Session>,
    states: Vec<HeldState>,
    matchers: Vec<HeldMatcher>,
    /// An earlier session, and its answers for a middle.
    earlier: Option<(Arc<Session>, String, Said)>,
}

/// Carry operations out; panics where two ways to an answer differ.
pub fn run(operations: &[Operation]) {
    let mut world = World::new();
    for operation in operations.iter().take(MOST_OPERATIONS) {
        world.take(operation);
    }
}

/// The language itself, and for middles of one and of two lines, and for those of a pattern.
fn shaped() -> &'static [Arc<Language>; 4] {
    static SHAPED: OnceLock<[Arc<Language>; 4]> = OnceLock::new();
    SHAPED.get_or_init(|| {
        let having = |shape: Shape| Arc::new(blocks().shaped(Arc::new(shape)).expect("a small shape"));
        let lines = |most| having(Shape::lines(most).expect("a small number"));
        [blocks(), lines(1), lines(2), having(Shape::regex("(?s).{0,6}[a)\n]").expect("a pattern"))]
    })
}

/// Viable, complete, and where it is refused.
type Said = (bool, bool, Option<usize>);

fn said(session: &Arc<Session>, middle: &str) -> Said {
    let verdict = session.check(middle);
    (verdict.viable, verdict.complete, verdict.rejected_at)
}

fn described(session: &Session) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        session.guarantee(),
        session.diagnostics(),
        session.broken_at(),
        session.inside(),
        session.open_constructs()
    )
}

impl World {
    fn new() -> Self {
        let session = Session::open(&blocks(), "", "");
        let (states, matchers) = (Vec::new(), Vec::new());
        Self { left: String::new(), right: String::new(), session, states, matchers, earlier: None }
    }

    fn fresh(&self) -> Arc<Session> {
        Session::open(&blocks(), &self.left, &self.right)
    }

    fn take(&mut self, operation: &Operation) {
        match operation {
            Operation::Open(left, right) => {
                (self.left, self.right) = (left.text(), right.text());
                self.settle(self.fresh());
            }
            Operation::Move(left) => self.go_on(left.text()),
            Operation::Type(pieces) => self.go_on(format!("{}{}", self.left, pieces.text())),
            Operation::Erase(count) => {
                let kept = self.left.chars().count().saturating_sub(usize::from(*count % 8));
                self.go_on(self.left.chars().take(kept).collect());
            }
            Operation::Check(middle) => self.check(&middle.text()),
            Operation::Start => self.start(),
            Operation::Advance(index, pieces) => self.advance(*index, pieces.text().as_bytes()),
            Operation::AdvanceBytes(index, bytes) => self.advance(*index, bytes),
            Operation::Rollback(index, count) => self.rollback(*index, usize::from(*count % 16)),
            Operation::Fork(index) => {
                let held = self.state(*index);
                let forked = HeldState { state: held.state.clone(), middle: held.middle.clone() };
                keep(&mut self.states, forked);
            }
            Operation::Shortest(index) => self.shortest(*index),
            Operation::Explain(index, pieces) => self.explain(*index, &pieces.text()),
            Operation::Grammar => assert_eq!(self.session.quotient_grammar(), self.fresh().quotient_grammar()),
            Operation::Match(shape) => self.start_matcher(usize::from(*shape) % shaped().len()),
            Operation::Commit(index, token) => self.commit(*index, usize::from(*token)),
            Operation::TakeBack(index, count) => self.take_back(*index, usize::from(*count % 8)),
            Operation::Mask(index) => self.mask(*index),
            Operation::Plan(index, enough) => self.plan(*index, usize::from(*enough % 8)),
            Operation::Land(index, left) => self.land(*index, usize::from(*left % 8)),
            Operation::Forced(index) => self.forced(*index),
            Operation::Stop(pieces, microseconds) => self.stop(&pieces.text(), *microseconds),
        }
    }

    // --- contexts

    fn settle(&mut self, session: Arc<Session>) {
        self.session = session;
        self.states.clear();
        self.matchers.clear();
    }

    fn go_on(&mut self, left: String) {
        let moved = self.session.moved(&left);
        self.left = left;
        let fresh = self.fresh();
        self.settle(moved.unwrap_or_else(|| fresh.clone()));
        assert_eq!(described(&self.session), described(&fresh), "a session that was moved");
        if let Some((session, middle, verdict)) = &self.earlier {
            assert_eq!(said(session, middle), *verdict, "what others went on from");
        }
    }

    fn check(&mut self, middle: &str) {
        let verdict = said(&self.session, middle);
        assert_eq!(verdict, said(&self.fresh(), middle), "{middle:?} of a fresh session");
        let (viable, complete, rejected_at) = verdict;
        assert_eq!(viable, rejected_at.is_none());
        assert!(viable || !complete);
        let mut state = self.session.start();
        let taken = middle.bytes().take_while(|byte| state.advance(&[*byte]) == 1).count();
        assert_eq!(taken, rejected_at.unwrap_or(middle.len()), "{middle:?} byte by byte");
        if let Some(expected) = naive::parses(&format!("{}{middle}{}", self.left, self.right)) {
            assert_eq!(complete, expected, "{:?} {middle:?} {:?}, parsed by hand", self.left, self.right);
        }
        self.earlier = Some((self.session.clone(), middle.to_string(), verdict));
    }

    // --- states

    fn start(&mut self) {
        let begun = HeldState { state: self.session.start(), middle: Vec::new() };
        keep(&mut self.states, begun);
    }

    fn state(&mut self, index: u8) -> &mut HeldState {
        if self.states.is_empty() {
            self.start();
        }
        let count = self.states.len();
        &mut self.states[usize::from(index) % count]
    }

    /// A state of a fresh session after a middle.
    fn plain(&self, middle: &[u8]) -> State {
        let mut state = self.fresh().start();
        assert_eq!(state.advance(middle), middle.len(), "taken again");
        state
    }

    fn advance(&mut self, index: u8, bytes: &[u8]) {
        let held = self.state(index);
        let before = held.middle.clone();
        let taken = held.state.advance(bytes);
        held.middle.extend_from_slice(&bytes[..taken]);
        let mut plain = self.plain(&before);
        assert_eq!(bytes.iter().take_while(|byte| plain.advance(&[**byte]) == 1).count(), taken);
        let state = &self.state(index).state;
        assert_eq!(state.is_complete(), plain.is_complete());
        assert_eq!(state.is_viable(), plain.is_viable());
        assert_eq!(format!("{:?}", state.inside()), format!("{:?}", plain.inside()));
    }

    fn rollback(&mut self, index: u8, count: usize) {
        let held = self.state(index);
        if count > held.middle.len() {
            assert!(held.state.rollback(count).is_err());
        } else {
            held.state.rollback(count).expect("what was taken");
            held.middle.truncate(held.middle.len() - count);
        }
        assert_eq!(held.state.len(), held.middle.len());
    }

    fn shortest(&mut self, index: u8) {
        let held = self.state(index);
        let (found, complete, viable) =
            (held.state.shortest_completion(), held.state.is_complete(), held.state.is_viable());
        let middle = held.middle.clone();
        let Ok(found) = found else { return };
        assert_eq!(found.is_some(), viable, "a viable middle has a completion");
        let Some(found) = found else { return };
        assert_eq!(found.is_empty(), complete);
        let plain = self.plain(&middle).shortest_completion().ok().flatten().map(|text| text.len());
        assert_eq!(plain, Some(found.len()), "the same distance");
        if let Ok(whole) = String::from_utf8([middle, found].concat()) {
            self.is_complete(&whole);
        }
    }

    /// A middle is complete, whomever one asks.
    fn is_complete(&self, middle: &str) {
        assert!(said(&self.fresh(), middle).1, "{middle:?} completes {:?}, {:?}", self.left, self.right);
        let expected = naive::parses(&format!("{}{middle}{}", self.left, self.right));
        assert_ne!(expected, Some(false), "{middle:?} completes {:?}, {:?}, by hand", self.left, self.right);
    }

    fn explain(&mut self, index: u8, text: &str) {
        let held = self.state(index);
        let found = held.state.explain(text.as_bytes());
        let taken = held.state.clone().advance(text.as_bytes());
        let middle = held.middle.clone();
        assert_eq!(found.accepted, taken, "as far as advancing goes");
        assert_eq!(format!("{found:?}"), format!("{:?}", self.plain(&middle).explain(text.as_bytes())));
    }

    // --- matchers

    fn start_matcher(&mut self, shape: usize) {
        let session =
            if shape == 0 { self.session.clone() } else { Session::open(&shaped()[shape], &self.left, &self.right) };
        let begun = HeldMatcher { matcher: Matcher::new(session.start(), tables().clone()), shape, tokens: Vec::new() };
        keep(&mut self.matchers, begun);
    }

    fn matcher(&mut self, index: u8) -> &mut HeldMatcher {
        if self.matchers.is_empty() {
            self.start_matcher(0);
        }
        let count = self.matchers.len();
        &mut self.matchers[usize::from(index) % count]
    }

    /// A matcher of a fresh session after some tokens.
    fn plain_matcher(&self, shape: usize, tokens: &[TokenId]) -> Matcher {
        let session = Session::open(&shaped()[shape], &self.left, &self.right);
        let mut matcher = Matcher::new(session.start(), tables().clone());
        for token in tokens {
            matcher.commit(*token).expect("what was allowed");
        }
        matcher
    }

    fn commit(&mut self, index: u8, number: usize) {
        let held = self.matcher(index);
        let mut mask = vec![0; mask_words(tables().vocabulary.len())];
        held.matcher.fill_mask(&mut mask);
        let allowed: Vec<usize> =
            (1..tables().vocabulary.len()).filter(|id| mask[id / 32] >> (id % 32) & 1 == 1).collect();
        // Mostly an allowed token: another one ends the trial.
        let id = if number % 8 == 0 || allowed.is_empty() {
            1 + number % (tables().vocabulary.len() - 1)
        } else {
            allowed[number % allowed.len()]
        };
        let token = TokenId(u32::try_from(id).expect("a small vocabulary"));
        assert_eq!(held.matcher.commit(token).is_ok(), allowed.contains(&id), "{token:?} and its mask");
        if allowed.contains(&id) {
            held.tokens.push(token);
        }
    }

    fn take_back(&mut self, index: u8, count: usize) {
        let held = self.matcher(index);
        if count > held.tokens.len() {
            assert!(held.matcher.rollback(count).is_err());
        } else {
            held.matcher.rollback(count).expect("what was committed");
            held.tokens.truncate(held.tokens.len() - count);
        }
    }

    fn mask(&mut self, index: u8) {
        let held = self.matcher(index);
        super::same_masks(&held.matcher, tables());
        let (shape, tokens) = (held.shape, held.tokens.clone());
        let mut mask = vec![0; mask_words(tables().vocabulary.len())];
        let mut fresh = mask.clone();
        held.matcher.fill_mask(&mut mask);
        let plain = self.plain_matcher(shape, &tokens);
        plain.fill_mask(&mut fresh);
        assert_eq!(mask, fresh, "the mask of a fresh session");
        if shape == 0 {
            let middle: Vec<u8> =
                tokens.iter().flat_map(|token| tables().vocabulary.bytes_of(*token).to_vec()).collect();
            let state = self.plain(&middle);
            for id in 1..tables().vocabulary.len() {
                let bytes = tables().vocabulary.bytes_of(TokenId(u32::try_from(id).expect("small")));
                let taken = state.clone().advance(bytes) == bytes.len();
                assert_eq!(taken, mask[id / 32] >> (id % 32) & 1 == 1, "token {id} by its bytes");
            }
        }
    }

    fn plan(&mut self, index: u8, enough: usize) {
        let held = self.matcher(index);
        let shape = held.shape;
        let Outcome::Plan(plan) = held.matcher.landing(enough) else { return };
        for token in plan.tokens() {
            held.matcher.commit(token).expect("a token of a plan");
        }
        assert!(held.matcher.is_complete(), "a plan completes");
        held.matcher.rollback(plan.len()).expect("what was committed");
        let mut tokens = held.tokens.clone();
        tokens.extend(plan.tokens());
        let middle = tokens.iter().flat_map(|token| tables().vocabulary.bytes_of(*token).to_vec()).collect();
        let Ok(middle) = String::from_utf8(middle) else { return };
        self.is_complete(&middle);
        assert!(shape != 1 || !middle.contains('\n'), "{middle:?} is one line");
        assert!(shape != 2 || middle.matches('\n').count() < 2, "{middle:?} is two lines");
    }

    fn land(&mut self, index: u8, left: usize) {
        let held = self.matcher(index);
        let mut mask = vec![0; mask_words(tables().vocabulary.len())];
        let mut landing = mask.clone();
        held.matcher.fill_mask(&mut mask);
        held.matcher.fill_landing_mask(left, &mut landing);
        assert!(landing.iter().zip(&mask).all(|(some, all)| some & !all == 0), "what lands may follow");
    }

    fn forced(&mut self, index: u8) {
        let held = self.matcher(index);
        if held.shape != 0 {
            return;
        }
        let forced = held.matcher.forced();
        let middle: Vec<u8> =
            held.tokens.iter().flat_map(|token| tables().vocabulary.bytes_of(*token).to_vec()).collect();
        let mut state = self.plain(&middle);
        for byte in forced {
            assert!(!state.is_complete(), "what may end is not forced");
            assert!((0..=255u8).all(|other| (state.clone().advance(&[other]) == 1) == (other == byte)));
            state.advance(&[byte]);
        }
    }

    // --- being stopped

    /// Check that a stopped call leaves the session as it was.
    fn stop(&mut self, middle: &str, microseconds: u8) {
        let stop = || {
            let stop = Stop::new(Some(Instant::now() + Duration::from_micros(u64::from(microseconds))));
            if microseconds == 0 {
                stop.set();
            }
            [Arc::new(stop)]
        };
        let left = format!("{}{middle}", self.left);
        let _ = watched(&stop(), || Session::open(&blocks(), &left, &self.right).check(middle));
        let _ = watched(&stop(), || self.session.moved(&left));
        let _ = watched(&stop(), || self.session.check(middle));
        let _ = watched(&stop(), || self.session.start().shortest_completion().is_ok());
        let _ = watched(&stop(), || self.session.start().explain(middle.as_bytes()));
        let _ = watched(&stop(), || self.session.quotient_grammar());
        let _ = watched(&stop(), || {
            let mut mask = vec![0; mask_words(tables().vocabulary.len())];
            Matcher::new(self.session.start(), tables().clone()).fill_mask(&mut mask);
        });
        let fresh = self.fresh();
        assert_eq!(described(&self.session), described(&fresh), "a session that was stopped");
        assert_eq!(said(&self.session, middle), said(&fresh, middle), "{middle:?} after a stop");
        if let Some(moved) = self.session.moved(&left) {
            assert_eq!(said(&moved, middle), said(&Session::open(&blocks(), &left, &self.right), middle));
        }
        super::same_masks(&Matcher::new(self.session.start(), tables().clone()), tables());
    }
}

fn keep<T>(held: &mut Vec<T>, one: T) {
    if held.len() == MOST_HELD {
        held.remove(0);
    }
    held.push(one);
}
