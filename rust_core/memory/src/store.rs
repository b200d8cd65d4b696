//! Store of documents, of the segments with their text, and the merging that keeps segments few.

use crate::languages::{Language, Languages};
use crate::lexemes::{CUT, Indents, Lexeme, Piece, Splitter};
use crate::limits::{DEPTH, SEGMENT, TIER};
use crate::secrets::Scanner;
use crate::segment::{Document, Segment, Span};
use crate::strings::Strings;
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Time of a file's last change in nanoseconds since 1970, and its bytes. A change of either means that the file has
/// changed.
pub(crate) type Stamp = (u128, u64);

/// A document, of the disk or open.
pub(crate) struct Info {
    pub(crate) key: Arc<str>,
    /// Hash of its folder, for comparison.
    pub(crate) folder: u64,
    pub(crate) language: Language,
    /// True if this is the document's current text.
    pub(crate) live: bool,
    /// True if an open document stands in its place.
    pub(crate) hidden: bool,
    /// Number of the last edit, as a count of all edits, for an open one.
    pub(crate) edited: Option<u64>,
    pub(crate) characters: usize,
    stamp: Stamp,
}

/// A part of an open document.
#[derive(Clone)]
pub(crate) struct Block {
    /// Hash of its text and of everything else that its lexemes depend on.
    pub(crate) hash: u64,
    pub(crate) segment: Arc<Segment>,
    /// Line breaks before it.
    pub(crate) line: u32,
    pub(crate) breaks: u32,
    /// Indentation at its end, and the state of the search for secrets there.
    pub(crate) indents: Indents,
    pub(crate) scanner: Scanner,
}

pub(crate) struct Open {
    pub(crate) document: Document,
    pub(crate) blocks: Vec<Block>,
    pub(crate) hash: u64,
    pub(crate) unit: &'static str,
    /// Language of the document; its blocks have it once they are rebuilt.
    pub(crate) language: Language,
    /// The document answers only its own queries.
    pub(crate) private: bool,
}

/// A file that was read: its lexemes, without the mark; empty if it is not to be remembered.
pub(crate) struct Read {
    pub(crate) key: Arc<str>,
    pub(crate) stamp: Stamp,
    pub(crate) characters: usize,
    pub(crate) span: Option<std::ops::Range<u32>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) documents: Vec<Info>,
    pub(crate) files: FxHashMap<Arc<str>, Document>,
    pub(crate) open: FxHashMap<Arc<str>, Open>,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) languages: Languages,
    pub(crate) edits: u64,
}

/// The hash of a key's folder.
pub(crate) fn folder_of(key: &str) -> u64 {
    let folder = Path::new(key).parent().map_or("", |folder| folder.to_str().unwrap_or_default());
    xxhash_rust::xxh3::xxh3_64(folder.as_bytes())
}

impl State {
    pub(crate) fn info(&self, document: Document) -> &Info {
        &self.documents[document as usize]
    }

    fn info_mut(&mut self, document: Document) -> &mut Info {
        &mut self.documents[document as usize]
    }

    fn new_document(&mut self, key: &Arc<str>, language: Language) -> Document {
        self.documents.push(Info {
            key: key.clone(),
            folder: folder_of(key),
            language,
            live: true,
            hidden: false,
            edited: None,
            characters: 0,
            stamp: (0, 0),
        });
        (self.documents.len() - 1) as Document
    }

    /// The stamp of a file when it was last read.
    pub(crate) fn stamp(&self, key: &str) -> Option<Stamp> {
        self.files.get(key).map(|&document| self.info(document).stamp)
    }

    /// Replace the remembered texts of files that were read, by their languages.
    fn publish(&mut self, read: &[Read], languages: &[Language]) -> Vec<Document> {
        let mut documents = Vec::new();
        for (file, &language) in read.iter().zip(languages) {
            if let Some(old) = self.files.get(&file.key).copied() {
                self.info_mut(old).live = false;
            }
            let document = self.new_document(&file.key, language);
            let hidden = self.open.contains_key(&file.key);
            let info = self.info_mut(document);
            (info.stamp, info.characters, info.hidden) = (file.stamp, file.characters, hidden);
            self.files.insert(file.key.clone(), document);
            documents.push(document);
        }
        documents
    }

    /// Forget a file.
    pub(crate) fn forget(&mut self, key: &str) -> bool {
        let Some(document) = self.files.remove(key) else { return false };
        self.info_mut(document).live = false;
        true
    }

