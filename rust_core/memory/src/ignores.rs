//! Rules of ignore files (`.ignore`, `.gitignore`, `.git/info/exclude`, and those for assistants, such as `.aiignore`),
//! with bounds on their number and complexity.
//!
//! The order of precedence is that of the `ignore` crate, as a test compares. The innermost `.ignore` comes first, then
//! the innermost `.gitignore`, then `.git/info/exclude`, whether or not the folder is a repository. The crate's own
//! walker reads such files without a limit. Here [`Reader`] reads them within bounds, and the crate matches.

use crate::limits::{GLOB, GLOB_WILDCARDS, GLOBS, GLOBS_GROUP, IGNORE_FILE, WILDCARDS};
use crate::reading::{Reader, Refusal};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of ignore files for assistants. Their rules match in any case.
const FOR_ASSISTANTS: [&str; 6] =
    [".aiexclude", ".aiignore", ".codeiumignore", ".continueignore", ".copilotignore", ".cursorignore"];

/// The rules of one file, in groups; the last group that decides counts.
#[derive(Default)]
struct Rules(Vec<Gitignore>);

impl Rules {
    /// Return whether an entry is ignored (`true`) or kept (`false`) by these rules, or `None`.
    fn decide(&self, path: &Path, is_folder: bool) -> Option<bool> {
        self.0.iter().rev().find_map(|group| match group.matched(path, is_folder) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        })
    }
}

/// The rules for the entries of a folder, its parents' among them.
pub(crate) struct Ignores {
    parent: Option<Arc<Ignores>>,
    ignore: Rules,
    git: Rules,
    exclude: Rules,
    /// The rest of the bounds, for rules below this folder.
    room: Room,
}

/// Globs, and wildcards in them, that may still be added.
#[derive(Clone, Copy)]
struct Room {
    globs: usize,
    wildcards: usize,
}

impl Ignores {
    /// Read the ignore files of a folder.
    pub(crate) fn of(folder: &Path, parent: Option<Arc<Self>>, reader: &Reader, stop: &dyn Fn() -> bool) -> Self {
        let mut room = parent.as_ref().map_or(Room { globs: GLOBS, wildcards: WILDCARDS }, |parent| parent.room);
        let mut read = |path: &Path| rules_of(folder, path, false, reader, &mut room, stop);
        let ignore = read(&folder.join(".ignore"));
        let git = read(&folder.join(".gitignore"));
        let repository = repository_of(&folder.join(".git"), reader, stop);
        let exclude = repository.map(|path| read(&path.join("info/exclude"))).unwrap_or_default();
        Self { parent, ignore, git, exclude, room }
    }

    /// Return whether an entry below the folder is ignored, kept although something else hides it, or neither.
    pub(crate) fn decide(&self, path: &Path, is_folder: bool) -> Option<bool> {
        let (mut ignore, mut git, mut exclude) = (None, None, None);
        let mut at = Some(self);
        while let Some(here) = at {
            ignore = ignore.or_else(|| here.ignore.decide(path, is_folder));
            git = git.or_else(|| here.git.decide(path, is_folder));
            exclude = exclude.or_else(|| here.exclude.decide(path, is_folder));
            at = here.parent.as_deref();
        }
        ignore.or(git).or(exclude)
    }
}

/// The rules of the ignore files for assistants for the entries of a folder, its parents' among them.
pub(crate) struct Withheld {
    parent: Option<Arc<Withheld>>,
    rules: [Rules; FOR_ASSISTANTS.len()],
    room: Room,
}

impl Withheld {
    /// Read the ignore files for assistants of a folder.
    pub(crate) fn of(folder: &Path, parent: Option<Arc<Self>>, reader: &Reader, stop: &dyn Fn() -> bool) -> Self {
        let mut room = parent.as_ref().map_or(Room { globs: GLOBS, wildcards: WILDCARDS }, |parent| parent.room);
        let rules = FOR_ASSISTANTS.map(|name| rules_of(folder, &folder.join(name), true, reader, &mut room, stop));
        Self { parent, rules, room }
    }

    /// Return whether one of the files hides an entry below the folder; of files of a name the innermost decides.
    pub(crate) fn has(&self, path: &Path, is_folder: bool) -> bool {
        (0..FOR_ASSISTANTS.len()).any(|kind| {
            let mut at = Some(self);
            let deciding = std::iter::from_fn(|| {
                let here = at?;
                at = here.parent.as_deref();
                Some(here.rules[kind].decide(path, is_folder))
            });
            deciding.flatten().next() == Some(true)
        })
    }
}

/// Return whether the ignore files for assistants, from a folder down to a file's own folder, hide the file.
///
/// A file below a folder whose ignore file cannot be read counts as hidden.
pub(crate) fn is_withheld(root: &Path, file: &Path) -> bool {
    let (Some(reader), Ok(below)) = (Reader::new(root), file.strip_prefix(root)) else { return false };
    let (mut at, mut withheld) = (root.to_path_buf(), None);
    for name in below {
        let here = Arc::new(Withheld::of(&at, withheld.take(), &reader, &|| false));
        at.push(name);
        if here.has(&at, at != *file) {
            return true;
        }
        withheld = Some(here);
    }
    reader.has_refused()
}

