//! Open documents, in blocks: an edit rereads only the blocks that it touches.

use crate::languages::Language;
use crate::lexemes::{CUT, Indents, START, unit_of};
use crate::limits::BLOCK;
use crate::query::Asker;
use crate::secrets::Scanner;
use crate::segment::{Document, Segment, Span};
use crate::store::{Block, Store, context_of};
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Split a text into blocks. They end before line breaks chosen by the text before them, so that an edit moves few of
/// them.
fn blocks(text: &str) -> Vec<&str> {
    let (least, most) = BLOCK;
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    while text.len() - start > least {
        let mut end = None;
        for at in start + least..(start + most).min(text.len()) {
            if bytes[at] != b'\n' || matches!(bytes[at - 1], b'\n' | b' ' | b'\t') {
                continue;
            }
            end = Some(at);
            if xxh3_64(&bytes[at - 16..at]) % 128 == 0 {
                break;
            }
        }
        let Some(mut end) = end.or((start + most < text.len()).then_some(start + most)) else { break };
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        parts.push(&text[start..end]);
        start = end;
    }
    parts.push(&text[start..]);
    parts
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = Xxh3Default::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Builder of a document's blocks, which reuses unchanged ones.
struct Reader<'s> {
    store: &'s Store,
    document: Document,
    language: Language,
    old: FxHashMap<u64, Block>,
    made: Vec<Block>,
    line: u32,
    indents: Indents,
    scanner: Scanner,
}

impl Reader<'_> {
    fn part(&mut self, text: &str, mark: u32) {
        let mut context = vec![mark];
        for text in blocks(text) {
            let hash = hash_of((text, &self.indents, &self.scanner, self.language, &context));
            let mut block = self.old.remove(&hash).unwrap_or_else(|| self.block(hash, text, &context));
            block.line = self.line;
            self.line += block.breaks;
            self.indents = block.indents.clone();
            self.scanner = block.scanner;
            context = context_of(&block.segment.lexemes);
            self.made.push(block);
        }
    }

    fn block(&self, hash: u64, text: &str, context: &[u32]) -> Block {
        let mut lexemes = context.to_vec();
        let mut scanner = self.scanner;
        let indents = self.store.read_on(text, self.indents.clone(), &mut scanner, &mut lexemes);
        let own = context.len() as u32..lexemes.len() as u32;
        let breaks = text.bytes().filter(|&byte| byte == b'\n').count() as u32;
        let span = Span { document: self.document, own };
        let segment = Arc::new(Segment::new(self.language, lexemes, vec![span]));
        Block { hash, segment, line: 0, breaks, indents, scanner }
    }
}

impl Store {
    /// Replace the text of an open document around the cursor's line, and return whether it was new.
    ///
    /// One thread at a time.
    pub(crate) fn update(&self, asker: Asker<'_>, (before, after): (&str, &str), private: bool) -> bool {
        let Asker { key, language } = asker;
        let hash = hash_of((before, after, language, private));
        let (key, old) = match self.state().open.get_key_value(key) {
            Some((_, open)) if open.hash == hash => return false,
            Some((key, open)) => (key.clone(), open.blocks.iter().map(|block| (block.hash, block.clone())).collect()),
            None => (Arc::from(key), FxHashMap::default()),
        };
        let unit = unit_of(if before.len() >= after.len() { before } else { after });
        let characters = before.chars().count() + after.chars().count();
        let (language, document) = {
            let mut state = self.state_mut();
            let language = state.languages.number(&key, language);
            (language, state.opened(&key, characters, unit, language, private).document)
        };
        let (indents, scanner) = (Indents::new(unit), Scanner::default());
        let mut reader = Reader { store: self, document, language, old, made: Vec::new(), line: 0, indents, scanner };
        // The line break before the cursor's line says how that is indented, which is not known here; the one after it
        // is the first of what follows.
        reader.part(before.strip_suffix('\n').unwrap_or(before), START);
        if !after.is_empty() {
            reader.line += u32::from(before.ends_with('\n'));
            reader.scanner.skip_line();
            reader.part(&format!("\n{after}"), CUT);
        }
        let made = reader.made;
        let mut state = self.state_mut();
        if let Some(open) = state.open.get_mut(&key) {
            (open.blocks, open.hash, open.unit) = (made, hash, unit);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::blocks;
    use crate::limits::BLOCK;
    use crate::store::Store;
    use std::sync::Arc;

    fn text(lines: usize) -> String {
        (0..lines)
            .map(|line| format!("{}value_{} = function({line})\n", "    ".repeat(line % 7 / 2), line * line % 97))
            .collect()
    }

    #[test]
    fn blocks_are_the_text_and_of_bounded_size() {
        for text in [text(20_000), "x".repeat(1_000_000), "\n".repeat(300_000), "ä \n".repeat(90_000), String::new()] {
            let parts = blocks(&text);
            assert_eq!(parts.concat(), text);
            assert!(parts.iter().all(|part| part.len() <= BLOCK.1));
        }
    }

    #[test]
    fn an_edit_rebuilds_few_blocks() {
        let text = text(30_000);
        let middle = text.len() / 2 + text[text.len() / 2..].find('\n').expect("a line break") + 1;
        let store = Store::new();
        let segments = || {
            let state = store.state();
            state.open["a"].blocks.iter().map(|block| block.segment.clone()).collect::<Vec<_>>()
        };
        let update = |before: &str, after: &str| store.update("a".into(), (before, after), false);
        assert!(update(&text[..middle], &text[middle..]));
        assert!(!update(&text[..middle], &text[middle..]));
        let first = segments();
        assert!(first.len() > 10);
        let line = "    something(new)\n";
        assert!(update(&format!("{}{line}", &text[..middle]), &text[middle..]));
        let second = segments();
        let kept = second.iter().filter(|one| first.iter().any(|other| Arc::ptr_eq(one, other))).count();
        assert!(second.len() - kept <= 3, "{kept} of {}", second.len());
    }
}
