//! Sessions and states: what one pair of contexts allows.

use crate::completing::lines;
use crate::completing::plan::{self, Outcome, Plan};
use crate::completing::short;
use crate::completing::shortest;
use crate::engine::stepping::{Branch, Engine, Inside};
use crate::error::{Error, ErrorKind};
use crate::explaining::constructs::{self, Places};
use crate::explaining::quotient;
use crate::ids::TokenId;
use crate::language::compiled::Language;
use crate::language::shape::ShapeId;
use crate::language::spelling::Spelling;
use crate::limits;
use crate::masking::cache::{Masks, Tables};
use crate::masking::plain::{self, Recognizer};
use crate::masking::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;
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
    /// Shared with the sessions that this one was moved from or to, which have the same R. Nothing is forgotten that one of
    /// them refers to: what is (see [`Engine::truncate`]) was made under the same lock.
    engine: Arc<Mutex<Engine>>,
    left: Box<str>,
    trail: Trail,
    opening: Vec<Branch>,
    broken: Option<Broken>,
    diagnostics: Vec<String>,
}

/// Where a pair of contexts fails that no middle makes a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// At a byte of L: no program begins with L up to and with it.
    Left(usize),
    /// At a byte of R: no parse of R gets past the symbol that begins there.
    Right(usize),
    /// Each is possible by itself.
    Between,
}

/// How far L could be stepped, and places on the way to go on from if it changes.
#[derive(Debug, Clone)]
struct Trail {
    /// Branches after so many bytes of L, whatever R says of them; ascending, the empty text's first and the last text's last.
    stops: Vec<(usize, Branch)>,
    /// The first byte after which there are none, or the end of the text if none can go on from there.
    failed_at: Option<usize>,
}

impl Trail {
    fn new(first: Branch) -> Self {
        Self { stops: vec![(0, first)], failed_at: None }
    }

    /// The part that a text has in common that begins with the same bytes.
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

    /// Steps on to the end of a text, or to where it cannot be stepped.
    fn step(&mut self, engine: &mut Engine, text: &[u8]) {
        let (mut stopped, last) = self.before(self.stops.len());
        let mut branches: Vec<Branch> = last.iter().map(|stop| stop.1).collect();
        let mut stepped = Vec::new();
        for (index, &byte) in text.iter().enumerate().skip(stopped) {
            engine.step_all(&branches, byte, &mut stepped);
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
        if !branches.iter().any(|branch| engine.can_go_on(branch)) {
            self.failed_at = Some(text.len());
        }
        if text.len() > stopped {
            self.stops.extend(branches.into_iter().map(|branch| (text.len(), branch)));
        }
    }

    /// The branches at the end of the text, or of what could be stepped of it.
    fn end(&self) -> impl Iterator<Item = Branch> + '_ {
        self.before(self.stops.len()).1.iter().map(|stop| stop.1)
    }

