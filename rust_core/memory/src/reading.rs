//! Bounded reading of a folder's files, in the only place of this crate that opens one.
//!
//! Folders come from others. A link may lead to an endless device, a pipe may never begin, and a file may grow while it
//! is read. [`Reader::read`] opens only regular files inside of the folder, without waiting, within limits of size and
//! time.

use crate::limits::{MOST_NOTES, READ_SECONDS};
use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes to read between two checks of the time.
const PIECE: u64 = 1 << 18;

/// Reader of the files of one folder, with notes about those that it refuses.
pub(crate) struct Reader {
    /// The folder without links.
    root: PathBuf,
    notes: RefCell<Vec<String>>,
    /// A refusal was noted.
    refused: Cell<bool>,
}

/// Reasons for not reading a file whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no file of that name, or the system refuses to open it.
    Unreadable,
    /// A folder, a pipe, a socket or a device.
    NotRegular,
    /// A link leads out of the folder.
    Outside,
    /// The read was stopped, or took too long.
    Late,
}

impl Refusal {
    fn words(self) -> &'static str {
        match self {
            Self::Unreadable => "cannot be read",
            Self::NotRegular => "is not a regular file",
            Self::Outside => "is a link that leads out of the folder",
            Self::Late => "was not read in time",
        }
    }
}

/// The bytes of a file up to a limit.
pub(crate) struct Bytes {
    pub(crate) bytes: Vec<u8>,
    /// The file has more.
    pub(crate) cut: bool,
}

impl Reader {
    /// Return a reader for a folder, or `None` where the folder does not exist.
    pub(crate) fn new(root: &Path) -> Option<Self> {
        Some(Self { root: root.canonicalize().ok()?, notes: RefCell::default(), refused: Cell::new(false) })
    }

    /// Read at most `limit` bytes of a regular file inside the folder.
    pub(crate) fn read(&self, path: &Path, limit: u64, stop: &dyn Fn() -> bool) -> Result<Bytes, Refusal> {
        let real = path.canonicalize().map_err(|_| Refusal::Unreadable)?;
        if !real.starts_with(&self.root) {
            return Err(Refusal::Outside);
        }
        // Opening a device can change its state, so the kind is checked before, and on the descriptor after.
        let regular = |metadata: std::io::Result<std::fs::Metadata>| match metadata {
            Ok(metadata) if metadata.is_file() => Ok(metadata.len()),
            Ok(_) => Err(Refusal::NotRegular),
            Err(_) => Err(Refusal::Unreadable),
        };
        regular(real.symlink_metadata())?;
        let mut file = open(&real).map_err(|_| Refusal::Unreadable)?;
        let length = regular(file.metadata())?;
        if length == 0 {
            // Files of virtual file systems have no length and may have no end.
            return Ok(Bytes { bytes: Vec::new(), cut: false });
        }
        let deadline = Instant::now() + Duration::from_secs(READ_SECONDS);
        let mut bytes = Vec::with_capacity(length.min(limit) as usize + 1);
        while bytes.len() as u64 <= limit {
            let most = PIECE.min(limit + 1 - bytes.len() as u64);
            match (&mut file).take(most).read_to_end(&mut bytes) {
                Ok(0) => break,
                Ok(_) if stop() || Instant::now() > deadline => return Err(Refusal::Late),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(Refusal::Late),
                Err(_) => return Err(Refusal::Unreadable),
            }
        }
        let cut = bytes.len() as u64 > limit;
        bytes.truncate(limit as usize);
        Ok(Bytes { bytes, cut })
    }

    /// Record in a line that a file is refused; the first notes are kept.
    pub(crate) fn note_refusal(&self, path: &Path, refusal: Refusal) {
        self.refused.set(true);
        self.note(path, refusal.words());
    }

    /// Note a remark about a file in a line; the first notes are kept.
    pub(crate) fn note(&self, path: &Path, words: &str) {
        let mut notes = self.notes.borrow_mut();
        if notes.len() < MOST_NOTES {
            let shown: String = path.to_string_lossy().chars().flat_map(char::escape_debug).take(200).collect();
            notes.push(format!("{shown} {words}"));
        }
    }

    /// Return whether a refusal was noted.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.get()
    }

    /// Return the notes.
    pub(crate) fn into_notes(self) -> Vec<String> {
        self.notes.into_inner()
    }
}

#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).open(path)
}
