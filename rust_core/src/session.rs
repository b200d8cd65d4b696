//! Sessions and states: what one pair of contexts allows.

use crate::completion;
use crate::engine::{Branch, Engine};
use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::language::Language;
use crate::limits;
use crate::mask::{self, Recognizer};
use crate::masks::{Masks, Tables};
use crate::quotient;
use crate::shape::ShapeId;
use crate::vocabulary::Vocabulary;
use std::sync::{Arc, Mutex, MutexGuard};

/// How much a session's answers promise.
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
    engine: Mutex<Engine>,
    opening: Vec<Branch>,
    guarantee: Guarantee,
    diagnostics: Vec<String>,
}

/// What a middle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Some text can follow that makes the whole a program.
    pub viable: bool,
    /// The whole is a program.
    pub complete: bool,
    /// Byte offset of the first byte that cannot be.
    pub rejected_at: Option<usize>,
}

/// Why a text goes no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Bytes of the text that are allowed.
    pub accepted: usize,
    /// Whether all of the text is allowed.
    pub viable: bool,
    /// Lexemes that may come after the last whole symbol.
    pub expected: Vec<String>,
    /// Open constructs of L and the middle, innermost first.
    pub open_left: Vec<String>,
    /// Symbols that R begins with after the cursor and that the middle has to lead to, as R's text.
    pub open_right: Vec<String>,
}

impl Session {
    /// Opens a pair of contexts. Never fails: where they do not parse, the guarantee says so.
    #[must_use]
    pub fn open(language: &Arc<Language>, left: &str, right: &str) -> Arc<Self> {
        let mut engine = Engine::open(language, right.as_bytes());
        let mut branches = vec![engine.first_branch()];
        let mut stepped = Vec::new();
        let mut failed_at = None;
        for (index, &byte) in left.as_bytes().iter().enumerate() {
            engine.step_all(&branches, byte, &mut stepped);
            if stepped.is_empty() {
                failed_at = Some(index);
                break;
            }
            std::mem::swap(&mut branches, &mut stepped);
        }
        let mut diagnostics = Vec::new();
        if let Some(index) = failed_at {
            let limit = engine.limit_reached(&branches).map_or_else(String::new, |limit| format!(" ({limit})"));
            branches.clear();
            let line = 1 + left.as_bytes()[..index].iter().filter(|&&byte| byte == b'\n').count();
            diagnostics.push(format!(
                "the left context does not parse: line {line} cannot be continued at byte {index}{limit}"
            ));
        } else if engine.right.end().is_none() {
            diagnostics
                .push("the right context does not parse: no text before it makes it the end of a program".into());
        } else {
            branches.retain(|branch| engine.viable(branch));
            if branches.is_empty() {
                diagnostics.push("left and right context do not meet: no text between them makes a program".into());
            }
        }
        if !diagnostics.is_empty() {
            branches.clear();
        }
        engine.loosen(&branches);
        let guarantee = if branches.is_empty() { Guarantee::None } else { Guarantee::Exact };
        Arc::new(Self {
            language: language.clone(),
            engine: Mutex::new(engine),
            opening: branches,
            guarantee,
            diagnostics,
        })
    }

    /// How much the answers promise.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        self.guarantee
    }

    /// Why the guarantee is not exact, one line each.
    #[must_use]
    pub fn diagnostics(&self) -> &[String] {
        &self.diagnostics
    }

    /// A state before the middle's first byte.
    #[must_use]
    pub fn start(self: &Arc<Self>) -> State {
        State { session: self.clone(), history: vec![(self.opening.clone().into(), ShapeId(0))] }
    }

    /// What a middle is.
    #[must_use]
    pub fn check(self: &Arc<Self>, middle: &str) -> Verdict {
        let mut state = self.start();
        let viable = self.guarantee == Guarantee::Exact;
        let accepted = state.advance(middle.as_bytes());
        if !viable || accepted < middle.len() {
            return Verdict { viable: false, complete: false, rejected_at: Some(accepted) };
        }
        Verdict { viable, complete: state.is_complete(), rejected_at: None }
    }

    /// The explicit quotient grammar in BNF (paper, Fig. 2).
    #[must_use]
    pub fn quotient_grammar(&self) -> String {
        quotient::extract(&mut self.lock(), &self.opening)
    }

    /// Whether R has no say in what may come next, so that masks are shared with other sessions.
    #[must_use]
    pub fn is_loose(&self) -> bool {
        self.lock().is_loose()
    }

    /// Takes R into account at every step from now on, even where it has no say: the plain twin.
    pub fn tighten(&self) {
        self.lock().tighten();
    }

    /// Sizes of what is kept: left sets, lattice nodes, colours, frames.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize, usize, usize) {
        self.lock().sizes()
    }

    /// A panic in another thread leaves only caches behind, so its poison is ignored.
    fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A middle in progress. Cheap to fork; every byte can be taken back.