    /// The first byte of the text that made it impossible. A symbol is parsed when it has ended; where its first bytes left no
    /// symbol that may come, it failed there already.
    fn failed_for_certain(&self, engine: &mut Engine, text: &[u8], failed_at: usize) -> usize {
        let goes_on = |engine: &Engine, branch: &Branch| engine.can_go_on(branch);
        let mut stops = self.stops.len();
        let (at, mut branches) = loop {
            let (at, found) = self.before(stops);
            if at == 0 || found.iter().any(|stop| goes_on(engine, &stop.1)) {
                break (at, found.iter().map(|stop| stop.1).collect::<Vec<Branch>>());
            }
            stops -= found.len();
        };
        let mut stepped = Vec::new();
        for (index, &byte) in text.iter().enumerate().take(failed_at).skip(at) {
            engine.step_all(&branches, byte, &mut stepped);
            if !stepped.iter().any(|branch| goes_on(engine, branch)) {
                return index;
            }
            std::mem::swap(&mut branches, &mut stepped);
        }
        failed_at
    }
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
        let engine = Engine::open(language, right.as_bytes());
        let trail = Trail::new(engine.first_branch());
        let shared = Arc::new(Mutex::new(engine));
        let mut engine = lock(&shared);
        let session = Self::begin(language, &shared, &mut engine, left, trail);
        engine.loosen(&session.opening);
        drop(engine);
        Arc::new(session)
    }

    /// The same R after another L, which is only read from where the two differ. It answers as a session that was opened
    /// afresh. `None` where one should be: the engine has grown too much, or R has a say in what follows one of the two alone.
    #[must_use]
    pub fn moved(&self, left: &str) -> Option<Arc<Self>> {
        let mut engine = self.lock();
        if engine.is_worn() {
            return None;
        }
        let bytes = self.left.as_bytes().iter().zip(left.as_bytes()).take_while(|(one, other)| one == other).count();
        let session = Self::begin(&self.language, &self.engine, &mut engine, left, self.trail.shared(bytes));
        engine.loosen(&session.opening).then(|| Arc::new(session))
    }

    /// Steps L on from the end of a trail, and asks R.
    fn begin(
        language: &Arc<Language>,
        shared: &Arc<Mutex<Engine>>,
        engine: &mut Engine,
        left: &str,
        mut trail: Trail,
    ) -> Self {
        // Another session may have left the engine somewhere else in the shape.
        engine.set_shape(ShapeId(0));
        let text = left.as_bytes();
        trail.step(engine, text);
        let mut branches = Vec::new();
        let mut diagnostics = Vec::new();
        let mut broken = None;
        if let Some(failed_at) = trail.failed_at {
            let reached: Vec<Branch> = trail.end().collect();
            let limit = engine.limit_reached(&reached).map_or_else(String::new, |limit| format!(" ({limit})"));
            let index = trail.failed_for_certain(engine, text, failed_at);
            let line = 1 + text[..index].iter().filter(|&&byte| byte == b'\n').count();
            diagnostics.push(format!(
                "the left context does not parse: line {line} cannot be continued at byte {index}{limit}"
            ));
            broken = Some(Broken::Left(index));
        } else if engine.right.end().is_none() {
            diagnostics
                .push("the right context does not parse: no text before it makes it the end of a program".into());
            // Where is only found out when it is asked for.
            broken = Some(Broken::Right(0));
        } else {
            // R is asked itself, also where an earlier session found that it has no say in what follows its own L.
            branches.extend(trail.end().filter(|branch| engine.viable_by_colours(branch)));
            if branches.is_empty() {
                diagnostics.push("left and right context do not meet: no text between them makes a program".into());
                broken = Some(Broken::Between);
            }
        }
        Self {
            language: language.clone(),
            engine: shared.clone(),
            left: left.into(),
            trail,
            opening: branches,
            broken,
            diagnostics,
        }
    }

    /// How much the answers promise.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        if self.broken.is_some() { Guarantee::None } else { Guarantee::Exact }
    }

    /// Where the contexts fail, if they do.
    #[must_use]
    pub fn broken_at(&self) -> Option<Broken> {
        Some(match self.broken? {
            Broken::Right(_) => Broken::Right(self.lock().right_reach(&self.trail.end().collect::<Vec<Branch>>())),
            broken => broken,
        })
    }

    /// What the cursor is inside of that is not code, if it is the same in every way to read L. `None` where L does not parse.
    #[must_use]
    pub fn inside(&self) -> Option<Inside> {
        if self.trail.failed_at.is_some() {
            return None;
        }
        // Of the ways to read L, those count that some middle can end; where none can, those that L itself leaves possible.
        let all: Vec<Branch> = self.trail.end().collect();
        let branches = if self.opening.is_empty() { &all } else { &self.opening };
        inside_all(&mut self.lock(), branches)
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
        let viable = self.guarantee() == Guarantee::Exact;
        let accepted = state.advance(middle.as_bytes());
        if !viable || accepted < middle.len() {
            return Verdict { viable: false, complete: false, rejected_at: Some(accepted) };
        }
        Verdict { viable, complete: state.is_complete(), rejected_at: None }
    }

    /// What is certainly open at the end of L, innermost first, each with the byte offset in L where it begins. Nothing where L
    /// does not parse. Sets carry no positions, so L is stepped once more.
    #[must_use]
    pub fn open_constructs(&self) -> Vec<(String, usize)> {
        if self.trail.failed_at.is_some() {
            return Vec::new();
        }
        let mut engine = self.lock();
        let text = self.left.as_bytes();
        let mut branches = vec![engine.first_branch()];
        let mut stepped = Vec::new();
        let mut places = Places::default();
        for (index, &byte) in text.iter().enumerate() {
            engine.step_all(&branches, byte, &mut stepped);
            places.see(&branches, &stepped, index);
            std::mem::swap(&mut branches, &mut stepped);
        }
        let first = self.opening.first().copied();
        let branch = first.or_else(|| branches.into_iter().find(|branch| engine.can_go_on(branch)));
        branch.map_or_else(Vec::new, |branch| constructs::open_constructs(&mut engine, &branch, &mut places, text))
    }

    /// The explicit quotient grammar in BNF (paper, Fig. 2).
    #[must_use]
    pub fn quotient_grammar(&self) -> String {
        let mut engine = self.lock();
        engine.set_shape(ShapeId(0));
        quotient::extract(&mut engine, &self.opening)
    }

    /// Whether R has no say in what may come next, so that masks are shared with other sessions.
    #[must_use]
    pub fn is_loose(&self) -> bool {
        self.lock().is_loose()
    }

    /// Takes R into account at every step from now on, even where it has no say: the plain twin. Sessions that share the
    /// engine do so as well; their answers stay what they are.
    pub fn tighten(&self) {
        self.lock().tighten();
    }

    /// Sizes of what is kept: left sets, lattice nodes, colours, frames.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize, usize, usize) {
        self.lock().sizes()
    }

    fn lock(&self) -> MutexGuard<'_, Engine> {
        lock(&self.engine)
    }
}

