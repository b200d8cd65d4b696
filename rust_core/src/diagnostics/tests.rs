//! Diagnostics at a cursor, compared with all short middles.

use crate::diagnostics::expected::{expected, open_rules};
use crate::diagnostics::inside::{Inside, inside_all};
use crate::engine::verdicts::Engine;
use crate::test_languages::{Twin, blocks, compile, stepped, strings, sums, texts};
use std::collections::BTreeSet;

#[test]
fn expected_lexemes_are_those_that_some_middle_has_next() {
    let mut twin = Twin::new(sums());
    let middles = texts(b"a+() ", 5);
    for (left, right) in
        [("", ""), ("a", ""), ("a+", ")"), ("(", ")"), ("(a", ")"), ("(a)", "+a"), ("a ", "a"), ("((", "+a)")]
    {
        let mut wanted = BTreeSet::new();
        for middle in twin.completing(left, right, &middles) {
            let text = [left.as_bytes(), middle, right.as_bytes()].concat();
            let lexed = twin.lex(&text).expect("a whole text");
            // The first symbol after L that ends in the middle, where L's last one ends with L.
            let apart = lexed.iter().all(|lexed| lexed.begin >= left.len() || lexed.end <= left.len());
            let next = lexed.iter().find(|lexed| lexed.begin >= left.len() && !twin.is_ignored(lexed));
            if let Some(next) = next.filter(|next| apart && next.end <= left.len() + middle.len()) {
                wanted.extend(next.lexemes.iter().flat_map(|&lexeme| twin.language.shown(lexeme)));
            }
        }
        let mut engine = Engine::open(&twin.language, right.as_bytes());
        let mut found = BTreeSet::new();
        for branch in stepped(&mut engine, left.as_bytes()) {
            found.extend(expected(&mut engine, &branch));
        }
        assert_eq!(found, wanted, "{left:?} {right:?}");
    }
}

#[test]
fn a_line_is_expected_to_begin_in_every_block_that_is_open() {
    let language = compile(&blocks());
    let mut engine = Engine::open(&language, b"");
    let mut told = |left: &str| {
        let branch = stepped(&mut engine, left.as_bytes())[0];
        expected(&mut engine, &branch)
    };
    assert_eq!(told("if:\n a\n"), ["\"if\"", "NAME"]);
    assert_eq!(told("if:"), ["NEWLINE"]);
    assert_eq!(told("if"), ["\":\""]);
}

#[test]
fn open_rules_are_those_under_way() {
    let language = compile(&sums());
    let mut engine = Engine::open(&language, b"");
    let mut told = |left: &str| {
        let branch = *stepped(&mut engine, left.as_bytes()).last().expect("a branch");
        open_rules(&engine, &branch)
    };
    assert_eq!(told(""), [""; 0]);
    assert_eq!(told("((a"), ["part", "part"]);
    assert_eq!(told("(a"), ["part"]);
}

#[test]
fn comments_and_strings_are_distinguished_from_code() {
    let language = compile(&blocks());
    let mut engine = Engine::open(&language, b"");
    let mut told = |left: &str| {
        let branches = stepped(&mut engine, left.as_bytes());
        inside_all(&mut engine.parser, &branches)
    };
    assert_eq!(
        ["a#", "a #if", "a #b\n", "a", "#"].map(&mut told),
        [Some(Inside::Comment), Some(Inside::Comment), None, None, Some(Inside::Comment)]
    );
    let language = compile(&strings());
    let mut engine = Engine::open(&language, b"");
    let mut told = |left: &str| {
        let branches = stepped(&mut engine, left.as_bytes());
        inside_all(&mut engine.parser, &branches)
    };
    assert_eq!(
        ["a", "<a", "<", "<a{", "<a{b", "<a{b}", "<a>"].map(&mut told),
        [None, Some(Inside::String), Some(Inside::String), None, None, Some(Inside::String), None]
    );
}
