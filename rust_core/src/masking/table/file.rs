//! The token spanner table as one run of words, in memory or mapped from a file.

use crate::bits;
use crate::error::{Error, ErrorKind};
use crate::ids::{AcceptId, GuardId, ModeId, SpanId, StateId, TokenId};
use crate::language::definition::Definition;
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::product::live_beside;
use crate::masking::table::build::{self, Built};
use crate::masking::table::configuration::{Configuration, End, Label, Line, run_bytes};
use crate::masking::table::context::passes;
use crate::masking::table::sets::DENSE;
use crate::masking::vocabulary::Vocabulary;
use memmap2::Mmap;
use rustc_hash::FxHashMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::xxh3_64;

/// The first word of a file.
const MAGIC: u32 = u32::from_le_bytes(*b"FSpT");

/// The layout of the words below; a file of another one is not read.
const FORMAT: u32 = 3;

/// Header: magic, format, key (4 words), checksum (2), then offset and length of each section.
const HEADER: usize = 8;

const SECTIONS: usize = 10;

/// Bit of a group's guards: the tokens end in a line that has no symbol yet.
const IN_LINE: u32 = 1 << 31;

/// Sections of the words.
#[derive(Clone, Copy)]
enum Section {
    /// Per node, and once more at the end: where its groups, its edges and its odd tokens begin (3 words).
    Nodes,
    /// Lexer state, guards, set, mask in `Lives` or none (4 words).
    Groups,
    /// Kind, accept set or line, mode, target (4 words).
    Edges,
    Odd,
    /// Start of a set in `Data`, and its length in tokens or [`DENSE`] (2 words).
    Sets,
    Data,
    /// Guard sets: count, then length and states of each.
    Guards,
    /// Runs of blanks: as above, with bytes.
    Runs,
    /// Masks of the accept sets that a symbol in progress with guards can still become.
    Lives,
    /// Roots: state, guards, start of the mode, kind of line, node (5 words).
    Roots,
}

/// The table. Immutable; shared by all masks of one language and vocabulary.
#[derive(Debug)]
pub struct Spanner {
    words: Words,
    sections: [(usize, usize); SECTIONS],
    guards: Vec<Box<[StateId]>>,
    runs: Vec<Box<[u8]>>,
    /// Nodes of the states without guards in the middle of a line, [`NO_SPAN`] where there is none.
    plain: Vec<SpanId>,
    /// Per state: whether a symbol in progress keeps the mode in force, because it may be ignored.
    mode_counts: Vec<bool>,
    default_start: StateId,
    others: FxHashMap<Key, SpanId>,
    longest: u32,
    live_words: usize,
}

/// A root that is not a plain state: state, guards, start of the mode in force, whether the line has no symbol yet.
type Key = (StateId, Box<[StateId]>, StateId, bool);

const NO_SPAN: SpanId = SpanId(u32::MAX);

#[derive(Debug)]
enum Words {
    Owned(Vec<u32>),
    Mapped(Mmap),
}

impl Words {
    fn all(&self) -> &[u32] {
        match self {
            Self::Owned(words) => words,
            Self::Mapped(map) => bytemuck::cast_slice(map),
        }
    }
}

/// Tokens of a group or an edge.
#[derive(Debug, Clone, Copy)]
pub enum TokenSet<'a> {
    /// Their ids.
    Sparse(&'a [u32]),
    /// A packed mask.
    Dense(&'a [u32]),
}

impl TokenSet<'_> {
    /// Go through the tokens.
    pub fn for_each(self, mut each: impl FnMut(TokenId)) {
        match self {
            Self::Sparse(tokens) => tokens.iter().for_each(|&token| each(TokenId(token))),
            Self::Dense(mask) => {
                bits::numbers(mask).for_each(|token| each(TokenId::from_index(token)));
            }
        }
    }

    /// Add the tokens to a packed mask.
    #[inline]
    pub fn add_to(self, words: &mut [u32]) {
        match self {
            Self::Sparse(tokens) => {
                tokens.iter().for_each(|&token| bits::insert(words, token as usize));
            }
            Self::Dense(mask) => {
                bits::unite(words, mask);
            }
        }
    }
}

/// Some tokens of a node, and where they end.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// The symbol in progress, its guards and where in the line.
    pub at: End,
    set: u32,
    live: u32,
}

impl Spanner {
    /// Build the table.
    #[must_use]
    pub fn build(language: &Definition, vocabulary: &Vocabulary, threads: usize) -> Self {
        let built = build::build(language, vocabulary, threads);
        let words = lay_out(&built, language, key(language, vocabulary));
        Self::read(Words::Owned(words), language, vocabulary).expect("what was laid out is read")
    }