#[derive(Debug, Clone)]
pub struct State {
    session: Arc<Session>,
    /// The branches after each byte, and where in the shape the middle is (if it has one); the empty middle's first.
    history: Vec<(Arc<[Branch]>, ShapeId)>,
}

impl State {
    /// Appends bytes up to the first impossible one; returns how many were appended.
    pub fn advance(&mut self, bytes: &[u8]) -> usize {
        let session = self.session.clone();
        let mut engine = session.lock();
        let mut stepped = Vec::new();
        for (index, &byte) in bytes.iter().enumerate() {
            let (branches, at) = self.history.last().expect("never empty");
            let Some(at) = engine.enter_shape(*at, byte) else { return index };
            engine.advance(branches, byte, &mut stepped);
            if stepped.is_empty() {
                return index;
            }
            self.history.push((stepped.as_slice().into(), at));
        }
        bytes.len()
    }

    /// Bytes of middle so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.history.len() - 1
    }

    /// Whether no byte has been appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes back bytes.
    ///
    /// # Errors
    /// More bytes than there are.
    pub fn rollback(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > self.len() {
            return Err(Error::new(
                ErrorKind::State,
                format!("cannot take back {bytes} bytes: the middle has {}", self.len()),
            ));
        }
        self.history.truncate(self.history.len() - bytes);
        Ok(())
    }

    /// Whether the whole is a program.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let mut engine = self.engine();
        self.branches().iter().any(|branch| engine.complete(branch))
    }

    /// Whether some text can follow that makes the whole a program (false only where the guarantee is `None`).
    #[must_use]
    pub fn is_viable(&self) -> bool {
        !self.branches().is_empty()
    }

    /// A shortest text that makes the whole a program; `None` if there is none at all.
    ///
    /// # Errors
    /// The search passed its limit.
    pub fn shortest_completion(&self) -> Result<Option<Vec<u8>>, Error> {
        let mut engine = self.engine();
        let mark = engine.mark();
        let found = completion::shortest_completion(&mut engine, self.branches());
        engine.truncate(mark);
        found
    }

    /// The masks of this session's language over a vocabulary; its table is loaded, or built, when it is first asked for.
    #[must_use]
    pub fn masks(&self, tables: &Tables) -> Arc<Masks> {
        tables.masks(&self.session.language)
    }

    /// Fills a packed mask over a vocabulary: what may follow, the end tokens iff the whole is a program.
    ///
    /// # Panics
    /// If `words` is not [`mask::mask_words`] long.
    pub fn fill_mask(&self, vocabulary: &Vocabulary, masks: &Masks, words: &mut [u32]) {
        assert_eq!(words.len(), mask::mask_words(vocabulary.len()), "one word for 32 tokens");
        let mut engine = self.engine();
        masks.fill(&mut engine, vocabulary, self.branches(), self.at(), words);
        if self.branches().iter().any(|branch| engine.complete(branch)) {
            mask::add_end_tokens(vocabulary, words);
        }
    }

    /// The same by a walk over the vocabulary's trie, with nothing kept: the plain twin.
    pub fn fill_mask_plain(&self, vocabulary: &Vocabulary, words: &mut [u32]) {
        let mut engine = self.engine();
        let mark = engine.mark();
        mask::fill_mask(
            &mut TrieWalk::new(&mut engine, self.branches(), self.at(), vocabulary.longest()),
            vocabulary,
            words,
        );
        engine.truncate(mark);
    }

    /// Whether one token may follow.
    #[must_use]
    pub fn allows(&self, vocabulary: &Vocabulary, token: TokenId) -> bool {
        if vocabulary.is_end(token) {
            return self.is_complete();
        }
        let bytes = vocabulary.bytes_of(token);
        if bytes.is_empty() {
            return false;
        }
        let mut engine = self.engine();
        let mut walk = TrieWalk::new(&mut engine, self.branches(), self.at(), bytes.len());
        bytes.iter().all(|&byte| walk.try_push(byte))
    }

    /// The bytes that every continuation begins with; none where the middle may end. A text longer than the limit is cut.
    #[must_use]
    pub fn forced(&self) -> Vec<u8> {
        let mut engine = self.engine();
        let lexer_bytes = byte_classes(&engine.language);
        let mut branches = self.branches().to_vec();
        let mut at = self.at();
        let mut forced = Vec::new();
        let mut stepped = Vec::new();
        while forced.len() < limits::FORCED_BYTES && !branches.iter().any(|branch| engine.complete(branch)) {
            let mut only: Option<(u8, Vec<Branch>, ShapeId)> = None;
            for &(byte, count) in &lexer_bytes {
                let Some(next) = engine.enter_shape(at, byte) else { continue };
                engine.advance(&branches, byte, &mut stepped);
                if stepped.is_empty() {
                    continue;
                }
                if only.is_some() || count > 1 {
                    return forced;
                }
                only = Some((byte, stepped.clone(), next));
            }
            let Some((byte, next, inside)) = only else { return forced };
            forced.push(byte);
            branches = next;
            at = inside;
            engine.set_shape(at);
        }
        forced
    }

    /// How far a text goes from here, and what stands against the rest.
    #[must_use]
    pub fn explain(&self, text: &[u8]) -> Explanation {
        let mut probe = self.clone();
        let accepted = probe.advance(text);
        let mut engine = self.engine();
        let mut expected = Vec::new();
        let mut open_left = Vec::new();
        for branch in probe.branches() {
            expected.extend(engine.expected(branch));
            if open_left.is_empty() {
                open_left = engine.open_constructs(branch).into_iter().map(|(name, _)| name).collect();
            }
        }
        expected.sort_unstable();
        expected.dedup();
        let open_right = engine.right.unmatched_closers(&engine.language);
        Explanation { accepted, viable: accepted == text.len() && self.is_viable(), expected, open_left, open_right }
    }

    fn branches(&self) -> &[Branch] {
        &self.history.last().expect("never empty").0
    }

    /// The engine, told where in the shape the middle is.
    fn engine(&self) -> MutexGuard<'_, Engine> {
        let mut engine = self.session.lock();
        engine.set_shape(self.at());
        engine
    }

    fn at(&self) -> ShapeId {
        self.history.last().expect("never empty").1
    }
}