/// Return whether the ignore files from a folder down to a file's own folder hide the file.
///
/// A file below a folder whose ignore file cannot be read counts as hidden. Rules beyond the bounds are left out.
#[must_use]
pub fn is_ignored(root: &Path, file: &Path) -> bool {
    let (Some(reader), Ok(below)) = (Reader::new(root), file.strip_prefix(root)) else { return false };
    let (mut at, mut ignores) = (root.to_path_buf(), None);
    for name in below {
        let here = Arc::new(Ignores::of(&at, ignores.take(), &reader, &|| false));
        at.push(name);
        if here.decide(&at, at != *file) == Some(true) {
            return true;
        }
        ignores = Some(here);
    }
    reader.has_refused()
}

/// Return the folder with a repository's `info`: `.git`, or the folder that a file of this name refers to.
fn repository_of(dot_git: &Path, reader: &Reader, stop: &dyn Fn() -> bool) -> Option<PathBuf> {
    let line_of = |path: &Path| {
        let read = reader.read(path, GLOB as u64 * 16, stop).ok()?;
        let text = String::from_utf8(read.bytes).ok()?;
        text.lines().next().map(str::to_string)
    };
    let kind = dot_git.metadata().ok()?;
    if kind.is_dir() {
        return Some(dot_git.to_path_buf());
    }
    let line = line_of(dot_git)?;
    let repository = dot_git.parent()?.join(line.strip_prefix("gitdir: ")?);
    let common = line_of(&repository.join("commondir")).map(|line| repository.join(line));
    Some(common.unwrap_or(repository))
}

/// Read the rules of one file for a folder, as far as they fit. `any_case`: whether they match in any case.
fn rules_of(
    folder: &Path,
    path: &Path,
    any_case: bool,
    reader: &Reader,
    room: &mut Room,
    stop: &dyn Fn() -> bool,
) -> Rules {
    if path.symlink_metadata().is_err() {
        return Rules::default();
    }
    let read = match reader.read(path, IGNORE_FILE, stop) {
        Ok(read) => read,
        Err(refusal) => {
            if refusal != Refusal::Unreadable || !path.is_dir() {
                reader.note_refusal(path, refusal);
            }
            return Rules::default();
        }
    };
    let mut left_out = usize::from(read.cut);
    let mut globs = Vec::new();
    // Git reads no UTF-16, so it is read in the files for assistants alone.
    let wide = if any_case { from_utf_16(&read.bytes) } else { None };
    if any_case && wide.is_none() && read.bytes.contains(&0) {
        reader.note_refusal(path, Refusal::Unreadable);
        return Rules::default();
    }
    let bytes = wide.as_ref().map_or(&*read.bytes, |text| text.as_bytes());
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first().is_none_or(|&byte| byte == b'#') || line.trim_ascii().is_empty() {
            continue;
        }
        let wildcards = line.iter().filter(|byte| b"*?[{".contains(byte)).count();
        let fits = line.len() <= GLOB && wildcards <= GLOB_WILDCARDS;
        match std::str::from_utf8(line) {
            Ok(line) if fits && room.globs > 0 && room.wildcards >= wildcards => {
                room.globs -= 1;
                room.wildcards -= wildcards;
                globs.push(line);
            }
            _ => left_out += 1,
        }
    }
    if left_out > 0 {
        reader.note(path, "has more or longer rules than are read: the others are left out");
    }
    Rules(globs.chunks(GLOBS_GROUP).flat_map(|group| built(folder, group, any_case)).collect())
}

/// Return the text of bytes in UTF-16, which PowerShell writes; `None` without its byte order mark, or for wrong bytes.
fn from_utf_16(bytes: &[u8]) -> Option<String> {
    let (order, units) = (bytes.get(..2)?, &bytes[2..]);
    let unit: fn([u8; 2]) -> u16 = match order {
        b"\xff\xfe" => u16::from_le_bytes,
        b"\xfe\xff" => u16::from_be_bytes,
        _ => return None,
    };
    if units.len() % 2 != 0 {
        return None;
    }
    String::from_utf16(&units.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect::<Vec<u16>>()).ok()
}

/// Build the matchers of some globs, and leave out the globs without one.
fn built(folder: &Path, globs: &[&str], any_case: bool) -> Vec<Gitignore> {
    let mut builder = GitignoreBuilder::new(folder);
    let _ = builder.case_insensitive(any_case);
    for glob in globs {
        let _ = builder.add_line(None, glob);
    }
    match builder.build() {
        Ok(matcher) if matcher.is_empty() => Vec::new(),
        Ok(matcher) => vec![matcher],
        // The globs are too large together, or one of them is.
        Err(_) if globs.len() > 1 => {
            let (first, second) = globs.split_at(globs.len() / 2);
            [built(folder, first, any_case), built(folder, second, any_case)].concat()
        }
        Err(_) => Vec::new(),
    }
}