    /// Map a table from a file.
    ///
    /// # Errors
    /// The file is missing, damaged, or of another language, vocabulary or version: it is to be built again.
    pub fn load(path: &Path, language: &Definition, vocabulary: &Vocabulary) -> Result<Self, Error> {
        let damaged = |what: String| Error::new(ErrorKind::Vocabulary, format!("{}: {what}", path.display()));
        // Opening a pipe would wait for a writer.
        if !std::fs::metadata(path).map_err(|error| damaged(error.to_string()))?.is_file() {
            return Err(damaged("this is no file".into()));
        }
        let file = std::fs::File::open(path).map_err(|error| damaged(error.to_string()))?;
        // SAFETY: files of the cache are written under another name, then renamed, and never changed. Should another program
        // cut one short while it is mapped, reading it ends this process, as with every mapped file.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| damaged(error.to_string()))?;
        if map.len() % 4 != 0 || map.len() < 4 * (HEADER + 2 * SECTIONS) {
            return Err(damaged("this is no token table".into()));
        }
        Self::read(Words::Mapped(map), language, vocabulary)
            .ok_or_else(|| damaged("the token table is damaged, or another's".into()))
    }

    /// Write the table to a file, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::new(ErrorKind::Vocabulary, format!("{}: {error}", path.display()));
        static SAVED: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let own = SAVED.fetch_add(1, Ordering::Relaxed);
        let fresh = path.with_extension(format!("{}-{now}-{own}.new", std::process::id()));
        let write = || {
            let mut file = std::fs::File::create_new(&fresh)?;
            file.write_all(bytemuck::cast_slice(self.words.all()))?;
            drop(file);
            std::fs::rename(&fresh, path)
        };
        write().map_err(|error| {
            let _ = std::fs::remove_file(&fresh);
            failed(error)
        })
    }

    fn read(words: Words, language: &Definition, vocabulary: &Vocabulary) -> Option<Self> {
        let all = words.all();
        if all[..2] != [MAGIC, FORMAT] || all[2..6] != split(key(language, vocabulary)) {
            return None;
        }
        let sum = u64::from(all[6]) | u64::from(all[7]) << 32;
        if sum != xxh3_64(bytemuck::cast_slice(&all[HEADER..])) {
            return None;
        }
        let mut sections = [(0, 0); SECTIONS];
        for (index, section) in sections.iter_mut().enumerate() {
            let at = HEADER + 2 * index;
            *section = (all[at] as usize, all[at + 1] as usize);
        }
        let lists = |section: Section| {
            let (begin, length) = sections[section as usize];
            let mut rest = &all[begin..begin + length];
            let mut found = Vec::new();
            while let [count, tail @ ..] = rest {
                let (list, tail) = tail.split_at(*count as usize);
                found.push(list);
                rest = tail;
            }
            found
        };
        let guards: Vec<Box<[StateId]>> =
            lists(Section::Guards).into_iter().map(|list| list.iter().map(|&state| StateId(state)).collect()).collect();
        let byte = |&byte: &u32| u8::try_from(byte).expect("runs are bytes");
        let runs = lists(Section::Runs).into_iter().map(|list| list.iter().map(byte).collect()).collect();
        let lexer = &language.lexer;
        let live_words = 2 * lexer.live_mask(lexer.start()).len();
        let default_start = lexer.start().0;
        let mut plain = vec![NO_SPAN; lexer.state_count()];
        let mut others = FxHashMap::default();
        let (begin, length) = sections[Section::Roots as usize];
        for root in all[begin..begin + length].chunks_exact(5) {
            let [state, guard, start, line, node] = *root else { continue };
            if guard == 0 && line == 0 && start == default_start {
                plain[state as usize] = SpanId(node);
            } else {
                let key = (StateId(state), guards[guard as usize].clone(), StateId(start), line != 0);
                others.insert(key, SpanId(node));
            }
        }
        let mode_counts =
            (0..lexer.state_count()).map(StateId::from_index).map(|state| passes(language, state)).collect();
        Some(Self {
            words,
            sections,
            guards,
            runs,
            plain,
            mode_counts,
            default_start: StateId(default_start),
            others,
            longest: word(vocabulary.longest()),
            live_words,
        })
    }

    #[inline(always)]
    fn section(&self, section: Section) -> &[u32] {
        let (begin, length) = self.sections[section as usize];
        &self.words.all()[begin..begin + length]
    }

    /// The node before a token: the symbol in progress, its guards, the lexer's state before a symbol in the mode in
    /// force, and whether the line has no symbol yet. `None` if the table lacks it.
    #[must_use]
    pub fn root(&self, state: StateId, guards: &[StateId], start: StateId, in_line: bool) -> Option<SpanId> {
        let plain = self.plain[state.index()];
        if guards.is_empty() && !in_line && (start == self.default_start || !self.mode_counts[state.index()]) {
            return Some(plain).filter(|&node| node != NO_SPAN);
        }
        let start = if in_line || self.mode_counts[state.index()] { start } else { self.default_start };
        self.others.get(&(state, guards.into(), start, in_line)).copied()
    }

    #[inline(always)]
    fn span(&self, node: SpanId, which: usize) -> std::ops::Range<usize> {
        let nodes = self.section(Section::Nodes);
        let at = 3 * node.index() + which;
        nodes[at] as usize..nodes[at + 3] as usize
    }

    /// Iterate over the endings of a node's tokens.
    #[inline]
    pub fn endings(&self, node: SpanId) -> impl Iterator<Item = Ending> + '_ {
        let groups = self.section(Section::Groups);
        self.span(node, 0).map(move |index| {
            let group = &groups[4 * index..4 * index + 4];
            let guards = GuardId(group[1] & !IN_LINE);
            let at = End { state: StateId(group[0]), guards, in_line: group[1] & IN_LINE != 0 };
            Ending { at, set: group[2], live: group[3] }
        })
    }

    /// The number of a node's edges.
    #[inline]
    #[must_use]
    pub fn edges(&self, node: SpanId) -> std::ops::Range<usize> {
        self.span(node, 1)
    }

    /// An edge.
    #[inline]
    #[must_use]
    pub fn edge(&self, index: usize) -> (Label, SpanId) {
        let edge = &self.section(Section::Edges)[4 * index..4 * index + 4];
        let accept = || AcceptId::from_index(edge[1] as usize);
        let mode = || ModeId::from_index(edge[2] as usize);
        let label = match edge[0] {
            0 => Label::Read(accept(), mode()),
            1 => Label::Inside,
            2 => Label::Newline(accept(), mode()),
            3 => Label::NewlineBegin(accept(), mode()),
            4 => Label::Begin(Line::Relative(edge[1])),
            _ => Label::Begin(Line::Absolute(edge[1])),
        };
        (label, SpanId(edge[3]))
    }

    /// Tokens of a node to be tried byte by byte.
    #[inline]
    #[must_use]
    pub fn odd(&self, node: SpanId) -> impl ExactSizeIterator<Item = TokenId> + '_ {
        self.section(Section::Odd)[self.span(node, 2)].iter().map(|&token| TokenId(token))
    }

    /// The tokens of an ending.
    #[inline]
    #[must_use]
    pub fn tokens(&self, ending: Ending) -> TokenSet<'_> {
        let sets = self.section(Section::Sets);
        let (begin, length) = (sets[2 * ending.set as usize] as usize, sets[2 * ending.set as usize + 1]);
        let count = (length & !DENSE) as usize;
        let words = &self.section(Section::Data)[begin..begin + count];
        if length & DENSE == 0 { TokenSet::Sparse(words) } else { TokenSet::Dense(words) }
    }

    /// The accept sets that a symbol in progress with guards can still become, where an ending has one: a mask in words
    /// of 32 bits.
    #[inline]
    #[must_use]
    pub fn live_beside(&self, ending: Ending) -> &[u32] {
        let begin = ending.live as usize * self.live_words;
        &self.section(Section::Lives)[begin..begin + self.live_words]
    }

    /// The states of a guard set.
    #[must_use]
    pub fn guards(&self, id: GuardId) -> &[StateId] {
        &self.guards[id.index()]
    }

    /// The bytes of a run of blanks.
    #[must_use]
    pub fn run(&self, id: u32) -> &[u8] {
        &self.runs[id as usize]
    }

    /// Bytes of the longest token.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// Bytes of the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        4 * self.words.all().len()
    }

    /// Nodes, groups, edges, token sets and roots, for statistics.
    #[must_use]
    pub fn sizes(&self) -> [usize; 5] {
        let length = |section: Section| self.sections[section as usize].1;
        [
            length(Section::Nodes) / 3 - 1,
            length(Section::Groups) / 4,
            length(Section::Edges) / 4,
            length(Section::Sets) / 2,
            length(Section::Roots) / 5,
        ]
    }
}

