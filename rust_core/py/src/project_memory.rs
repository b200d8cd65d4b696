//! The memory of a project's text, for Python.

use crate::Stop;
use fim_server_memory::{
    Asker, CHARACTERS, Continuation as CoreContinuation, Place, ProjectMemory as CoreMemory, SecretFiles as CoreSecret,
    Sought, is_ignored as core_is_ignored, is_made_for_secrets as core_is_made_for_secrets,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::path::PathBuf;

/// Likely continuation at a cursor, with its evidence; see the fields of `fim_server_memory::Continuation`.
#[pyclass(frozen, module = "fim_server._core")]
pub(crate) struct Continuation {
    core: CoreContinuation,
}

/// Define getters of fields that are copied.
macro_rules! continuation {
    ($($field:ident: $type:ty),* $(,)?) => {
        #[pymethods]
        impl Continuation {
            $(
                #[getter]
                fn $field(&self) -> $type {
                    self.core.$field
                }
            )*

            #[getter]
            fn text(&self) -> &str {
                &self.core.text
            }

            #[getter]
            fn shares(&self) -> Vec<(u32, f64)> {
                self.core.shares.clone()
            }

            #[getter]
            fn source(&self) -> &str {
                &self.core.source
            }

            #[getter]
            fn place(&self) -> &'static str {
                match self.core.place {
                    Place::Document => "document",
                    Place::Folder => "folder",
                    Place::Project => "project",
                }
            }

            fn __repr__(&self) -> String {
                format!("{:?}", self.core)
            }
        }
    };
}

continuation! {
    lines: u32,
    matched: u32,
    matched_characters: u32,
    agreeing: u32,
    agreeing_longest: u32,
    documents: u32,
    candidates: u32,
    candidates_longest: u32,
    longest: u32,
    share: f64,
    first_share: f64,
    first_weight: f64,
    distance: Option<u32>,
    edits_ago: Option<u64>,
    prefix: u32,
    right_agreement: u32,
    meets_right: bool,
    lines_agreeing: u32,
}

/// A memory of a project's text.
#[pyclass(frozen, module = "fim_server._core")]
pub(crate) struct ProjectMemory {
    core: CoreMemory,
}

#[pymethods]
impl ProjectMemory {
    /// `characters` bounds the text of files.
    #[new]
    #[pyo3(signature = (characters = CHARACTERS))]
    fn new(characters: usize) -> Self {
        Self { core: CoreMemory::new(characters) }
    }

    /// Read a folder's files. Return how many are known, were read in this run, were unfit, did not fit, and whether it
    /// was stopped.
    ///
    /// `decode` takes the key and the bytes of a file that may not be in UTF-8, and returns its text or None. `secret`:
    /// files that are never read.
    #[pyo3(signature = (root, suffixes, stop = None, decode = None, secret = None))]
    fn index_folder(
        &self,
        py: Python<'_>,
        root: PathBuf,
        suffixes: Vec<String>,
        stop: Option<PyRef<'_, Stop>>,
        decode: Option<Py<PyAny>>,
        secret: Option<Py<SecretFiles>>,
    ) -> (usize, usize, usize, usize, bool) {
        let stop = stop.map(|stop| stop.core.clone());
        let usual = CoreSecret::default();
        let secret = secret.as_ref().map_or(&usual, |secret| &secret.get().core);
        py.detach(|| {
            let stopped = || stop.as_ref().is_some_and(|stop| stop.is_set());
            let decoded = |key: &str, bytes: &[u8]| match &decode {
                None => String::from_utf8(bytes.to_vec()).ok(),
                Some(decode) => Python::attach(|py| {
                    decode.call1(py, (key, PyBytes::new(py, bytes))).ok()?.extract::<Option<String>>(py).ok()?
                }),
            };
            let done = self.core.index_decoded(&root, &suffixes, secret, &decoded, &stopped);
            (done.files, done.read, done.unfit, done.beyond, done.stopped)
        })
    }

    /// Take the notes on files left out of folders, a line each.
    fn take_notes(&self) -> Vec<String> {
        self.core.take_notes()
    }

    /// Name the languages of suffixes, given as pairs.
    fn name_languages(&self, languages: Vec<(String, String)>) {
        self.core.name_languages(&languages);
    }

    /// `language`: if empty, the key's suffix decides. `private`: the text answers only queries of this document.
    #[pyo3(signature = (key, before, after, language = "", private = false))]
    fn update(
        &self,
        py: Python<'_>,
        key: &str,
        before: &Bound<'_, PyString>,
        after: &Bound<'_, PyString>,
        language: &str,
        private: bool,
    ) -> bool {
        // Python's text may hold halves of surrogate pairs. They are replaced, and text with one is never suggested.
        let (before, after) = (before.to_string_lossy(), after.to_string_lossy());
        py.detach(|| self.core.update(Asker { key, language }, &before, &after, private))
    }

    fn close(&self, py: Python<'_>, key: &str) -> bool {
        py.detach(|| self.core.close(key))
    }

