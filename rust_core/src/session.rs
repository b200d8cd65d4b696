//! Sessions: the middles that one pair of contexts allows.

use crate::diagnostics::constructs::{self, LastSeen};
use crate::diagnostics::inside::{Inside, inside_all};
use crate::diagnostics::quotient;
use crate::diagnostics::reach::right_reach;
use crate::engine::branch::Branch;
use crate::engine::parser::Parser;
use crate::engine::verdicts::Engine;
use crate::language::compiled::Language;
use crate::language::definition::Floor;
use crate::limits;
use crate::masking::own::OwnMasks;
use crate::stop::poll;
use std::sync::{Arc, Mutex, MutexGuard};

/// Strength of a session's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    /// Some middle makes the whole a program, and every answer is exact.
    Exact,
    /// No middle can: every text is refused.
    None,
}

/// One pair of contexts. Shared by its states; calls from several threads wait for each other.
#[derive(Debug)]
pub struct Session {
    language: Arc<Language>,
    /// Engine shared with the sessions that this one was moved from or to, which have the same R. No session may forget
    /// sets that another one refers to: sets are forgotten under the lock under which they were made (see
    /// [`Engine::truncate`]).
    engine: Arc<Mutex<Engine>>,
    /// Masks beside the engine, shared with the same sessions. Locked only while the engine is locked.
    own_masks: Arc<Mutex<OwnMasks>>,
    left: Box<str>,
    trail: Trail,
    opening: Vec<Branch>,
    broken: Option<Broken>,
    diagnostics: Vec<String>,
    /// The floor: constructs that middles must not close, and their number.
    floor: Option<(Floor, u32)>,
}

/// Place where a pair of contexts fails, so that no middle makes a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// At a byte of L: no program begins with L up to and with it.
    Left(usize),
    /// At a byte of R: no parse of R passes the symbol that begins there.
    Right(usize),
    /// Each is possible by itself.
    Between,
}

/// Extent to which L could be stepped, and places from which to go on if L changes.
#[derive(Debug, Clone)]
struct Trail {
    /// Branches after so many bytes of L, whatever R requires; ascending, from the empty text to the end.
    stops: Vec<(usize, Branch)>,
    /// The first byte after which there are no branches, or the end of the text if none can go on from there.
    failed_at: Option<usize>,
}

impl Trail {
    fn new(first: Vec<Branch>) -> Self {
        Self { stops: first.into_iter().map(|branch| (0, branch)).collect(), failed_at: None }
    }

    /// The trail of the first `bytes` bytes.
    fn shared(&self, bytes: usize) -> Self {
        let count = self.stops.partition_point(|stop| stop.0 <= bytes);
        Self { stops: self.stops[..count].to_vec(), failed_at: None }
    }

    /// The branches at the last stop before one of `stops`, and where it is.
    fn before(&self, stops: usize) -> (usize, &[(usize, Branch)]) {
        let at = self.stops[stops - 1].0;
        let begin = self.stops[..stops].partition_point(|stop| stop.0 < at);
        (at, &self.stops[begin..stops])
    }

    /// Step on to the end of a text, or to where it cannot be stepped.
    fn step(&mut self, parser: &mut Parser, text: &[u8]) {
        let (mut stopped, last) = self.before(self.stops.len());
        let mut branches: Vec<Branch> = last.iter().map(|stop| stop.1).collect();
        let mut stepped = Vec::new();
        for (index, &byte) in text.iter().enumerate().skip(stopped) {
            poll();
            parser.step_all(&branches, byte, &mut stepped);
            let failed = stepped.is_empty();
            if (failed || index >= stopped + limits::STOP_BYTES) && index > stopped {
                self.stops.extend(branches.iter().map(|&branch| (index, branch)));
                stopped = index;
            }
            if failed {
                self.failed_at = Some(index);
                return;
            }
            std::mem::swap(&mut branches, &mut stepped);
        }
        if !branches.iter().any(|branch| parser.can_go_on(branch)) {
            self.failed_at = Some(text.len());
        }
        if text.len() > stopped {
            self.stops.extend(branches.into_iter().map(|branch| (text.len(), branch)));
        }
    }