    pub(crate) fn opened(
        &mut self,
        key: &Arc<str>,
        characters: usize,
        unit: &'static str,
        language: Language,
        private: bool,
    ) -> &mut Open {
        self.edits += 1;
        let edits = self.edits;
        if !self.open.contains_key(key) {
            let document = self.new_document(key, language);
            self.hide(key, true);
            let open = Open { document, blocks: Vec::new(), hash: 0, unit, language, private };
            self.open.insert(key.clone(), open);
        }
        let document = self.open[key].document;
        let info = self.info_mut(document);
        (info.characters, info.edited, info.language) = (characters, Some(edits), language);
        let open = self.open.get_mut(key).expect("it was put there");
        if open.language != language {
            open.blocks.clear();
        }
        (open.language, open.private) = (language, private);
        open
    }

    pub(crate) fn closed(&mut self, key: &str) -> bool {
        let Some(open) = self.open.remove(key) else { return false };
        self.info_mut(open.document).live = false;
        self.hide(key, false);
        true
    }

    fn hide(&mut self, key: &str, hidden: bool) {
        if let Some(document) = self.files.get(key).copied() {
            self.info_mut(document).hidden = hidden;
        }
    }

    /// Number of remembered characters.
    pub(crate) fn characters(&self) -> usize {
        self.characters_of(|_| true)
    }

    /// Number of remembered characters of some documents.
    pub(crate) fn characters_of(&self, counts: impl Fn(&Info) -> bool) -> usize {
        let counted = self.documents.iter().filter(|info| info.live && !info.hidden && counts(info));
        counted.map(|info| info.characters).sum()
    }

    fn live(&self, segment: &Segment) -> usize {
        segment.spans.iter().filter(|span| self.info(span.document).live).map(|span| span.own.len()).sum()
    }

    /// Segments to merge: one that is more than half dead, or too many of a size and a language.
    fn untidy(&self) -> Vec<Arc<Segment>> {
        if let Some(dead) = self.segments.iter().find(|segment| 2 * self.live(segment) < segment.len()) {
            return vec![dead.clone()];
        }
        let tier = |segment: &Segment| (segment.language, segment.len().max(1).ilog2() / 2);
        let mut tiers: Vec<_> = self.segments.iter().map(|segment| tier(segment)).collect();
        tiers.sort_unstable_by_key(|&(language, size)| (size, language));
        tiers.dedup();
        for of in tiers {
            let mut alike: Vec<Arc<Segment>> = self.segments.iter().filter(|one| tier(one) == of).cloned().collect();
            alike.sort_by_key(|segment| segment.len());
            let mut sum = 0;
            let fitting = alike.iter().take_while(|segment| {
                sum += segment.len();
                sum <= SEGMENT
            });
            let count = fitting.count();
            if alike.len() > TIER && count > 1 {
                alike.truncate(count);
                return alike;
            }
        }
        Vec::new()
    }

    /// The live text of segments, joined.
    fn joined(&self, segments: &[Arc<Segment>]) -> (Vec<Lexeme>, Vec<Span>) {
        let live: usize = segments.iter().map(|segment| self.live(segment)).sum();
        let mut lexemes = Vec::with_capacity(live + live / 64);
        let mut spans = Vec::new();
        for segment in segments {
            for span in segment.spans.iter().filter(|span| self.info(span.document).live) {
                let mark = span.own.start as usize - 1;
                let start = lexemes.len() as u32 + 1;
                lexemes.extend_from_slice(&segment.lexemes[mark..span.own.end as usize]);
                spans.push(Span { document: span.document, own: start..lexemes.len() as u32 });
            }
        }
        (lexemes, spans)
    }
}

