//! The engine on small languages, without Python: layout, longest match without separators, masks, shortest completions.

use fim_server_core::Language;
use fim_server_core::LanguageSpec;
use fim_server_core::Matcher;
use fim_server_core::Tables;
use fim_server_core::Vocabulary;
use fim_server_core::mask_words;
use fim_server_core::{ErrorKind, TokenId};
use fim_server_core::{Guarantee, Session};
use std::sync::Arc;

fn compile(spec: &str) -> Arc<Language> {
    let spec: LanguageSpec = serde_json::from_str(spec).expect("a definition");
    Arc::new(Language::compile(&spec, None).expect("a language"))
}

/// Statements `n`, and `if:` with a block.
fn blocks() -> Arc<Language> {
    compile(
        r##"{
        "name": "blocks", "start": "file",
        "lexemes": [
            {"name": "NEWLINE", "pattern": "\\r?\\n"}, {"name": "BLANK", "pattern": "[ \\t]+"},
            {"name": "COMMENT", "pattern": "#[^\\n]*"}, {"name": "NAME", "pattern": "[a-z]+"},
            {"name": "IF", "literal": "if"}, {"name": "COLON", "literal": ":"},
            {"name": "INDENT"}, {"name": "DEDENT"}
        ],
        "ignore": ["BLANK", "COMMENT"],
        "rules": [
            {"lhs": "file", "rhs": []}, {"lhs": "file", "rhs": ["lines"]},
            {"lhs": "lines", "rhs": ["line"]}, {"lhs": "lines", "rhs": ["lines", "line"]},
            {"lhs": "line", "rhs": ["NAME", "NEWLINE"]}, {"lhs": "line", "rhs": ["IF", "COLON", "block"]},
            {"lhs": "block", "rhs": ["NEWLINE", "INDENT", "lines", "DEDENT"]}
        ],
        "layout": {"newline": "NEWLINE", "indent": "INDENT", "dedent": "DEDENT", "blank": "BLANK", "comment": "COMMENT"}
    }"##,
    )
}

/// Words of `a`, `aba` and `b`, with nothing to keep them apart.
fn words() -> Arc<Language> {
    compile(
        r#"{
        "name": "words", "start": "s",
        "lexemes": [{"name": "A", "literal": "a"}, {"name": "ABA", "literal": "aba"}, {"name": "B", "literal": "b"}],
        "ignore": [],
        "rules": [{"lhs": "s", "rhs": ["A", "B", "B"]}, {"lhs": "s", "rhs": ["ABA", "A"]}, {"lhs": "s", "rhs": ["A", "B", "A"]}]
    }"#,
    )
}

fn complete(language: &Arc<Language>, left: &str, middle: &str, right: &str) -> bool {
    Session::open(language, left, right).check(middle).complete
}

#[test]
fn a_dedent_needs_a_block_at_its_column() {
    let language = blocks();
    assert!(complete(&language, "if:\n    a\n", "", "b\n"));
    assert!(complete(&language, "if:\n    if:\n        a\n", "", "    b\n"));
    // Two blocks are open and one is closed, but none is at column 2.
    assert!(!complete(&language, "if:\n    if:\n        a\n", "", "  b\n"));
    // It can still be reached: by a middle that closes both blocks and opens another for R's line.
    let session = Session::open(&language, "if:\n    if:\n        a", "\n  b\n");
    assert!(!session.check("").complete);
    assert!(session.check("\nif:").complete);
}

#[test]
fn a_gap_holds_as_many_blocks_as_columns() {
    let language = blocks();
    // R closes the block at column 3 and all between it and column 1: one block fits there, at column 2.
    let session = Session::open(&language, "if:\n if:\n", "   a\n b\n");
    assert_eq!(session.guarantee(), Guarantee::Exact);
    assert!(session.check("").complete);
    assert!(session.check("  if:\n").complete);
    assert!(!session.check("  if:\n  if:\n").complete);
}

#[test]
fn the_middle_of_an_indentation_is_no_line_start() {
    let language = blocks();
    let session = Session::open(&language, "if:\n  ", "  a\n");
    assert!(session.check("").complete);
    assert!(session.check("b\n").viable);
    assert!(session.check("    ").complete);
}

