//! Bounds on the time and space of the memory, each with its unit.

/// Lexemes of context by which positions are sorted. Longer matches are compared one by one.
pub(crate) const DEPTH: usize = 64;

/// Bytes of a word or of a run of blanks: a longer one is several lexemes.
pub(crate) const WORD: usize = 64;

/// Bytes before a cursor that a query reads as context, and the most bytes before those whose indentation it reads.
pub(crate) const TAIL: usize = 4096;
pub(crate) const BACK: usize = 1 << 18;

/// Bytes after a cursor that a query reads.
pub(crate) const AHEAD: usize = 1024;

/// Lexemes of a continuation's line.
pub(crate) const LINE: usize = 96;

/// Bytes of an open document's block: the least, and the most.
pub(crate) const BLOCK: (usize, usize) = (16 << 10, 64 << 10);

/// Lexemes sorted at once while folders are read: in the first batch, and in the largest.
pub(crate) const BATCH: (usize, usize) = (1 << 16, 1 << 20);

/// Lexemes of the largest segment that is merged, and segments of a size before they are merged.
pub(crate) const SEGMENT: usize = 1 << 21;
pub(crate) const TIER: usize = 4;

/// Largest handwritten file. Unit: bytes.
pub(crate) const FILE: u64 = 1_000_000;

/// Bytes of a line, and of lines on average, beyond which a file counts as generated.
pub(crate) const LONG_LINE: usize = 5_000;
pub(crate) const AVERAGE_LINE: usize = 200;

/// Files that one walk visits.
pub(crate) const FILES: usize = 200_000;

/// Lines of a window that is compared with those around a place, and the stride of windows.
pub(crate) const ALIKE: usize = 8;
pub(crate) const STRIDE: usize = 4;

/// Lines of an excerpt around a similar window; it begins half a stride after the window.
pub(crate) const EXCERPT: usize = 12;

/// Least similarity, from 0 to 1.
pub(crate) const LEAST_ALIKE: f64 = 0.15;

/// Lines of a definition's header, and definitions of one name beyond which none is returned.
pub(crate) const HEADER: usize = 8;
pub(crate) const MOST_DEFINITIONS: usize = 3;

/// Characters of all texts together.
pub const CHARACTERS: usize = 10_000_000;

/// Positions that a query visits: in the cursor's own document, in all others together, and in one other document.
pub(crate) const OWN: usize = 256;
pub(crate) const OTHERS: usize = 512;
pub(crate) const EACH: usize = 32;

/// Positions that a query walks over to find those, with a part of a word to match, or past ones that do not count.
pub(crate) const WALK: usize = 4096;

/// Positions that a prediction visits.
pub(crate) const PREDICTED: usize = 64;
pub(crate) const PREDICTED_WALK: usize = 512;

/// Most seconds for reading one file, and for the walk through one folder.
pub(crate) const READ_SECONDS: u64 = 2;
pub(crate) const WALK_SECONDS: u64 = 60;

/// Most bytes of an ignore file; the rest is not read.
pub(crate) const IGNORE_FILE: u64 = 1 << 18;

/// Most bytes of a rule of an ignore file, and its wildcards. A longer rule is left out.
pub(crate) const GLOB: usize = 256;
pub(crate) const GLOB_WILDCARDS: usize = 32;

/// Most globs of the user for files that are never read.
pub(crate) const OWN_GLOBS: usize = 500;

/// Most rules for one place, wildcards in them, and rules that are compiled together.
pub(crate) const GLOBS: usize = 4_000;
pub(crate) const WILDCARDS: usize = 8_000;
pub(crate) const GLOBS_GROUP: usize = 500;

/// Most nested folders, entries of one folder, entries of one walk, and bytes of the paths that it finds.
pub(crate) const DEEPEST: usize = 64;
pub(crate) const FOLDER_ENTRIES: usize = if cfg!(test) { 1_000 } else { 100_000 };
pub(crate) const ENTRIES: usize = 1_000_000;
pub(crate) const PATHS: usize = 32 << 20;

/// Most notes of a walk on what it leaves out.
pub(crate) const MOST_NOTES: usize = 8;
