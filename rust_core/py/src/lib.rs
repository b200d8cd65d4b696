//! The Python module `fim_server._core`: conversions, GIL release and exceptions, no logic.

mod project_memory;

use fim_server_core::Floor;
use fim_server_core::Inside;
use fim_server_core::Language as CoreLanguage;
use fim_server_core::Outcome;
use fim_server_core::Shape;
use fim_server_core::Tables;
use fim_server_core::Vocabulary as CoreVocabulary;
use fim_server_core::is_possible as core_is_possible;
use fim_server_core::mask_words;
use fim_server_core::{Broken, Guarantee, Session as CoreSession, State as CoreState};
use fim_server_core::{Error, ErrorKind};
use fim_server_core::{LanguageSpec, check_definition as core_check_definition};
use fim_server_core::{Matcher as CoreMatcher, fill_masks as core_fill_masks};
use fim_server_core::{ModeId, TokenId};
use fim_server_core::{Stop as CoreStop, count, counted, watched};
use mimalloc::MiMalloc;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Allocator of the process. Sessions come and go with tens of thousands of small allocations, which the system's
/// allocator merges at the worst time. Each thread's allocations are counted, so that a session can be stopped at some
/// number of bytes, and can report how many it holds.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

// SAFETY: every call is forwarded to mimalloc, which keeps the contract; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as above; the pointer came from mimalloc.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size) - signed(layout.size()));
        // SAFETY: as above; the pointer came from mimalloc.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

unsafe extern "C" {
    /// A function of the allocator's library, which the crate `mimalloc` links and does not declare.
    safe fn mi_collect(force: bool);
}

// The package's own exceptions: Python defines them, since the classes that only Python raises have the same base.
pyo3::import_exception!(fim_server.errors, LanguageError);
pyo3::import_exception!(fim_server.errors, LimitError);
pyo3::import_exception!(fim_server.errors, SearchLimitError);
pyo3::import_exception!(fim_server.errors, StoppedError);

fn raise(error: &Error) -> PyErr {
    let message = error.to_string();
    let given = error.passed().map(|passed| passed.given);
    let limit = error.passed().map(|passed| passed.limit);
    match error.kind() {
        ErrorKind::Language => LanguageError::new_err(message),
        ErrorKind::Limit => LimitError::new_err((message, given, limit)),
        ErrorKind::Search => SearchLimitError::new_err((message, given, limit)),
        ErrorKind::System => PyRuntimeError::new_err(message),
        ErrorKind::Vocabulary | ErrorKind::State | ErrorKind::Shape => PyValueError::new_err(message),
    }
}

fn name_of(inside: Inside) -> &'static str {
    match inside {
        Inside::Comment => "comment",
        Inside::String => "string",
    }
}

thread_local! {
    /// Stops that watch the calls of this thread, innermost last.
    static STOPS: RefCell<Vec<Arc<CoreStop>>> = const { RefCell::new(Vec::new()) };
}

/// Run the engine without the interpreter's lock, until it is done or a stop that watches this thread is set.
fn engine<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let stops = STOPS.with_borrow(Clone::clone);
    if stops.is_empty() {
        return Ok(py.detach(work));
    }
    let stopped = || StoppedError::new_err("the engine was told to stop");
    if stops.iter().any(|stop| stop.is_set()) {
        return Err(stopped());
    }
    py.detach(|| watched(&stops, work)).map_err(|_| stopped())
}

/// Stop for the engine. `with stop:` watches the engine's calls of this thread in the block; `set` stops them from any
/// thread.
#[pyclass(frozen, module = "fim_server._core")]
struct Stop {
    core: Arc<CoreStop>,
}