    /// The branches at the end of the text, or at the end of its parsed part.
    fn end(&self) -> impl Iterator<Item = Branch> + '_ {
        self.before(self.stops.len()).1.iter().map(|stop| stop.1)
    }

    /// The first byte of the text that made it impossible. A symbol is parsed at its end, but its first bytes may
    /// already exclude every symbol that may come.
    fn failed_for_certain(&self, parser: &mut Parser, text: &[u8], failed_at: usize) -> usize {
        let goes_on = |parser: &Parser, branch: &Branch| parser.can_go_on(branch);
        let mut stops = self.stops.len();
        let (at, mut branches) = loop {
            let (at, found) = self.before(stops);
            if at == 0 || found.iter().any(|stop| goes_on(parser, &stop.1)) {
                break (at, found.iter().map(|stop| stop.1).collect::<Vec<Branch>>());
            }
            stops -= found.len();
        };
        let mut stepped = Vec::new();
        for (index, &byte) in text.iter().enumerate().take(failed_at).skip(at) {
            parser.step_all(&branches, byte, &mut stepped);
            if !stepped.iter().any(|branch| goes_on(parser, branch)) {
                return index;
            }
            std::mem::swap(&mut branches, &mut stepped);
        }
        failed_at
    }
}

/// Length of the common prefix of two texts. It compares whole blocks, since this comparison dominates a keystroke:
/// byte by byte it took two thirds of the instructions at 10,000 characters.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let alike = BLOCK * blocks.take_while(|(one, other)| one == other).count();
    alike + one[alike..].iter().zip(&other[alike..]).take_while(|(one, other)| one == other).count()
}

impl Session {
    /// Open a pair of contexts. This never fails: where they do not parse, the guarantee says so.
    #[must_use]
    pub fn open(language: &Arc<Language>, left: &str, right: &str) -> Arc<Self> {
        let engine = Engine::open(language, right.as_bytes());
        let trail = Trail::new(engine.parser.first_branches());
        let shared = Arc::new(Mutex::new(engine));
        let mut engine = lock(&shared);
        let session = Self::begin(language, (&shared, &Arc::default()), &mut engine, left, trail);
        engine.find_unconstrained(&session.opening);
        drop(engine);
        Arc::new(session)
    }

    /// Move this session to another L with the same R. L is read only from where the two differ. The answers equal
    /// those of a session opened afresh. `None` means that one should be opened: the engine has grown too much, or R
    /// constrains only one of the two.
    #[must_use]
    pub fn moved(&self, left: &str) -> Option<Arc<Self>> {
        let mut engine = self.lock();
        if engine.is_worn() {
            return None;
        }
        let bytes = common_prefix(self.left.as_bytes(), left.as_bytes());
        let shared = (&self.engine, &self.own_masks);
        // L is read without the floor, which is for the middle alone.
        engine.set_floor(None);
        let mut trail = self.trail.shared(bytes);
        trail.step(&mut engine.parser, left.as_bytes());
        let level = |(kind, _)| (kind, engine.floor_of(kind, &trail.end().collect::<Vec<Branch>>()));
        let floor = self.floor.map(level);
        engine.set_floor(self.floor);
        if floor != self.floor {
            return None;
        }
        let session = Self { floor, ..Self::ask(&self.language, shared, &mut engine, left, trail) };
        if floor.is_some() && session.broken.is_some() {
            return None;
        }
        engine.find_unconstrained(&session.opening).then(|| Arc::new(session))
    }

