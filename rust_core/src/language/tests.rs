//! What is known of a language beyond its lexer and grammar: costs of a free middle, shapes, and what its texts are made of.

use crate::ids::{DotId, SymbolId};
use crate::language::compiled::Language;
use crate::language::definition::Definition;
use crate::language::follow::bit;
use crate::language::free::{INFINITE, LINE, MIDDLE};
use crate::language::shape::Shape;
use crate::spec::{CommentSpec, LanguageSpec};
use crate::test_languages::{Twin, blocks, compile, define, derives, letters, spelled, strings, sums, symbol, texts};
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::{Anchored, Input, MatchKind};

/// The least length of a text that some symbols derive one after another.
fn least(language: &Language, symbols: &[SymbolId], texts: &[Vec<u8>]) -> u32 {
    let length = |symbol: &SymbolId| {
        texts.iter().find(|text| derives(&language.grammar, *symbol, &spelled(text))).map(|text| text.len() as u32)
    };
    symbols.iter().map(length).try_fold(0, |sum, length| Some(sum + length?)).expect("every symbol has a short text")
}

#[test]
fn relations_cost_as_much_as_the_shortest_texts() {
    let texts = texts(b"abc", 4);
    for spec in letters() {
        let language = compile(&spec);
        let grammar = &language.grammar;
        let free = &language.free;
        // Nothing goes on after its first byte, so there is but one boundary between symbols.
        let between = free.at_boundary(&[]).expect("a boundary");
        assert_eq!(free.count(), 1);
        for symbol in (0..grammar.symbol_count()).map(SymbolId::from_index) {
            if grammar.occurrences(symbol).is_empty() && symbol != grammar.start {
                continue;
            }
            assert_eq!(free.relation(symbol, between, between), least(&language, &[symbol], &texts), "{spec:?}");
        }
        for dot in (0..grammar.dot_count()).map(DotId::from_index) {
            let before = &grammar.rule(dot).rhs[..grammar.position(dot)];
            assert_eq!(free.prefix(dot, between, between), least(&language, before, &texts), "{dot:?} of {spec:?}");
        }
    }
}

#[test]
fn costs_tell_the_start_of_a_line_from_its_middle() {
    let language = compile(&blocks());
    let cost = |name: &str, from, to| language.free.relation(symbol(&language.grammar, name), from, to);
    assert_eq!(cost("line", LINE, LINE), 2, "a name and a newline");
    assert_eq!(cost("block", MIDDLE, LINE), 4, "a newline, a blank, a name, a newline");
    assert_eq!(cost("file", LINE, LINE), 0);
    assert_eq!(cost("line", LINE, MIDDLE), INFINITE, "a line ends with its newline");
    assert_eq!(cost("NAME", MIDDLE, MIDDLE), 1);
    assert!(language.free.is_line(LINE) && !language.free.is_line(MIDDLE));
    let line = |lhs: &str, wanted: bool| {
        let grammar = &language.grammar;
        let dots = (0..grammar.dot_count()).map(DotId::from_index);
        let own = dots.filter(|&dot| grammar.name(grammar.lhs(dot)) == lhs && grammar.position(dot) == 1);
        own.filter(|&dot| grammar.rule(dot).rhs.len() > 1).for_each(|dot| {
            assert_eq!(language.free.crosses_line(dot), wanted, "{lhs}");
        });
    };
    line("lines", true);
    line("block", true);
}

#[test]
fn symbols_are_kept_apart_where_there_are_separators() {
    assert!(compile(&sums()).free.is_separated() && compile(&blocks()).free.is_separated());
    assert!(!compile(&letters()[0]).free.is_separated());
    let mut spec = blocks();
    spec.lexemes[3].pattern = Some("[a-e ]+".into());
    let refused = Language::compile(&spec, None).expect_err("names swallow the blanks").to_string();
    assert!(refused.contains("layout needs a blank that ends every lexeme"), "{refused}");
}

#[test]
fn a_language_is_even_if_all_contexts_of_a_symbol_allow_the_same() {
    for spec in [sums(), blocks()] {
        assert!(compile(&spec).follow.is_even());
    }
    // After an item that ends its line a newline cannot follow; after one that ends the file's last line it could not.
    let mut spec = blocks();
    let rules = ["file -> item NEWLINE | item", "item -> NAME | IF COLON block", "block -> NEWLINE INDENT file DEDENT"];
    spec.rules = define(&[], &rules).rules;
    assert!(!compile(&spec).follow.is_even());
}

#[test]
fn what_follows_a_symbol_is_where_the_middle_can_go_on() {
    let language = compile(&blocks());
    let after = |name: &str| language.follow.after(symbol(&language.grammar, name));
    assert_eq!(after("line"), bit(LINE));
    assert_eq!(after("block"), bit(LINE));
    assert_eq!(after("COLON"), bit(MIDDLE), "a newline");
    assert_eq!(after("NEWLINE"), bit(LINE));
    assert!(language.follow.is_open_ended(), "a file can always be followed by another line");
    assert!(!compile(&sums()).follow.is_open_ended());
}