#[pymethods]
impl Stop {
    /// Make a stop: `within` are the seconds after which it stops by itself, `holding` the bytes that one call may come
    /// to hold.
    #[new]
    #[pyo3(signature = (within = None, holding = None))]
    fn new(within: Option<f64>, holding: Option<usize>) -> PyResult<Self> {
        let within = match within {
            None => None,
            Some(seconds) => {
                let span = Duration::try_from_secs_f64(seconds);
                Some(span.map_err(|error| PyValueError::new_err(format!("within = {seconds}: {error}")))?)
            }
        };
        let deadline = within.and_then(|within| Instant::now().checked_add(within));
        Ok(Self { core: Arc::new(CoreStop::new(deadline).holding(holding)) })
    }

    fn set(&self) {
        self.core.set();
    }

    fn is_set(&self) -> bool {
        self.core.is_set()
    }

    /// Number of times that the engine has polled it.
    fn looks(&self) -> u64 {
        self.core.looks()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        STOPS.with_borrow_mut(|stops| stops.push(slf.core.clone()));
        slf
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _raised: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        STOPS.with_borrow_mut(|stops| {
            if let Some(at) = stops.iter().rposition(|stop| Arc::ptr_eq(stop, &self.core)) {
                stops.remove(at);
            }
        });
    }
}

/// The size of an allocation, which is never larger than `isize::MAX`.
const fn signed(size: usize) -> isize {
    size as isize
}

/// Lock a mutex. A panic inside leaves the value as it was before the call or extended by whole bytes: never torn.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A compiled language.
#[pyclass(frozen, module = "fim_server._core")]
struct Language {
    core: Arc<CoreLanguage>,
}

#[pymethods]
impl Language {
    /// Compile a definition (JSON, see `LanguageSpec`). `table` is the result of `table()` for the same definition.
    #[new]
    #[pyo3(signature = (definition, table=None))]
    fn new(py: Python<'_>, definition: &str, table: Option<&[u8]>) -> PyResult<Self> {
        py.detach(|| {
            let spec = LanguageSpec::from_json(definition).map_err(|error| raise(&error))?;
            let table = match table {
                Some(bytes) => Some(
                    serde_json::from_slice(bytes)
                        .map_err(|error| LanguageError::new_err(format!("lexer table: {error}")))?,
                ),
                None => None,
            };
            let core = CoreLanguage::compile(&spec, table).map_err(|error| raise(&error))?;
            Ok(Self { core: Arc::new(core) })
        })
    }

    /// The lexer's table, for the cache on disk.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py
            .detach(|| serde_json::to_vec(self.core.lexer.table()))
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Sizes: DFA states, nonterminals and lexemes, rules.
    fn sizes(&self) -> (usize, usize, usize) {
        let grammar = &self.core.grammar;
        (self.core.lexer.state_count(), grammar.symbol_count(), grammar.rules().len())
    }

    /// The language for middles that match a regular expression as a whole.
    fn matching(&self, py: Python<'_>, pattern: &str) -> PyResult<Self> {
        py.detach(|| self.shaped(Shape::regex(pattern))).map_err(|error| raise(&error))
    }

    /// The language for middles of at most some lines.
    fn lines(&self, py: Python<'_>, most: usize) -> PyResult<Self> {
        py.detach(|| self.shaped(Shape::lines(most))).map_err(|error| raise(&error))
    }

    /// Open a pair of contexts.
    fn open(&self, py: Python<'_>, left: &str, right: &str) -> PyResult<Session> {
        let (core, held) = engine(py, || counted(|| CoreSession::open(&self.core, left, right)))?;
        Ok(Session { core, held })
    }

    /// Return whether texts for the holes between some texts exist that make the whole a program.
    fn is_possible(&self, py: Python<'_>, texts: Vec<String>) -> PyResult<bool> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        engine(py, || core_is_possible(&self.core, &texts))?.map_err(|error| raise(&error))
    }

    /// The longest match at a text's first byte in a mode: its bytes and the lexemes it may be.
    #[pyo3(signature = (text, mode = 0))]
    fn longest_match(&self, text: &[u8], mode: usize) -> PyResult<Option<(usize, Vec<String>)>> {
        let matched = self.core.lexer.longest_match(self.mode(mode)?, text);
        let Some((length, accept)) = matched else { return Ok(None) };
        let names = self.core.lexer.lexemes(accept).iter();
        let names = names.map(|&lexeme| self.core.grammar.name(lexeme.into()).to_string());
        Ok(Some((length, names.collect())))
    }