/// State shared by threads.
pub(crate) struct Store {
    strings: RwLock<Strings>,
    state: RwLock<State>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self { strings: RwLock::new(Strings::new()), state: RwLock::default() }
    }

    // A panic under one of these locks leaves its data unchanged, or longer by whole entries.

    pub(crate) fn strings(&self) -> RwLockReadGuard<'_, Strings> {
        self.strings.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Add the lexemes of a text that goes on at this indentation, and return the indentation at its end.
    ///
    /// The lock on the strings is held for short times: a query waits no longer than for some thousand lexemes.
    pub(crate) fn read(&self, text: &str, indents: Indents, into: &mut Vec<Lexeme>) -> Indents {
        self.read_on(text, indents, &mut Scanner::default(), into)
    }

    /// Read a text that continues another; a mark takes the place of each secret.
    pub(crate) fn read_on(
        &self,
        text: &str,
        mut indents: Indents,
        scanner: &mut Scanner,
        into: &mut Vec<Lexeme>,
    ) -> Indents {
        let mut start = 0;
        for secret in scanner.ranges(text) {
            indents = self.read_open(&text[start..secret.start], indents, into);
            into.push(CUT);
            start = secret.end;
        }
        self.read_open(&text[start..], indents, into)
    }

    /// Read a text without secrets.
    fn read_open(&self, text: &str, indents: Indents, into: &mut Vec<Lexeme>) -> Indents {
        const HELD: usize = 2048;
        let mut splitter = Splitter::new(text, indents);
        let mut pieces: Vec<Piece<'_>> = Vec::with_capacity(HELD);
        loop {
            pieces.clear();
            pieces.extend(splitter.by_ref().take(HELD));
            if pieces.is_empty() {
                return splitter.indents;
            }
            let mut strings = self.strings.write().unwrap_or_else(PoisonError::into_inner);
            into.extend(pieces.iter().map(|piece| match *piece {
                Piece::Text(text) => strings.number(text),
                Piece::Break(lexeme, _) => lexeme,
            }));
        }
    }

    /// Sort files that were read, and show them to queries in place of their remembered texts.
    pub(crate) fn publish(&self, lexemes: Vec<Lexeme>, read: &[Read]) {
        let languages: Vec<Language> = {
            let mut state = self.state_mut();
            read.iter().map(|file| state.languages.number(&file.key, "")).collect()
        };
        // Sorted before any lock is taken: the numbers of the documents do not matter for the order.
        let mut segments = by_language(lexemes, read, &languages);
        let mut state = self.state_mut();
        let documents = state.publish(read, &languages);
        for segment in &mut segments {
            segment.spans.iter_mut().for_each(|span| span.document = documents[span.document as usize]);
        }
        state.segments.extend(segments.into_iter().filter(|segment| segment.len() > 0).map(Arc::new));
    }

    /// Join segments until there are few. One thread at a time.
    pub(crate) fn tidy(&self, stop: &dyn Fn() -> bool) {
        while !stop() {
            let (untidy, (lexemes, spans)) = {
                let state = self.state();
                let untidy = state.untidy();
                let joined = state.joined(&untidy);
                (untidy, joined)
            };
            if untidy.is_empty() {
                return;
            }
            let language = untidy[0].language;
            let joined = (!spans.is_empty()).then(|| Arc::new(Segment::new(language, lexemes, spans)));
            let mut state = self.state_mut();
            state.segments.retain(|segment| !untidy.iter().any(|one| Arc::ptr_eq(one, segment)));
            state.segments.extend(joined);
        }
    }
}

/// Build a segment of the read files for each of their languages, with places in `read` instead of documents' numbers.
fn by_language(lexemes: Vec<Lexeme>, read: &[Read], languages: &[Language]) -> Vec<Segment> {
    let mut present = languages.to_vec();
    present.sort_unstable();
    present.dedup();
    let of = |language: Language| {
        let files = read.iter().zip(languages).enumerate().filter(move |(_, (_, one))| **one == language);
        files.filter_map(|(place, (file, _))| Some((place as Document, file.span.clone()?)))
    };
    if let &[language] = &present[..] {
        let spans = of(language).map(|(document, own)| Span { document, own }).collect();
        return vec![Segment::new(language, lexemes, spans)];
    }
    let segment = |&language: &Language| {
        let mut own_lexemes = Vec::new();
        let mut spans = Vec::new();
        for (document, own) in of(language) {
            let start = own_lexemes.len() as u32 + 1;
            own_lexemes.extend_from_slice(&lexemes[own.start as usize - 1..own.end as usize]);
            spans.push(Span { document, own: start..own_lexemes.len() as u32 });
        }
        Segment::new(language, own_lexemes, spans)
    };
    present.iter().map(segment).collect()
}

/// The last lexemes of a text as the context of the text after it, behind a mark where they are not its beginning.
pub(crate) fn context_of(lexemes: &[Lexeme]) -> Vec<Lexeme> {
    if lexemes.len() <= DEPTH + 1 {
        return lexemes.to_vec();
    }
    let mut context = vec![CUT];
    context.extend_from_slice(&lexemes[lexemes.len() - DEPTH..]);
    context
}