#[test]
fn a_shape_is_met_by_what_its_expression_matches() {
    for pattern in ["a*b", "(ab|ba)+", "a{2,3}(b|c)?", "[^a]*", "", "é*a?", "a.b"] {
        let shape = Shape::regex(pattern).expect("a shape");
        let config = dense::Config::new().match_kind(MatchKind::All).start_kind(StartKind::Anchored);
        let twin = dense::Builder::new().configure(config).build(pattern).expect("a pattern");
        let matches = |text: &[u8]| {
            let found = twin.try_search_fwd(&Input::new(text).anchored(Anchored::Yes)).expect("a plain search");
            found.is_some_and(|found| found.offset() == text.len())
        };
        let texts: Vec<Vec<u8>> = texts(b"abc\n\xc3\xa9", 4);
        for text in &texts {
            let end = text.iter().try_fold(shape.first(), |state, &byte| shape.step(state, byte));
            assert_eq!(end.is_some_and(|end| shape.accepts(end)), matches(text), "{pattern} {text:?}");
            let whole = std::str::from_utf8(text).is_ok();
            if let Some(end) = end.filter(|_| whole) {
                let place = shape.place(end).expect("a character ends here");
                assert_eq!(shape.boundaries()[place], end);
            }
        }
    }
}

#[test]
fn a_shape_of_lines_counts_their_breaks() {
    for most in 1..=3 {
        let shape = Shape::lines(most).expect("a shape");
        for text in texts(b"a\n\r", 5) {
            let breaks = text.iter().filter(|&&byte| byte == b'\n').count();
            let end = text.iter().try_fold(shape.first(), |state, &byte| shape.step(state, byte));
            assert_eq!(end.is_some_and(|end| shape.accepts(end)), breaks < most && !text.contains(&b'\r'), "{text:?}");
        }
    }
    assert!(Shape::lines(0).is_err() && Shape::lines(1_000).is_err());
    assert!(Shape::regex("a(").is_err() && Shape::regex("[a&&b]").is_err(), "no expression, and one without any text");
}

#[test]
fn a_text_that_is_of_no_use_is_refused_by_its_key() {
    let comment = |lexeme: &str, prefix: &str, suffix: Option<&str>| CommentSpec {
        lexeme: lexeme.into(),
        prefix: prefix.into(),
        suffix: suffix.map(Into::into),
    };
    type Change = Box<dyn Fn(&mut LanguageSpec)>;
    let layout = |change: fn(&mut crate::spec::LayoutSpec)| -> Change {
        Box::new(move |spec| change(spec.layout.as_mut().expect("a layout")))
    };
    let cases: Vec<(&str, Change)> = vec![
        ("placeholder", Box::new(|spec| spec.placeholder = Some("a a".into()))),
        ("quotes[1]", Box::new(|spec| spec.quotes = vec!["a".into(), ":".into()])),
        ("operators", Box::new(|spec| spec.operators = "+é".into())),
        ("openings[0]", Box::new(|spec| spec.openings = vec![String::new()])),
        ("layout.block_opener", layout(|layout| layout.block_opener = Some("then".into()))),
        ("layout.step", layout(|layout| layout.step = 0)),
        ("comments[0].lexeme", Box::new(move |spec| spec.comments = vec![comment("NONE", "#", None)])),
        ("comments[0].lexeme", Box::new(move |spec| spec.comments = vec![comment("NAME", "a", None)])),
        ("comments[0].prefix", Box::new(move |spec| spec.comments = vec![comment("_COMMENT", ":", None)])),
        ("comments[0].suffix", Box::new(move |spec| spec.comments = vec![comment("_COMMENT", "#", Some("\n"))])),
    ];
    let mut plain = blocks();
    plain.strings = vec!["NAME".into()];
    plain.placeholder = Some("a".into());
    plain.comments = vec![comment("_COMMENT", "#", Some("a"))];
    Definition::compile(&plain, None).expect("a definition");
    for (key, change) in cases {
        let mut spec = plain.clone();
        change(&mut spec);
        let message = Definition::compile(&spec, None).expect_err(key).to_string();
        assert!(message.contains(&format!("small: {key}: ")), "{key}: {message}");
    }
}

#[test]
fn brackets_are_known_by_their_texts() {
    let language = compile(&sums());
    let spelling = &language.spelling;
    let (kind, length) = spelling.opens(b"(a").expect("it opens");
    assert_eq!((length, spelling.closer(kind)), (1, &b")"[..]));
    assert_eq!(spelling.closes(b")+"), Some((kind, 1)));
    assert_eq!((spelling.opens(b"a"), spelling.closes(b"(")), (None, None));
    assert_eq!(spelling.opened_by(b"a+("), kind);
    assert_eq!(spelling.closers().collect::<Vec<&[u8]>>(), [b")"]);
    assert!(spelling.ends_open(b"a(") && !spelling.ends_open(b"(") && !spelling.ends_open(b"a)"));
}

#[test]
fn strings_are_what_is_read_in_modes_without_code() {
    let language = compile(&strings());
    let is_string = |name: &str| {
        let of = |accept: &crate::ids::AcceptId| {
            language.lexer.lexemes(*accept).iter().any(|&lexeme| language.grammar.name(lexeme.into()) == name)
        };
        language.is_string(language.lexer.accept_sets().find(of).expect("an accept set"))
    };
    assert_eq!(
        ["NAME", "START", "TEXT", "FIELD", "CLOSE", "END"].map(is_string),
        [false, true, true, true, true, true]
    );
}

#[test]
fn the_fingerprint_is_that_of_the_definition() {
    let spec = sums();
    assert_eq!(compile(&spec).fingerprint, compile(&spec).fingerprint);
    let mut other = spec.clone();
    other.name = "other".into();
    assert_ne!(compile(&spec).fingerprint, compile(&other).fingerprint);
    let twin = Twin::new(spec);
    assert_eq!(twin.language.mode_count(), 1);
}