    /// Return whether the longest match at a text's first byte in a mode could still go on after the text.
    #[pyo3(signature = (text, mode = 0))]
    fn matches_partially(&self, text: &[u8], mode: usize) -> PyResult<bool> {
        let lexer = &self.core.lexer;
        let start = lexer.start_of(self.mode(mode)?);
        let state = text.iter().fold(start, |state, &byte| lexer.step(state, byte));
        Ok(lexer.accepts(state) || lexer.extends(state))
    }
}

impl Language {
    fn shaped(&self, shape: Result<Shape, Error>) -> Result<Self, Error> {
        Ok(Self { core: Arc::new(self.core.shaped(Arc::new(shape?))?) })
    }

    fn mode(&self, mode: usize) -> PyResult<ModeId> {
        if mode < self.core.mode_count() {
            return Ok(ModeId::from_index(mode));
        }
        Err(PyValueError::new_err(format!("there is no mode {mode}: the language has {}", self.core.mode_count())))
    }
}

/// One pair of contexts.
#[pyclass(frozen, module = "fim_server._core")]
struct Session {
    core: Arc<CoreSession>,
    /// Bytes taken by opening it and the sessions that it was moved from.
    held: usize,
}

#[pymethods]
impl Session {
    #[getter]
    fn guarantee(&self) -> &'static str {
        match self.core.guarantee() {
            Guarantee::Exact => "exact",
            Guarantee::None => "none",
        }
    }

    #[getter]
    fn diagnostics(&self) -> Vec<String> {
        self.core.diagnostics().to_vec()
    }

    /// (viable, complete, byte offset of the first impossible byte).
    fn check(&self, py: Python<'_>, middle: &str) -> PyResult<(bool, bool, Option<usize>)> {
        let verdict = engine(py, || self.core.check(middle))?;
        Ok((verdict.viable, verdict.complete, verdict.rejected_at))
    }

    /// (left, right or between; byte offset in it) where the contexts fail.
    #[getter]
    fn broken_at(&self, py: Python<'_>) -> PyResult<Option<(&'static str, usize)>> {
        let broken = engine(py, || self.core.broken_at())?;
        Ok(broken.map(|broken| match broken {
            Broken::Left(at) => ("left", at),
            Broken::Right(at) => ("right", at),
            Broken::Between => ("between", 0),
        }))
    }

    /// The kind of non-code text at the end of the left context.
    #[getter]
    fn inside(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(engine(py, || self.core.inside())?.map(name_of))
    }

    /// A session on another left context and the same right one; None where it has to be opened afresh.
    fn moved(&self, py: Python<'_>, left: &str) -> PyResult<Option<Self>> {
        let (moved, more) = engine(py, || counted(|| self.core.moved(left)))?;
        Ok(moved.map(|core| Self { core, held: self.held + more }))
    }

    /// A session of the same contexts whose middles keep a floor besides; None if no middle does.
    fn floored(&self, py: Python<'_>, floor: &str, earlier: Option<&Self>) -> PyResult<Option<Self>> {
        let floor = match floor {
            "brackets" => Floor::Brackets,
            "block" => Floor::Block,
            _ => return Err(PyValueError::new_err(format!("there is no floor {floor}"))),
        };
        let earlier = earlier.map(|earlier| &*earlier.core);
        let (floored, held) = engine(py, || counted(|| self.core.floored(floor, earlier)))?;
        Ok(floored.map(|core| Self { core, held }))
    }

    /// Number of brackets or blocks that the middle must leave open; 0 without a floor, and where there are none.
    #[getter]
    fn floor(&self) -> u32 {
        self.core.floor().map_or(0, |(_, level)| level)
    }

    /// Open constructs of the left context, innermost first: (name, byte offset where it begins).
    fn open_constructs(&self, py: Python<'_>) -> PyResult<Vec<(String, usize)>> {
        engine(py, || self.core.open_constructs())
    }

    fn quotient_grammar(&self, py: Python<'_>) -> PyResult<String> {
        engine(py, || self.core.quotient_grammar())
    }

    fn start(&self) -> State {
        State { core: Mutex::new(self.core.start()) }
    }

    /// Return whether the right context puts no constraint on the next symbols.
    fn is_loose(&self, py: Python<'_>) -> bool {
        py.detach(|| self.core.is_unconstrained())
    }

    /// Take the right context into account at every step: the plain twin, for tests.
    fn tighten(&self, py: Python<'_>) {
        py.detach(|| self.core.tighten());
    }

    /// Bytes taken by opening it and the sessions that it was moved from, whose engine it shares.
    #[getter]
    fn held(&self) -> usize {
        self.held
    }

    /// Numbers of left sets, lattice nodes, requirements and frames.
    fn sizes(&self, py: Python<'_>) -> (usize, usize, usize, usize) {
        py.detach(|| self.core.sizes())
    }
}

