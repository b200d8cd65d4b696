//! Walk through a folder: its files of some suffixes that nothing hides, within bounds.

use crate::ignores::{Ignores, Withheld};
use crate::limits::{DEEPEST, ENTRIES, FILE, FILES, FOLDER_ENTRIES, PATHS, WALK_SECONDS};
use crate::reading::Reader;
use crate::secret_files::SecretFiles;
use crate::store::Stamp;
use std::fs::{Metadata, ReadDir};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Folders of foreign code, or of programs.
const FOREIGN: [&str; 12] = [
    "site-packages",
    "dist-packages",
    "node_modules",
    "bower_components",
    "__pycache__",
    "__pypackages__",
    "venv",
    "virtualenv",
    "build",
    "dist",
    "target",
    "htmlcov",
];

/// Files that mark their folder as foreign.
const FOREIGN_MARKS: [&str; 3] = ["pyvenv.cfg", "CACHEDIR.TAG", "conda-meta"];

/// File of the folder.
pub(crate) struct Found {
    pub(crate) key: Arc<str>,
    pub(crate) stamp: Stamp,
}

impl Found {
    pub(crate) fn path(&self) -> &Path {
        Path::new(&*self.key)
    }
}

/// Folder on the way of the walk.
struct Level {
    folder: PathBuf,
    entries: ReadDir,
    ignores: Arc<Ignores>,
    withheld: Arc<Withheld>,
    seen: usize,
}

struct Walk<'a> {
    root: &'a Path,
    suffixes: &'a [String],
    secret: &'a SecretFiles,
    reader: &'a Reader,
    stop: &'a dyn Fn() -> bool,
    found: Vec<Found>,
    /// Folders from the root to the current one; their number bounds open descriptors, and rules in memory.
    levels: Vec<Level>,
    entries: usize,
    paths: usize,
    deadline: Instant,
}

/// Return the files below a folder that have one of these suffixes and are neither secret, ignored nor hidden, in
/// order.
pub(crate) fn walk(
    root: &Path,
    suffixes: &[String],
    secret: &SecretFiles,
    reader: &Reader,
    stop: &dyn Fn() -> bool,
) -> Vec<Found> {
    let deadline = Instant::now() + Duration::from_secs(WALK_SECONDS);
    let (found, levels) = (Vec::new(), Vec::new());
    let mut walk = Walk { root, suffixes, secret, reader, stop, found, levels, entries: 0, paths: 0, deadline };
    walk.enter(root.to_path_buf());
    while let Some(level) = walk.levels.last_mut() {
        if stop() {
            break;
        }
        level.seen += 1;
        if level.seen > FOLDER_ENTRIES {
            reader.note(&level.folder, "has more entries than are looked at: the others are left out");
            walk.levels.pop();
            continue;
        }
        match level.entries.next() {
            Some(Ok(entry)) => walk.look_at(&entry),
            Some(Err(_)) => {}
            None => {
                walk.levels.pop();
            }
        }
        if let Some(words) = walk.is_over() {
            reader.note(root, words);
            break;
        }
    }
    let mut found = walk.found;
    found.sort_by(|one, other| one.path().cmp(other.path()));
    found
}

impl Walk<'_> {
    fn is_over(&self) -> Option<&'static str> {
        if self.found.len() >= FILES || self.entries >= ENTRIES || self.paths >= PATHS {
            return Some("has more files than are looked at: the others are left out");
        }
        (Instant::now() > self.deadline).then_some("takes too long to look through: the rest of it is left out")
    }

    fn enter(&mut self, folder: PathBuf) {
        if self.levels.len() >= DEEPEST {
            self.reader.note(&folder, "is deeper than is looked at: it is left out");
            return;
        }
        let (parent, above) = self.levels.last().map(|level| (level.ignores.clone(), level.withheld.clone())).unzip();
        if let Ok(entries) = folder.read_dir() {
            let ignores = Arc::new(Ignores::of(&folder, parent, self.reader, self.stop));
            let withheld = Arc::new(Withheld::of(&folder, above, self.reader, self.stop));
            self.levels.push(Level { folder, entries, ignores, withheld, seen: 0 });
        }
    }

    /// Return whether a file, or all files of a folder, are never read.
    fn is_secret(&self, path: &Path, is_folder: bool) -> bool {
        let below = path.strip_prefix(self.root).unwrap_or(path);
        let decided = if is_folder { self.secret.has_folder(below).then_some(true) } else { self.secret.decide(below) };
        let withheld = || self.levels.last().is_some_and(|level| level.withheld.has(path, is_folder));
        decided.unwrap_or_else(withheld)
    }

    fn look_at(&mut self, entry: &std::fs::DirEntry) {
        self.entries += 1;
        let name = entry.file_name();
        let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else { return };
        let is_folder = kind.is_dir();
        let has_suffix = || self.suffixes.iter().any(|end| name.ends_with(end.as_str()));
        if !is_folder && (!kind.is_file() || !has_suffix()) {
            return;
        }
        let path = entry.path();
        if self.is_secret(&path, is_folder) {
            return;
        }
        let decided = self.levels.last().and_then(|level| level.ignores.decide(&path, is_folder));
        if decided.unwrap_or_else(|| is_hidden(name, entry)) {
            return;
        }
        if is_folder {
            if !is_foreign(&path, name) {
                self.enter(path);
            }
            return;
        }
        let Ok(metadata) = entry.metadata() else { return };
        if let Some(key) = path.to_str().filter(|_| metadata.len() <= FILE) {
            self.paths += key.len();
            self.found.push(Found { key: Arc::from(key), stamp: stamp_of(&metadata) });
        }
    }
}

#[cfg(not(windows))]
fn is_hidden(name: &str, _: &std::fs::DirEntry) -> bool {
    name.starts_with('.')
}

#[cfg(windows)]
fn is_hidden(name: &str, entry: &std::fs::DirEntry) -> bool {
    use std::os::windows::fs::MetadataExt;
    const HIDDEN: u32 = 2;
    name.starts_with('.') || entry.metadata().is_ok_and(|metadata| metadata.file_attributes() & HIDDEN != 0)
}

fn is_foreign(path: &Path, name: &str) -> bool {
    FOREIGN.contains(&name) || FOREIGN_MARKS.iter().any(|mark| path.join(mark).exists())
}

fn stamp_of(metadata: &Metadata) -> Stamp {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    (modified.map_or(0, |time| time.as_nanos()), metadata.len())
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