    /// A session with the same contexts and a floor. Its middles close none of the brackets that L has opened and R
    /// closes, or indent no line less than the cursor's block. It is this session if the floor is empty; `None` where
    /// no middle keeps the floor. `earlier` is one with the same floor, R and shape on another L.
    #[must_use]
    pub fn floored(self: &Arc<Self>, kind: Floor, earlier: Option<&Self>) -> Option<Arc<Self>> {
        let own = self.lock();
        let level = own.floor_of(kind, &self.trail.end().collect::<Vec<Branch>>());
        if level == 0 || self.broken.is_some() {
            return Some(self.clone());
        }
        let right = own.right.text().to_vec();
        drop(own);
        if let Some(moved) = earlier.filter(|earlier| earlier.floor == Some((kind, level))) {
            if let Some(moved) = moved.moved(&self.left) {
                return Some(moved);
            }
        }
        let mut engine = Engine::open(&self.language, &right);
        let mut trail = Trail::new(engine.parser.first_branches());
        trail.step(&mut engine.parser, self.left.as_bytes());
        engine.set_floor(Some((kind, level)));
        let shared = Arc::new(Mutex::new(engine));
        let mut engine = lock(&shared);
        let asked = Self::ask(&self.language, (&shared, &Arc::default()), &mut engine, &self.left, trail);
        engine.find_unconstrained(&asked.opening);
        drop(engine);
        asked.broken.is_none().then(|| Arc::new(Self { floor: Some((kind, level)), ..asked }))
    }

    /// The floor: constructs that middles must not close, and their number.
    #[must_use]
    pub fn floor(&self) -> Option<(Floor, u32)> {
        self.floor
    }

    /// Step L on from the end of a trail, and ask R.
    fn begin(
        language: &Arc<Language>,
        (shared, own_masks): (&Arc<Mutex<Engine>>, &Arc<Mutex<OwnMasks>>),
        engine: &mut Engine,
        left: &str,
        mut trail: Trail,
    ) -> Self {
        trail.step(&mut engine.parser, left.as_bytes());
        Self::ask(language, (shared, own_masks), engine, left, trail)
    }

    /// Ask R about the branches at the end of a trail.
    fn ask(
        language: &Arc<Language>,
        (shared, own_masks): (&Arc<Mutex<Engine>>, &Arc<Mutex<OwnMasks>>),
        engine: &mut Engine,
        left: &str,
        trail: Trail,
    ) -> Self {
        let text = left.as_bytes();
        let mut branches = Vec::new();
        let mut diagnostics = Vec::new();
        let mut broken = None;
        if let Some(failed_at) = trail.failed_at {
            let reached: Vec<Branch> = trail.end().collect();
            let limit = engine.parser.limit_reached(&reached).map_or_else(String::new, |limit| format!(" ({limit})"));
            let index = trail.failed_for_certain(&mut engine.parser, text, failed_at);
            let (line, column) = line_and_column(left, index);
            diagnostics.push(format!("the left context does not parse at line {line}, column {column}{limit}"));
            broken = Some(Broken::Left(index));
        } else if engine.right.end().is_none() {
            diagnostics
                .push("the right context does not parse: no text before it makes it the end of a program".into());
            // The place is computed on demand.
            broken = Some(Broken::Right(0));
        } else {
            // R itself is asked, even if an earlier session found that it does not constrain its own L.
            branches.extend(trail.end().filter(|branch| engine.viable_by_requirements(branch)));
            if branches.is_empty() {
                diagnostics.push("left and right context do not meet: no text between them makes a program".into());
                broken = Some(Broken::Between);
            }
        }
        Self {
            language: language.clone(),
            engine: shared.clone(),
            own_masks: own_masks.clone(),
            left: left.into(),
            trail,
            opening: branches,
            broken,
            diagnostics,
            floor: None,
        }
    }