/// Accepted bytes, viable, expected lexemes, open constructs of the left, open brackets of the right.
type Explained = (usize, bool, Vec<String>, Vec<String>, Vec<String>);

/// A middle in progress.
#[pyclass(frozen, module = "fim_server._core")]
struct State {
    core: Mutex<CoreState>,
}

#[pymethods]
impl State {
    fn advance(&self, py: Python<'_>, text: &[u8]) -> PyResult<usize> {
        engine(py, || lock(&self.core).advance(text))
    }

    fn is_complete(&self, py: Python<'_>) -> PyResult<bool> {
        engine(py, || lock(&self.core).is_complete())
    }

    fn is_viable(&self, py: Python<'_>) -> bool {
        py.detach(|| lock(&self.core).is_viable())
    }

    /// The kind of non-code text at the end of the middle.
    #[getter]
    fn inside(&self, py: Python<'_>) -> Option<&'static str> {
        py.detach(|| lock(&self.core).inside()).map(name_of)
    }

    fn fork(&self, py: Python<'_>) -> Self {
        Self { core: Mutex::new(py.detach(|| lock(&self.core).clone())) }
    }

    fn rollback(&self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        py.detach(|| lock(&self.core).rollback(bytes)).map_err(|error| raise(&error))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| lock(&self.core).len())
    }

    #[pyo3(signature = (most = usize::MAX))]
    fn shortest_completion<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = engine(py, || lock(&self.core).shortest_completion_within(most))?.map_err(|error| raise(&error))?;
        Ok(found.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn explain(&self, py: Python<'_>, text: &[u8]) -> PyResult<Explained> {
        let found = engine(py, || lock(&self.core).explain(text))?;
        Ok((found.accepted, found.viable, found.expected, found.open_left, found.open_right))
    }

    /// A matcher of middles that rewrite `again` before they go on from here.
    #[pyo3(signature = (vocabulary, again = None))]
    fn matcher(&self, py: Python<'_>, vocabulary: &Vocabulary, again: Option<&[u8]>) -> Matcher {
        let core = py.detach(|| {
            CoreMatcher::healing(lock(&self.core).clone(), vocabulary.core.clone(), again.unwrap_or_default().to_vec())
        });
        Matcher { core: Arc::new(Mutex::new(core)) }
    }
}

/// A model's vocabulary.
#[pyclass(frozen, module = "fim_server._core")]
struct Vocabulary {
    core: Arc<Tables>,
}

#[pymethods]
impl Vocabulary {
    /// `cache` is the folder where tables are kept between runs.
    #[new]
    #[pyo3(signature = (tokens, end_tokens, cache=None))]
    fn new(
        py: Python<'_>,
        tokens: Vec<Option<Vec<u8>>>,
        end_tokens: Vec<u32>,
        cache: Option<PathBuf>,
    ) -> PyResult<Self> {
        let core = py.detach(|| CoreVocabulary::new(&tokens, &end_tokens)).map_err(|error| raise(&error))?;
        Ok(Self { core: Arc::new(Tables::new(core, cache)) })
    }