/// One byte of each class that no state of the lexer tells apart, with the number of bytes in it.
fn byte_classes(language: &Language) -> Vec<(u8, usize)> {
    let lexer = &language.lexer;
    if language.shaped.is_some() {
        return (0..=255u8).map(|byte| (byte, 1)).collect();
    }
    let count = |byte: u8| (0..=255u8).filter(|&other| lexer.class_of(other) == lexer.class_of(byte)).count();
    lexer.representatives().into_iter().map(|byte| (byte, count(byte))).collect()
}

/// A stack of branch lists over one engine, in one flat list.
pub(crate) struct TrieWalk<'a> {
    engine: &'a mut Engine,
    branches: Vec<Branch>,
    /// Where each list begins; the last one ends with the list.
    begins: Vec<usize>,
    /// Where in the shape the middle is after each byte; the place before the first one comes first.
    shapes: Vec<ShapeId>,
    stepped: Vec<Branch>,
}

impl<'a> TrieWalk<'a> {
    pub(crate) fn new(engine: &'a mut Engine, branches: &[Branch], at: ShapeId, longest: usize) -> Self {
        let mut begins = Vec::with_capacity(longest + 1);
        begins.push(0);
        Self { engine, branches: branches.to_vec(), begins, shapes: vec![at], stepped: Vec::new() }
    }

    fn last(&self) -> &[Branch] {
        &self.branches[*self.begins.last().expect("never empty")..]
    }
}

impl Recognizer for TrieWalk<'_> {
    fn try_push(&mut self, byte: u8) -> bool {
        let begin = *self.begins.last().expect("never empty");
        let end = self.branches.len();
        let Some(at) = self.engine.enter_shape(self.shapes[self.shapes.len() - 1], byte) else { return false };
        if let [only] = self.branches[begin..]
            && let Some(continued) = self.engine.continued(&only, byte)
        {
            if !self.engine.viable(&continued) {
                return false;
            }
            self.branches.push(continued);
        } else {
            self.engine.advance(&self.branches[begin..], byte, &mut self.stepped);
            if self.stepped.is_empty() {
                return false;
            }
            self.branches.extend_from_slice(&self.stepped);
        }
        self.begins.push(end);
        self.shapes.push(at);
        true
    }

    fn pop_to(&mut self, length: usize) {
        if let Some(&end) = self.begins.get(length + 1) {
            self.branches.truncate(end);
            self.begins.truncate(length + 1);
            self.shapes.truncate(length + 1);
        }
    }

    fn is_complete(&mut self) -> bool {
        let branches = self.last().to_vec();
        self.engine.set_shape(self.shapes[self.shapes.len() - 1]);
        branches.iter().any(|branch| self.engine.complete(branch))
    }
}