    fn remove(&self, py: Python<'_>, key: &str) -> bool {
        py.detach(|| self.core.remove(key))
    }

    /// Forget the files of a folder.
    fn leave_folder(&self, py: Python<'_>, root: PathBuf) {
        py.detach(|| self.core.leave_folder(&root));
    }

    /// Likely continuations at a cursor. `above` counts the line breaks before `left`, if `left` is not the whole text
    /// before the cursor.
    #[pyo3(signature = (key, left, right, most_lines = 1, limit = 8, above = 0, language = ""))]
    #[allow(clippy::too_many_arguments)]
    fn continuations(
        &self,
        py: Python<'_>,
        key: &str,
        left: &Bound<'_, PyString>,
        right: &Bound<'_, PyString>,
        most_lines: usize,
        limit: usize,
        above: u32,
        language: &str,
    ) -> Vec<Continuation> {
        let (left, right) = (left.to_string_lossy(), right.to_string_lossy());
        let asker = Asker { key, language };
        let made = py.detach(|| self.core.continuations(asker, (&left, above), &right, most_lines, limit));
        made.into_iter().map(|core| Continuation { core }).collect()
    }

    /// Likely texts after `left` and `middle`. Only the end of `left`, which may be long, is read.
    #[pyo3(signature = (key, left, limit = 16, middle = "", language = ""))]
    fn predict(
        &self,
        py: Python<'_>,
        key: &str,
        left: &Bound<'_, PyString>,
        limit: usize,
        middle: &str,
        language: &str,
    ) -> Vec<(String, f64)> {
        let left = left.to_string_lossy();
        py.detach(|| self.core.predict(Asker { key, language }, &left, middle, limit))
    }

    /// Definitions of `names` and the lines most like `words`, at most `limit` of each, without the lines `seen` of the
    /// document `key`. Each has its document, first line, text, name (of a definition) and score.
    #[pyo3(signature = (key, seen, words, common, names, defining, limit = 8, language = ""))]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn related(
        &self,
        py: Python<'_>,
        key: &str,
        seen: (u32, u32),
        words: Vec<String>,
        common: Vec<String>,
        names: Vec<String>,
        defining: Vec<String>,
        limit: usize,
        language: &str,
    ) -> Vec<(String, u32, String, Option<String>, f64)> {
        let found = py.detach(|| {
            let seen = seen.0..seen.1;
            let asker = Asker { key, language };
            let sought = Sought { asker, seen, words: &words, common: &common, names: &names, defining: &defining };
            self.core.related(&sought, limit)
        });
        found.into_iter().map(|one| (one.key, one.line, one.text, one.name, one.score)).collect()
    }

    /// Return whether a text other than that of `key` has a word.
    fn has_word(&self, py: Python<'_>, key: &str, word: &Bound<'_, PyString>) -> bool {
        let word = word.to_string_lossy();
        py.detach(|| self.core.has_word(key, &word))
    }

    /// Return the characters of a language's texts; of all texts, where it is empty.
    fn characters(&self, py: Python<'_>, language: &str) -> usize {
        py.detach(|| self.core.characters(language))
    }

    /// Files, open documents, characters, segments, strings, bytes.
    fn sizes(&self, py: Python<'_>) -> (usize, usize, usize, usize, usize, usize) {
        let sizes = py.detach(|| self.core.sizes());
        (sizes.files, sizes.open, sizes.characters, sizes.segments, sizes.strings, sizes.bytes)
    }
}

/// Files that are never read: files of secrets, and files that a workspace keeps from assistants.
#[pyclass(frozen, module = "fim_server._core")]
pub(crate) struct SecretFiles {
    core: CoreSecret,
}

#[pymethods]
impl SecretFiles {
    /// Raise ValueError for a text that is no glob.
    #[new]
    #[pyo3(signature = (globs = Vec::new()))]
    fn new(globs: Vec<String>) -> PyResult<Self> {
        Ok(Self { core: CoreSecret::new(&globs).map_err(PyValueError::new_err)? })
    }

    /// Return whether the globs make a file one of these or take it out, or None. `path`: below the workspace's folder.
    fn decide(&self, path: PathBuf) -> Option<bool> {
        self.core.decide(&path)
    }

    /// Return whether a file is one of these, by globs or by ignore files from a folder down to it.
    fn contains(&self, py: Python<'_>, root: PathBuf, file: PathBuf) -> bool {
        py.detach(|| self.core.contains(&root, &file))
    }
}

/// Return whether the ignore files from a folder down to a file's own folder hide the file.
#[pyfunction]
pub(crate) fn is_ignored(py: Python<'_>, root: PathBuf, file: PathBuf) -> bool {
    py.detach(|| core_is_ignored(&root, &file))
}

/// Return whether a file is made for secrets, by its name.
#[pyfunction]
pub(crate) fn is_made_for_secrets(name: &str) -> bool {
    core_is_made_for_secrets(name)
}