#[test]
fn an_ended_symbol_must_have_been_the_longest_match() {
    let language = words();
    assert!(complete(&language, "a", "b", "b"));
    // `aba` is one lexeme, so A B A has no text at all.
    assert!(!complete(&language, "a", "b", "a"));
    assert!(complete(&language, "ab", "", "aa"));
    let verdict = Session::open(&language, "a", "a").check("b");
    assert!(verdict.viable, "aba·a is ABA A");
}

#[test]
fn masks_agree_with_single_tokens() {
    let language = blocks();
    let tokens: Vec<Option<Vec<u8>>> =
        ["", "a", "if", ":", "\n", " ", "    ", ":\n", "\n    ", "\n  a", "#", "é", "if:\n        a\n"]
            .iter()
            .map(|text| (!text.is_empty()).then(|| text.as_bytes().to_vec()))
            .chain([Some(vec![0xff]), None])
            .collect();
    let tables = Arc::new(Tables::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"), None));
    let session = Session::open(&language, "if:\n    a", "\nb\n");
    let mut matcher = Matcher::new(session.start(), tables.clone());
    for token in [None, Some(4), Some(6), Some(2), Some(7)] {
        if let Some(token) = token {
            matcher.commit(TokenId(token)).expect("allowed");
        }
        let mut words = vec![0; mask_words(tables.vocabulary.len())];
        matcher.fill_mask(&mut words);
        for id in 0..tokens.len() {
            let allowed = words[id / 32] >> (id % 32) & 1 == 1;
            let id = TokenId::from_index(id);
            assert_eq!(allowed, matcher.allows(id).expect("known"), "{id:?}");
            assert_eq!(allowed, matcher.clone().commit(id).is_ok(), "{id:?}");
        }
    }
    matcher.rollback(4).expect("committed");
    assert!(matcher.is_complete());
    matcher.commit(TokenId(0)).expect("the end token, where the middle is complete");
    assert!(!matcher.allows(TokenId(1)).expect("known"));
    assert_eq!(matcher.rollback(2).expect_err("one token").kind(), ErrorKind::State);
}

/// All texts over some pieces, up to a number of pieces.
fn texts(pieces: &[&str], longest: usize) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut layer = found.clone();
    for _ in 0..longest {
        layer = layer.iter().flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}"))).collect();
        found.extend(layer.iter().cloned());
    }
    found
}

#[test]
fn table_masks_agree_with_the_plain_walk() {
    let languages = [
        (
            blocks(),
            vec!["a", "if", ":", "\n", " ", "\t", "\n  ", "#", ":\n ", "\r"],
            texts(&["a", "if:", "\n", " "], 3),
        ),
        (words(), vec!["a", "b", "ab", "ba", "aba", "bb"], texts(&["a", "b"], 3)),
    ];
    let mut allowed = 0;
    for (language, pieces, contexts) in languages {
        let bytes = (0..=255).map(|byte| Some(vec![byte]));
        let tokens: Vec<Option<Vec<u8>>> =
            texts(&pieces, 2).into_iter().map(|text| Some(text.into_bytes())).chain(bytes).collect();
        let tables = Arc::new(Tables::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"), None));
        let mut plain = vec![0; mask_words(tables.vocabulary.len())];
        let mut by_table = plain.clone();
        for left in &contexts {
            for right in ["", "\n", "b", "a\n", " a\n", "  a\n a\n", ":\n a\n", "ab"] {
                for tightened in [false, true] {
                    let session = Session::open(&language, left, right);
                    if tightened {
                        session.tighten();
                    }
                    let matcher = Matcher::new(session.start(), tables.clone());
                    matcher.fill_mask_plain(&mut plain);
                    // Cold or from another session, then known.
                    for _ in 0..2 {
                        matcher.fill_mask(&mut by_table);
                        assert_eq!(by_table, plain, "{left:?} {right:?} {tightened}");
                    }
                    allowed += plain.iter().map(|word| word.count_ones()).sum::<u32>();
                }
            }
        }
    }
    assert!(allowed > 10_000);
}

#[test]
fn a_shortest_completion_counts_indentation() {
    let language = blocks();
    let state = Session::open(&language, "if:\n    if:", "\nb\n").start();
    assert_eq!(state.shortest_completion(), Ok(Some(b"\n     x".to_vec())));
}
