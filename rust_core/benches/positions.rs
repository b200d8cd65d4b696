//! The engine at named positions of one file (`benches/inventory.py`): opening, a keystroke, a check, masks.
//!
//! `cargo bench` compares with the run before; `cargo bench -- open` runs one group. Machines are noisy: compare runs
//! of one hour on one machine. `./dev bench` measures the same operations over many real files.

#![allow(missing_docs, reason = "criterion_group makes a public function")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use fim_server_core::{Language, LanguageSpec, Matcher, Session, Tables, Vocabulary, mask_words};
use std::hint::black_box;
use std::sync::Arc;

const SOURCE: &str = include_str!("inventory.py");

/// Cursors by name, each right after the first occurrence of a text in the file.
const POSITIONS: [(&str, &str); 6] = [
    ("AFTER_DOT", "        known = self.items."),
    ("IN_STRING", "raise ValueError(f\"not an"),
    ("IN_FIELD", "return f\"{self."),
    ("IN_CALL", "inventory.add(Item(name, "),
    ("MID_BLOCK", "        taken = min(count, item.stock)\n"),
    ("LINE_START", "class Inventory:\n"),
];

fn python() -> Arc<Language> {
    let spec: LanguageSpec =
        serde_json::from_str(include_str!("../tests/languages/python.json")).expect("a definition");
    Arc::new(Language::compile(&spec, None).expect("a language"))
}

fn at(text: &str) -> (&'static str, &'static str) {
    let cursor = SOURCE.find(text).unwrap_or_else(|| panic!("{text:?} is not in the file")) + text.len();
    SOURCE.split_at(cursor)
}

/// Every run of letters, of blanks and of other characters in the file, and every byte: a small vocabulary like a real one.
fn tables() -> Arc<Tables> {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let kind = |c: char| {
        if c.is_alphanumeric() {
            0
        } else if c.is_whitespace() {
            1
        } else {
            2
        }
    };
    let mut start = 0;
    let characters: Vec<(usize, char)> = SOURCE.char_indices().collect();
    for pair in characters.windows(2) {
        if kind(pair[0].1) != kind(pair[1].1) {
            tokens.push(SOURCE.as_bytes()[start..pair[1].0].to_vec());
            start = pair[1].0;
        }
    }
    tokens.sort();
    tokens.dedup();
    let tokens: Vec<Option<Vec<u8>>> = std::iter::once(None).chain(tokens.into_iter().map(Some)).collect();
    Arc::new(Tables::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"), None))
}

fn positions(c: &mut Criterion) {
    let language = python();
    let tables = tables();
    for (name, text) in POSITIONS {
        let (left, right) = at(text);
        c.bench_function(&format!("open/{name}"), |b| b.iter(|| Session::open(&language, black_box(left), right)));

        let session = Session::open(&language, left, right);
        let typed = format!("{left}x");
        c.bench_function(&format!("keystroke/{name}"), |b| b.iter(|| session.moved(black_box(&typed))));

        let rest: String = right.chars().take_while(|c| *c != '\n').collect();
        c.bench_function(&format!("check/{name}"), |b| b.iter(|| session.check(black_box(&rest))));

        let mut words = vec![0u32; mask_words(tables.vocabulary.len())];
        let matcher = Matcher::new(session.start(), tables.clone());
        matcher.fill_mask(&mut words);
        c.bench_function(&format!("mask warm/{name}"), |b| b.iter(|| matcher.fill_mask(black_box(&mut words))));
        c.bench_function(&format!("mask plain/{name}"), |b| b.iter(|| matcher.fill_mask_plain(black_box(&mut words))));
        c.bench_function(&format!("mask cold/{name}"), |b| {
            b.iter_batched(
                || {
                    tables.masks(&language).clear();
                    Matcher::new(Session::open(&language, left, right).start(), tables.clone())
                },
                |matcher| matcher.fill_mask(black_box(&mut words)),
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).without_plots();
    targets = positions
}
criterion_main!(benches);