    /// The strength of the answers.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        if self.broken.is_some() { Guarantee::None } else { Guarantee::Exact }
    }

    /// Return where the contexts fail, if they do.
    #[must_use]
    pub fn broken_at(&self) -> Option<Broken> {
        Some(match self.broken? {
            Broken::Right(_) => Broken::Right(right_reach(&self.lock(), &self.trail.end().collect::<Vec<Branch>>())),
            broken => broken,
        })
    }

    /// The kind of non-code text around the cursor, if all readings of L agree. `None` where L does not parse.
    #[must_use]
    pub fn inside(&self) -> Option<Inside> {
        if self.trail.failed_at.is_some() {
            return None;
        }
        // Readings of L that some middle can end count; if there are none, all readings of L.
        let all: Vec<Branch> = self.trail.end().collect();
        let branches = if self.opening.is_empty() { &all } else { &self.opening };
        self.lock().parser.without_floor(|parser| inside_all(parser, branches))
    }

    /// Return the reasons why the guarantee is not exact, one line each.
    #[must_use]
    pub fn diagnostics(&self) -> &[String] {
        &self.diagnostics
    }

    /// Constructs that are certainly open at the end of L, innermost first, each with the byte offset in L where it
    /// begins; empty where L does not parse. Sets carry no positions, so L is stepped once more.
    #[must_use]
    pub fn open_constructs(&self) -> Vec<(String, usize)> {
        if self.trail.failed_at.is_some() {
            return Vec::new();
        }
        let mut engine = self.lock();
        let text = self.left.as_bytes();
        let mut branches = engine.parser.first_branches();
        let mut stepped = Vec::new();
        let mut last_seen = LastSeen::default();
        engine.parser.without_floor(|parser| {
            for (index, &byte) in text.iter().enumerate() {
                poll();
                parser.step_all(&branches, byte, &mut stepped);
                last_seen.see(&branches, &stepped, index);
                std::mem::swap(&mut branches, &mut stepped);
            }
            let first = self.opening.first().copied();
            let branch = first.or_else(|| branches.into_iter().find(|branch| parser.can_go_on(branch)));
            branch.map_or_else(Vec::new, |branch| constructs::open_constructs(parser, &branch, &mut last_seen, text))
        })
    }

    /// The explicit quotient grammar in BNF (paper, Fig. 2).
    #[must_use]
    pub fn quotient_grammar(&self) -> String {
        let mut engine = self.lock();
        quotient::extract(&mut engine, &self.opening)
    }

    /// Return whether R puts no constraint on the next symbols, so that masks are shared with other sessions.
    #[must_use]
    pub fn is_unconstrained(&self) -> bool {
        self.lock().is_unconstrained()
    }

    /// Ask R at every step, even where it puts no constraint: the plain twin. Sessions that share the engine do so as
    /// well; their answers do not change.
    pub fn tighten(&self) {
        self.lock().tighten();
    }

    /// Numbers of left sets, lattice nodes, requirements and frames.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize, usize, usize) {
        self.lock().sizes()
    }

    /// The language.
    #[must_use]
    pub(crate) fn language(&self) -> &Arc<Language> {
        &self.language
    }

    /// The branches from which a middle goes on.
    pub(crate) fn opening(&self) -> &[Branch] {
        &self.opening
    }

    /// The engine; calls from other threads wait.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Engine> {
        lock(&self.engine)
    }

    /// Masks beside the engine, which is locked.
    pub(crate) fn own_masks(&self) -> MutexGuard<'_, OwnMasks> {
        lock(&self.own_masks)
    }
}

/// Line and column of the character with a byte of a text, both from 1; the column in characters.
fn line_and_column(text: &str, index: usize) -> (usize, usize) {
    let before = &text[..(0..=index).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (1 + before.matches('\n').count(), 1 + before[start..].chars().count())
}

/// A panic in another thread leaves only caches behind, so its poison is ignored.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{common_prefix, line_and_column};

    #[test]
    fn a_common_prefix_ends_at_the_first_byte_that_differs() {
        for (length, longer) in [0, 1, 63, 64, 65, 128, 200].into_iter().flat_map(|length| [(length, 0), (length, 70)])
        {
            let one = vec![b'a'; length];
            let other = vec![b'a'; length + longer];
            assert_eq!((common_prefix(&one, &other), common_prefix(&other, &one)), (length, length));
            for place in 0..length {
                let mut changed = other.clone();
                changed[place] = b'b';
                assert_eq!((common_prefix(&one, &changed), common_prefix(&changed, &one)), (place, place));
            }
        }
    }

    #[test]
    fn a_column_counts_the_characters_of_its_line() {
        let text = "ab\né€x";
        let places =
            [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (4, (2, 1)), (5, (2, 2)), (7, (2, 2)), (8, (2, 3)), (9, (2, 4))];
        for (index, place) in places {
            assert_eq!(line_and_column(text, index), place);
        }
    }
}