    fn __len__(&self) -> usize {
        self.core.vocabulary.len()
    }

    /// Load or build the table of a language: (seconds it took, whether it came from a file, its bytes).
    fn prepare(&self, py: Python<'_>, language: &Language) -> (f64, bool, usize) {
        py.detach(|| {
            let masks = self.core.masks(&language.core);
            (masks.seconds, masks.cached, masks.spanner.bytes())
        })
    }

    /// Forget the masks of a language.
    fn clear(&self, py: Python<'_>, language: &Language) {
        py.detach(|| self.core.masks(&language.core).clear());
    }

    /// (masks, distinct ones, hits, misses, bytes, bytes of the table).
    fn statistics(&self, py: Python<'_>, language: &Language) -> (usize, usize, u64, u64, usize, usize) {
        let found = py.detach(|| self.core.masks(&language.core).statistics());
        (found.masks, found.distinct, found.hits, found.misses, found.bytes, found.table)
    }

    /// Nodes, groups, edges, token sets and roots of a language's table.
    fn table_sizes(&self, py: Python<'_>, language: &Language) -> [usize; 5] {
        py.detach(|| self.core.masks(&language.core).spanner.sizes())
    }

    fn token_bytes<'py>(&self, py: Python<'py>, token: u32) -> PyResult<Bound<'py, PyBytes>> {
        if token as usize >= self.core.vocabulary.len() {
            return Err(PyValueError::new_err(format!(
                "token {token} is outside the vocabulary of {} tokens",
                self.core.vocabulary.len()
            )));
        }
        Ok(PyBytes::new(py, self.core.vocabulary.bytes_of(TokenId(token))))
    }
}

/// A middle in progress, in tokens.
#[pyclass(frozen, module = "fim_server._core")]
struct Matcher {
    core: Arc<Mutex<CoreMatcher>>,
}

#[pymethods]
impl Matcher {
    /// Fill a writable buffer of uint32 words in place.
    fn fill_mask(&self, py: Python<'_>, words: PyBuffer<u32>) -> PyResult<()> {
        let words = Words::new(&words)?;
        engine(py, || {
            let core = lock(&self.core);
            check(&core, words.0.len())?;
            core.fill_mask(words.0);
            Ok(())
        })?
    }

    /// Fill a packed mask by a walk over the vocabulary's trie: the plain twin.
    fn fill_mask_plain(&self, py: Python<'_>, words: PyBuffer<u32>) -> PyResult<()> {
        let words = Words::new(&words)?;
        engine(py, || {
            let core = lock(&self.core);
            check(&core, words.0.len())?;
            core.fill_mask_plain(words.0);
            Ok(())
        })?
    }

    /// The packed mask as bytes.
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let filled = self.filled(py)?;
        let bytes: Vec<u8> = filled.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    fn allows(&self, py: Python<'_>, token: u32) -> PyResult<bool> {
        engine(py, || lock(&self.core).allows(TokenId(token)))?.map_err(|error| raise(&error))
    }

    fn commit(&self, py: Python<'_>, token: u32) -> PyResult<()> {
        engine(py, || lock(&self.core).commit(TokenId(token)))?.map_err(|error| raise(&error))
    }

    fn rollback(&self, py: Python<'_>, tokens: usize) -> PyResult<()> {
        py.detach(|| lock(&self.core).rollback(tokens)).map_err(|error| raise(&error))
    }

    fn is_complete(&self, py: Python<'_>) -> PyResult<bool> {
        engine(py, || lock(&self.core).is_complete())
    }

