//! Words of the project: whether a text has one.

use crate::lexemes::UNKNOWN;
use crate::limits::WALK;
use crate::store::Store;

impl Store {
    /// Return whether a text other than that of `key` has a word, in any language.
    ///
    /// Positions are sorted by the lexeme before them first, so a binary search finds the word in each segment. The
    /// last lexeme of a text has no position after it, and is not found. At most [`WALK`] places in texts that do not
    /// count are passed.
    pub(crate) fn has_word(&self, key: &str, word: &str) -> bool {
        let lexeme = self.strings().find(word);
        if lexeme == UNKNOWN {
            return false;
        }
        let state = self.state();
        let others = state.open.iter().filter(|(other, open)| !open.private && &***other != key);
        let blocks = others.flat_map(|(_, open)| &open.blocks).map(|block| &block.segment);
        let segments: Vec<_> = blocks.chain(&state.segments).collect();
        let after = segments.into_iter().flat_map(|segment| {
            let positions = (segment.place(&[lexeme])..segment.len()).map(|place| segment.position(place));
            let after = positions.take_while(move |&position| segment.lexemes[position - 1] == lexeme);
            after.map(move |position| segment.span(position).document)
        });
        after.take(WALK).any(|document| {
            let info = state.info(document);
            info.live && !info.hidden && &*info.key != key
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::store::Store;

    #[test]
    fn the_words_of_other_texts_are_known() {
        let store = Store::new();
        let update = |key: &str, text: &str, private| store.update(key.into(), (text, ""), private);
        update("/a.py", "for row in rows:\n    pass\n", false);
        update("/b.rs", "let nothing = row;\n", false);
        update("/c.py", "secret = row\n", true);
        let known = |key: &str, word: &str| store.has_word(key, word);
        assert!(known("/d.py", "rows") && known("/d.py", "nothing") && known("/c.py", "rows"));
        assert!(!known("/a.py", "rows") && known("/a.py", "row") && known("/a.py", "let"));
        assert!(!known("/d.py", "secret") && !known("/d.py", "ro") && !known("/d.py", "never") && !known("/d.py", ""));
        update("/a.py", "for one in all:\n", false);
        assert!(!known("/d.py", "rows") && known("/d.py", "all"));
        store.state_mut().closed("/a.py");
        assert!(!known("/d.py", "all") && known("/d.py", "row"));
    }

    #[test]
    fn no_more_than_so_many_places_are_passed() {
        let store = Store::new();
        let text = "word other\n".repeat(5_000);
        store.update("/a.py".into(), (&text, ""), true);
        assert!(!store.has_word("/b.py", "word"));
        store.update("/a.py".into(), (&text, ""), false);
        assert!(store.has_word("/b.py", "word") && !store.has_word("/a.py", "word"));
    }
}
