//! Memory of a project's text: an n-gram model over lexemes without a bound on n. It finds the longest earlier matches
//! of the text before a cursor, what followed them, and the evidence for it.
//!
//! Texts are split into lexemes (`lexemes`), and the positions of many texts are sorted by the text before them, read
//! backwards (`segment`). A query finds its place in that order and walks outwards: the longest matches come first
//! (`query`). Documents come and go as in a log-structured merge tree. Each batch of files is a segment, small ones are
//! merged in tiers, and replaced text is only marked until then (`store`). Open documents are segments of their own, in
//! blocks, of which an edit rebuilds few (`open`).
//!
//! Each text is in one language, and only texts of its own language answer a query. The memory leaves secrets out
//! (`secrets`).

mod cursor;
mod folder;
mod ignores;
mod languages;
mod lexemes;
mod limits;
mod open;
mod query;
mod randomness;
mod reading;
mod related;
mod secret_files;
mod secrets;
mod segment;
mod store;
mod strings;
mod walk;
mod words;

pub use folder::{Decode, Indexed};
pub use ignores::is_ignored;
pub use limits::CHARACTERS;
pub use query::{Asker, Continuation, Place};
pub use related::{Excerpt, Sought};
pub use secret_files::{SecretFiles, is_made_for_secrets};

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sizes of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Remembered files of folders, without the open ones.
    pub files: usize,
    /// Open documents.
    pub open: usize,
    /// Characters of all of them.
    pub characters: usize,
    /// Arrays that a query searches, including those of open documents.
    pub segments: usize,
    /// Texts of lexemes.
    pub strings: usize,
    /// Bytes of all of these.
    pub bytes: usize,
}

/// The memory. Threads may query and change it at the same time.
pub struct ProjectMemory {
    store: store::Store,
    most: usize,
    /// Held while a folder is read, and while an open document is.
    reading: Mutex<()>,
    /// Notes on files left out of folders, a line each, until they are taken.
    notes: Mutex<Vec<String>>,
    updating: Mutex<()>,
}

fn one_at_a_time(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProjectMemory {
    /// A memory of at most `most` characters of files.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            store: store::Store::new(),
            most,
            reading: Mutex::default(),
            notes: Mutex::default(),
            updating: Mutex::default(),
        }
    }

    /// Read new and changed files below a folder that have one of these suffixes, and forget deleted ones. Ignored,
    /// hidden, foreign and generated files are left out, and files behind a link or of secrets.
    ///
    /// Keys are paths that begin with `root` as it is given.
    pub fn index_folder(&self, root: &Path, suffixes: &[String], stop: &dyn Fn() -> bool) -> Indexed {
        let decode = |_: &str, bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        self.index_decoded(root, suffixes, &SecretFiles::default(), &decode, stop)
    }

    /// Read a folder as [`Self::index_folder`] does, without the files of `secret`, and decode files that may not be
    /// UTF-8 with `decode`.
    pub fn index_decoded(
        &self,
        root: &Path,
        suffixes: &[String],
        secret: &SecretFiles,
        decode: &Decode<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Indexed {
        let _one = one_at_a_time(&self.reading);
        let (done, notes) = self.store.index(root, suffixes, secret, self.most, decode, stop);
        let mut all = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(notes);
        all.truncate(limits::MOST_NOTES);
        done
    }

    /// Take the notes on files left out of folders, a line each.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Name the languages of suffixes. A suffix without a name here is a language of its own.
    pub fn name_languages(&self, languages: &[(String, String)]) {
        self.store.state_mut().languages.name_suffixes(languages);
    }

    /// Replace the text of an open document: the text before the cursor's line, and the text after it. It stands in for
    /// the file with this key. Return whether the text was new.
    ///
    /// `private`: the text answers only queries of this document.
    pub fn update<'q>(&self, asker: impl Into<Asker<'q>>, before: &str, after: &str, private: bool) -> bool {
        let _one = one_at_a_time(&self.updating);
        self.store.update(asker.into(), (before, after), private)
    }

    /// Forget an open document; its file's text counts again.
    pub fn close(&self, key: &str) -> bool {
        let _one = one_at_a_time(&self.updating);
        self.store.state_mut().closed(key)
    }

    /// Forget a file.
    pub fn remove(&self, key: &str) -> bool {
        let _one = one_at_a_time(&self.reading);
        self.store.state_mut().forget(key)
    }

    /// Forget the files of a folder.
    pub fn leave_folder(&self, root: &Path) {
        let _one = one_at_a_time(&self.reading);
        self.store.leave(root);
    }

    /// Likely continuations between two texts, the likeliest first, at most `limit` of at most `most_lines` lines.
    ///
    /// `left` is the text before the cursor, with the number of line breaks before it if it is not complete.
    #[must_use]
    pub fn continuations<'q>(
        &self,
        asker: impl Into<Asker<'q>>,
        left: (&str, u32),
        right: &str,
        most_lines: usize,
        limit: usize,
    ) -> Vec<Continuation> {
        self.store.continuations(asker.into(), left, right, most_lines, limit)
    }

    /// Likely texts after `left` and `middle`, up to the end of a lexeme or two, with weights that sum to at most 1.
    /// Only the end of `left` is read, however long it is.
    #[must_use]
    pub fn predict<'q>(
        &self,
        asker: impl Into<Asker<'q>>,
        left: &str,
        middle: &str,
        limit: usize,
    ) -> Vec<(String, f64)> {
        self.store.predict(asker.into(), left, middle, limit)
    }

    /// Return the characters of a language's texts; of all texts, where it is empty.
    #[must_use]
    pub fn characters(&self, language: &str) -> usize {
        let state = self.store.state();
        let known = state.languages.find("", language);
        state.characters_of(|info| language.is_empty() || Some(info.language) == known)
    }

    /// Definitions of some names, and the lines most like those around a place, at most `limit` of each.
    #[must_use]
    pub fn related(&self, sought: &Sought<'_>, limit: usize) -> Vec<Excerpt> {
        self.store.related(sought, limit)
    }

    /// Return whether a text other than that of `key` has a word; texts of all languages count.
    #[must_use]
    pub fn has_word(&self, key: &str, word: &str) -> bool {
        self.store.has_word(key, word)
    }

    /// The memory's sizes.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let state = self.store.state();
        let blocks = state.open.values().flat_map(|open| &open.blocks).map(|block| &block.segment);
        let segments: Vec<_> = blocks.chain(&state.segments).collect();
        let held: usize = segments.iter().map(|segment| segment.held()).sum();
        let strings = self.store.strings();
        let infos = state.documents.capacity() * size_of::<store::Info>();
        let keys: usize = state.documents.iter().map(|info| info.key.len()).sum();
        Sizes {
            files: state.files.values().filter(|&&document| state.info(document).characters > 0).count(),
            open: state.open.len(),
            characters: state.characters(),
            segments: segments.len(),
            strings: strings.len(),
            bytes: held + strings.held() + infos + keys,
        }
    }
}