    /// The kind of non-code text at the end of the middle.
    #[getter]
    fn inside(&self, py: Python<'_>) -> Option<&'static str> {
        py.detach(|| lock(&self.core).inside()).map(name_of)
    }

    /// Find an ending of the middle: the tokens of a plan, or an empty list where it is complete. None means that it
    /// cannot end, or that the search passed its limit (`unknown`).
    fn landing(&self, py: Python<'_>, enough: usize) -> PyResult<(Option<Vec<u32>>, bool)> {
        Ok(match engine(py, || lock(&self.core).landing(enough))? {
            Outcome::Plan(plan) => (Some(plan.tokens().map(|token| token.0).collect()), false),
            Outcome::Never => (None, false),
            Outcome::Unknown => (None, true),
        })
    }

    /// Return whether after a token the middle can end within some tokens more; None if unknown.
    fn lands(&self, py: Python<'_>, token: u32, left: usize) -> PyResult<Option<bool>> {
        engine(py, || lock(&self.core).lands(TokenId(token), left))?.map_err(|error| raise(&error))
    }

    /// Fill a packed mask with the tokens that land, and return how many more the grammar alone would allow.
    fn fill_landing_mask(&self, py: Python<'_>, left: usize, words: PyBuffer<u32>) -> PyResult<usize> {
        let words = Words::new(&words)?;
        engine(py, || {
            let mut core = lock(&self.core);
            check(&core, words.0.len())?;
            Ok(core.fill_landing_mask(left, words.0))
        })?
    }

    /// The common beginning of all continuations.
    fn forced<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let forced = engine(py, || lock(&self.core).forced())?;
        Ok(PyBytes::new(py, &forced))
    }
}

fn check(matcher: &CoreMatcher, words: usize) -> PyResult<()> {
    let needed = mask_words(matcher.vocabulary().len());
    if words == needed {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("a mask needs {needed} words, not {words}")))
}

/// The words of a buffer that a caller lends for one call.
struct Words<'a>(&'a mut [u32]);

impl<'a> Words<'a> {
    fn new(buffer: &'a PyBuffer<u32>) -> PyResult<Self> {
        if buffer.readonly() {
            return Err(PyBufferError::new_err("a mask needs a writable array"));
        }
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("a mask needs an array without gaps"));
        }
        // SAFETY: the buffer is writable and contiguous, and PyO3 has checked that it is aligned and of u32; its exporter keeps the
        // memory where it is as long as the buffer is held. No other thread may use the array during the call, as with
        // every numpy function that writes into an array with the GIL released.
        Ok(Self(unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), buffer.item_count()) }))
    }
}

/// Check the keys of a language's TOML file and their types; the file comes as JSON.
#[pyfunction]
fn check_definition(file: &str) -> PyResult<()> {
    core_check_definition(file).map_err(|error| raise(&error))
}

/// Fill a buffer of uint32 words [matchers, words] in place, a row for each matcher.
#[pyfunction]
fn fill_masks(py: Python<'_>, matchers: Vec<PyRef<'_, Matcher>>, words: PyBuffer<u32>, threads: usize) -> PyResult<()> {
    let words = Words::new(&words)?;
    let matchers: Vec<Arc<Mutex<CoreMatcher>>> = matchers.iter().map(|matcher| matcher.core.clone()).collect();
    py.detach(|| core_fill_masks(&matchers, words.0, threads)).map_err(|error| raise(&error))
}

/// Give freed memory of the engine back to the system, as far as it was this thread's or an ended one's.
#[pyfunction]
fn release_memory(py: Python<'_>) {
    py.detach(|| mi_collect(true));
}

impl Matcher {
    fn filled(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        engine(py, || {
            let core = lock(&self.core);
            let mut filled = vec![0; mask_words(core.vocabulary().len())];
            core.fill_mask(&mut filled);
            filled
        })
    }
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::project_memory::{Continuation, ProjectMemory, SecretFiles, is_ignored, is_made_for_secrets};
    #[pymodule_export]
    use super::release_memory;
    #[pymodule_export]
    use super::{Language, Matcher, Session, State, Stop, Vocabulary, check_definition, fill_masks};
}