/// Hash of a table's inputs.
fn key(language: &Definition, vocabulary: &Vocabulary) -> u128 {
    // Other code may build another table: `build.rs` hashes the code that determines its contents.
    let version = concat!(env!("CARGO_PKG_VERSION"), env!("TABLE_SOURCES"));
    let parts = [language.fingerprint.to_le_bytes(), vocabulary.fingerprint().to_le_bytes()].concat();
    xxhash_rust::xxh3::xxh3_128_with_seed(&parts, xxh3_64(version.as_bytes()))
}

fn split(key: u128) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (key >> shift & 0xffff_ffff) as u32)
}

fn word(number: usize) -> u32 {
    u32::try_from(number).expect("table fits u32")
}

fn lay_out(built: &Built, language: &Definition, key: u128) -> Vec<u32> {
    let (mut nodes, mut groups, mut edges, mut odd) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut lives, mut live_of) = (Vec::new(), FxHashMap::default());
    let mut own = built.guards.clone();
    let mut runs = UsedRuns::default();
    for node in &built.nodes {
        nodes.extend([word(groups.len() / 4), word(edges.len() / 4), word(odd.len())]);
        for &(end, set) in &node.groups {
            let live = if end.guards == NO_GUARDS {
                0
            } else {
                *live_of.entry((end.state, end.guards)).or_insert_with(|| {
                    let live = live_beside(&language.lexer, &mut own, end.state, end.guards);
                    lives.extend(live.words().iter().flat_map(|&mask| [mask as u32, (mask >> 32) as u32]));
                    word(lives.len() / (2 * live.words().len()) - 1)
                })
            };
            groups.extend([end.state.0, end.guards.0 | if end.in_line { IN_LINE } else { 0 }, set, live]);
        }
        for &(label, target) in &node.edges {
            let (kind, first, mode) = match label {
                Label::Read(accept, mode) => (0, accept.index(), mode.index()),
                Label::Inside => (1, 0, 0),
                Label::Newline(accept, mode) => (2, accept.index(), mode.index()),
                Label::NewlineBegin(accept, mode) => (3, accept.index(), mode.index()),
                Label::Begin(Line::Relative(run)) => (4, runs.of(run), 0),
                Label::Begin(Line::Absolute(run)) => (5, runs.of(run), 0),
                Label::Begin(Line::Middle) => unreachable!("a line begins in its indentation"),
            };
            edges.extend([kind, word(first), word(mode), target]);
        }
        odd.extend(node.odd.iter().map(|token| token.0));
    }
    nodes.extend([word(groups.len() / 4), word(edges.len() / 4), word(odd.len())]);
    let roots = built.roots.iter().flat_map(|&(root, node)| root_words(root, node)).collect();
    let sets = built.sets.sets.iter().flatten().copied().collect();
    let runs = lists(runs.used.iter().map(|&run| run_bytes(&built.runs, run).into_iter().map(u32::from).collect()));
    let sections =
        [nodes, groups, edges, odd, sets, built.sets.data.clone(), guard_lists(&built.guards), runs, lives, roots];
    let mut words = vec![MAGIC, FORMAT];
    words.extend(split(key));
    words.extend([0, 0]);
    let mut begin = HEADER + 2 * SECTIONS;
    for section in &sections {
        words.extend([word(begin), word(section.len())]);
        begin += section.len();
    }
    for section in sections {
        words.extend(section);
    }
    let sum = xxh3_64(bytemuck::cast_slice(&words[HEADER..]));
    words[6] = (sum & 0xffff_ffff) as u32;
    words[7] = (sum >> 32) as u32;
    words
}

/// Runs of blanks before lines, renumbered. Every prefix of a run is a run as well.
#[derive(Default)]
struct UsedRuns {
    used: Vec<u32>,
    ids: FxHashMap<u32, usize>,
}

impl UsedRuns {
    fn of(&mut self, run: u32) -> usize {
        let fresh = self.used.len();
        *self.ids.entry(run).or_insert_with(|| {
            self.used.push(run);
            fresh
        })
    }
}

fn root_words(root: Configuration, node: u32) -> [u32; 5] {
    [root.state.0, root.guards.0, root.start.0, u32::from(root.line != Line::Middle), node]
}

fn lists(lists: impl Iterator<Item = Vec<u32>>) -> Vec<u32> {
    lists.flat_map(|list| std::iter::once(word(list.len())).chain(list)).collect()
}

fn guard_lists(guards: &Guards) -> Vec<u32> {
    lists((0..guards.len()).map(|id| guards.states(GuardId::from_index(id)).iter().map(|state| state.0).collect()))
}