/// A panic in another thread leaves only caches behind, so its poison is ignored.
fn lock(engine: &Mutex<Engine>) -> MutexGuard<'_, Engine> {
    engine.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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

    /// What the end of the middle is inside of that is not code, if it is the same in every way to read it.
    #[must_use]
    pub fn inside(&self) -> Option<Inside> {
        inside_all(&mut self.engine(), self.branches())
    }

    /// A shortest text that makes the whole a program; `None` if there is none at all.
    ///
    /// # Errors
    /// The search passed its limit.
    pub fn shortest_completion(&self) -> Result<Option<Vec<u8>>, Error> {
        let mut engine = self.engine();
        let mark = engine.mark();
        let found = shortest::shortest_completion(&mut engine, self.branches(), limits::COMPLETION_EXPANSIONS);
        engine.truncate(mark);
        found
    }

    /// How the middle can end in a few tokens. `hints` and then `tries` are tried first: a text that completes it in at most
    /// `enough` tokens will do, though a shorter one may be. `most`: states that are looked at for one.
    #[must_use]
    pub fn landing(
        &self,
        vocabulary: &Vocabulary,
        hints: &[&Plan],
        tries: &[Vec<u8>],
        enough: usize,
        most: usize,
    ) -> Outcome {
        let mut engine = self.engine();
        land(&mut engine, vocabulary, self.branches(), hints, tries, enough, most)
    }

    /// Takes out of a packed mask the tokens after which the middle is not known to end within `left` tokens more; returns how
    /// many. The mask is one of this state, and `plan` one of this state's.
    ///
    /// # Panics
    /// If `words` is not [`plain::mask_words`] long.
    pub fn restrict_to_landing(
        &self,
        vocabulary: &Vocabulary,
        plan: Option<&Plan>,
        left: usize,
        words: &mut [u32],
    ) -> usize {
        assert_eq!(words.len(), plain::mask_words(vocabulary.len()), "one word for 32 tokens");
        let mut engine = self.engine();
        let mark = engine.mark();
        let mut walk = TrieWalk::new(&mut engine, self.branches(), self.at(), vocabulary.longest());
        let mut known: FxHashMap<Box<[Branch]>, bool> = FxHashMap::default();
        let mut hints: Vec<Plan> = plan.into_iter().cloned().collect();
        let mut refused = 0;
        let nodes = vocabulary.nodes();
        let mut index = 0;
        while index < nodes.len() {
            let node = &nodes[index];
            walk.pop_to(node.depth as usize - 1);
            if !walk.try_push(node.byte) {
                index = node.skip as usize;
                continue;
            }
            index += 1;
            for &token in vocabulary.ending(node) {
                let (word, bit) = (token.index() / 32, 1 << (token.0 % 32));
                if words[word] & bit == 0 {
                    continue;
                }
                let follows = || plan?.after(vocabulary, token);
                let lands = follows().is_some_and(|rest| rest.len() <= left)
                    || *known.entry(walk.last().into()).or_insert_with(|| walk.lands(vocabulary, &mut hints, left));
                if !lands {
                    words[word] &= !bit;
                    refused += 1;
                }
            }
        }
        drop(walk);
        engine.truncate(mark);
        refused
    }

    /// The masks of this session's language over a vocabulary; its table is loaded, or built, when it is first asked for.
    #[must_use]
    pub fn masks(&self, tables: &Tables) -> Arc<Masks> {
        tables.masks(&self.session.language)
    }

    /// Fills a packed mask over a vocabulary: what may follow, the end tokens iff the whole is a program.
    ///
    /// # Panics
    /// If `words` is not [`plain::mask_words`] long.
    pub fn fill_mask(&self, vocabulary: &Vocabulary, masks: &Masks, words: &mut [u32]) {
        assert_eq!(words.len(), plain::mask_words(vocabulary.len()), "one word for 32 tokens");
        let mut engine = self.engine();
        masks.fill(&mut engine, vocabulary, self.branches(), self.at(), words);
        if self.branches().iter().any(|branch| engine.complete(branch)) {
            plain::add_end_tokens(vocabulary, words);
        }
    }

    /// The same by a walk over the vocabulary's trie, with nothing kept: the plain twin.
    pub fn fill_mask_plain(&self, vocabulary: &Vocabulary, words: &mut [u32]) {
        let mut engine = self.engine();
        let mark = engine.mark();
        plain::fill_mask(
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
        let open_right = engine.right.unmatched_closers();
        Explanation { accepted, viable: accepted == text.len() && self.is_viable(), expected, open_left, open_right }
    }

    pub(crate) fn spelling(&self) -> &Spelling {
        &self.session.language.spelling
    }

    pub(crate) fn branches(&self) -> &[Branch] {
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

/// How a middle can end: by the first hint or else the first text tried that does it in at most `enough` tokens, or else by a plan
/// that is searched for.
fn land(
    engine: &mut Engine,
    vocabulary: &Vocabulary,
    branches: &[Branch],
    hints: &[&Plan],
    tries: &[Vec<u8>],
    enough: usize,
    most: usize,
) -> Outcome {
    if engine.language.free.shape().is_some() {
        return Outcome::Unknown; // shaped states have no distances
    }
    if branches.is_empty() {
        return Outcome::Never;
    }
    let mark = engine.mark();
    let hint = hints.iter().find(|hint| hint.len() <= enough && plan::completes(engine, branches, &hint.bytes));
    let mut found = hint.map(|&hint| hint.clone());
    let mut too_long = None;
    if found.is_none() {
        let tried = tries.iter().filter(|text| plan::completes(engine, branches, text));
        let mut plans = tried.filter_map(|text| Plan::spell(vocabulary, text.clone()));
        too_long = plans.next();
        found = too_long.take_if(|plan| plan.len() <= enough).or_else(|| plans.find(|plan| plan.len() <= enough));
    }
    if found.is_none() {
        let most = if too_long.is_some() { most.min(limits::SHORTER_EXPANSIONS) } else { most };
        let text = short::short_completion(engine, branches, most);
        found = text.ok().flatten().and_then(|text| Plan::spell(vocabulary, text)).or(too_long);
    }
    if found.is_none() && (most >= limits::LATER_EXPANSIONS || enough >= limits::SCAFFOLD_TOKENS) {
        found = lines::complete_by_lines(engine, branches, most).and_then(|text| Plan::spell(vocabulary, text));
    }
    if found.is_none() {
        let spelling = engine.language.spelling.clone();
        let comment = spelling.line_comments.iter().find(|comment| plan::completes(engine, branches, comment));
        found = comment.and_then(|comment| Plan::spell(vocabulary, comment.to_vec()));
    }
    engine.truncate(mark);
    // Something completes every state that is viable: in more steps, perhaps, or in words that have other tokens.
    found.map_or(Outcome::Unknown, Outcome::Plan)
}

/// What all branches that can go on are inside of.
fn inside_all(engine: &mut Engine, branches: &[Branch]) -> Option<Inside> {
    let possible: Vec<&Branch> = branches.iter().filter(|branch| engine.can_go_on(branch)).collect();
    let mut found = possible.into_iter().map(|branch| engine.inside(branch));
    let first = found.next()??;
    found.all(|other| other == Some(first)).then_some(first)
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

    /// Whether the text so far is known to end within `left` tokens. Plans that show it come first among the hints for the next.
    fn lands(&mut self, vocabulary: &Vocabulary, hints: &mut Vec<Plan>, left: usize) -> bool {
        let branches = self.last().to_vec();
        self.engine.set_shape(self.shapes[self.shapes.len() - 1]);
        let tried: Vec<&Plan> = hints.iter().collect();
        match land(self.engine, vocabulary, &branches, &tried, &[], left, limits::landing_expansions(left)) {
            Outcome::Plan(plan) if plan.len() <= left => {
                hints.retain(|hint| *hint != plan);
                hints.insert(0, plan);
                hints.truncate(limits::LANDING_HINTS);
                true
            }
            _ => false,
        }
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
