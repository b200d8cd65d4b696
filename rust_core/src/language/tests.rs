//! Language relations beyond lexer and grammar: costs of a free middle, shapes, and spelling.

use crate::ids::{AcceptId, DotId, FreeId, ShapeId, StateId, SymbolId};
use crate::language::compiled::Language;
use crate::language::definition::Definition;
use crate::language::follow::{FileEnd, bit};
use crate::language::free::{INFINITE, LINE, MIDDLE};
use crate::language::shape::Shape;
use crate::lexing::lexer::DEAD;
use crate::spec::{CommentSpec, LanguageSpec};
use crate::test_languages::{Twin, blocks, compile, define, derives, letters, spelled, strings, sums, symbol, texts};
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::{Anchored, Input, MatchKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The least length of a text that some symbols derive in sequence.
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
fn costs_distinguish_the_start_of_a_line_from_its_middle() {
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
fn separators_keep_all_symbols_apart() {
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
fn follow_agrees_with_the_middles_that_go_on() {
    let language = compile(&blocks());
    let after = |name: &str| language.follow.after(symbol(&language.grammar, name));
    assert_eq!(after("line"), bit(LINE));
    assert_eq!(after("block"), bit(LINE));
    assert_eq!(after("COLON"), bit(MIDDLE), "a newline");
    assert_eq!(after("NEWLINE"), bit(LINE));
    assert_eq!(
        language.follow.file_ends(language.grammar.start),
        [FileEnd::Open, FileEnd::Open],
        "a file can always be followed by another line"
    );
    let sum = compile(&sums());
    assert!(
        sum.follow.file_ends(sum.grammar.start).iter().all(|&end| end == FileEnd::Closed),
        "a sum is whole: nothing is its next entry"
    );
}

#[test]
fn a_shape_accepts_what_its_expression_matches() {
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
    let one = Shape::lines(1).expect("a shape");
    for (text, has_shape) in
        [("a\u{2028}", false), ("\u{2029}a", false), ("\u{2027}\u{202a}€", true), ("ࢨ\u{a8}", true)]
    {
        let end = text.bytes().try_fold(one.first(), |state, byte| one.step(state, byte));
        assert_eq!(end.is_some_and(|end| one.accepts(end)), has_shape, "{text:?}");
    }
    assert!(Shape::lines(0).is_err() && Shape::lines(1_000).is_err());
    assert!(Shape::regex("a(").is_err() && Shape::regex("[a&&b]").is_err(), "no expression, and one without any text");
}

/// Some shapes: with and without line breaks, of many lines, of characters of several bytes, with no end, and of one text.
fn shapes() -> Vec<Arc<Shape>> {
    let patterns = ["(?s:.*)", ".{0,3}", "(é|ß|日){1,4}a*", "a(a|b| )*", "(a|:|\\n| ){2}", "(?s).{5}", "a", "[^a]*"];
    let regular = patterns.map(|pattern| Shape::regex(pattern).expect("a shape"));
    let lines = [1, 2, 5].map(|most| Shape::lines(most).expect("a shape"));
    regular.into_iter().chain(lines).map(Arc::new).collect()
}

fn shaped(spec: &LanguageSpec, shape: &Arc<Shape>) -> Language {
    compile(spec).shaped(shape.clone()).expect("a language with separators")
}

/// Ends of a symbol from one pair on, with their places in the shape, found by a separate walk.
fn ends_by_walk(language: &Language, shape: &Shape, from: (StateId, ShapeId)) -> Vec<(AcceptId, usize)> {
    let mut seen = BTreeSet::from([from]);
    let mut stack = vec![from];
    let mut found = BTreeSet::new();
    while let Some((state, inside)) = stack.pop() {
        if let (true, Some(place)) = (language.lexer.accepts(state), shape.place(inside)) {
            found.insert((language.lexer.accept(state), place));
        }
        for byte in 0..=255u8 {
            let target = language.lexer.step(state, byte);
            if let (true, Some(to)) = (target != DEAD, shape.step(inside, byte)) {
                stack.extend(seen.insert((target, to)).then_some((target, to)));
            }
        }
    }
    found.into_iter().collect()
}

#[test]
fn a_symbol_beside_a_shape_ends_as_a_walk_finds() {
    for spec in [sums(), blocks(), strings()] {
        for shape in shapes() {
            let language = shaped(&spec, &shape);
            let beside = language.shaped.as_ref().expect("a shape");
            for state in (1..language.lexer.state_count()).map(StateId::from_index) {
                for inside in shape.states() {
                    let twin = ends_by_walk(&language, &shape, (state, inside));
                    assert_eq!(beside.ends(state, inside), twin, "{shape:?} {state:?} {inside:?}");
                }
            }
        }
    }
}

#[test]
fn only_reachable_pairs_are_kept() {
    let pairs = |shape: Shape| {
        let shape = Arc::new(shape);
        let language = shaped(&strings(), &shape);
        let kept = language.shaped.as_ref().expect("a shape").pair_count();
        (kept, shape.states().len() * (language.lexer.state_count() - 1))
    };
    let lines = |most| pairs(Shape::lines(most).expect("a shape")).0;
    for most in 2..=5 {
        assert_eq!(lines(most + 1) - lines(most), lines(2) - lines(1), "as many for each line more");
    }
    // No symbol of the language has a letter of these: all that comes up is what L may have in progress, at the beginning.
    let (kept, every) = pairs(Shape::regex("(é|ß|日){9}").expect("a shape"));
    assert!(5 * kept < every, "{kept} of {every}");
    let counted = |count: usize| pairs(Shape::regex(&format!("(a|é){{{count}}}")).expect("a shape")).0;
    assert_eq!(counted(9) - counted(6), counted(6) - counted(3), "as many for each character more");
}

/// The least fixpoint of a grammar's rules by definition: all rules again until nothing changes.
fn closed_by_definition(language: &Language) -> Vec<Vec<Vec<u32>>> {
    let (grammar, count) = (&language.grammar, language.free.count());
    let free = |state| FreeId::from_index(state);
    let own = |symbol: usize, from, to| language.free.relation(SymbolId::from_index(symbol), free(from), free(to));
    let is_lexeme = |symbol: usize| grammar.is_lexeme(SymbolId::from_index(symbol));
    let cell = |symbol: usize, from, to| if is_lexeme(symbol) { own(symbol, from, to) } else { INFINITE };
    let row = |symbol: usize, from| (0..count).map(|to| cell(symbol, from, to)).collect();
    let matrix = |symbol: usize| (0..count).map(|from| row(symbol, from)).collect();
    let mut found: Vec<Vec<Vec<u32>>> = (0..grammar.symbol_count()).map(matrix).collect();
    let mut changed = true;
    while std::mem::replace(&mut changed, false) {
        for rule in grammar.rules() {
            for begin in 0..count {
                let mut at: Vec<u32> = (0..count).map(|state| if state == begin { 0 } else { INFINITE }).collect();
                for symbol in &rule.rhs {
                    let own = &found[symbol.index()];
                    let least = |to: usize| (0..count).map(|via| at[via].saturating_add(own[via][to])).min();
                    at = (0..count).map(|to| least(to).expect("a state")).collect();
                }
                for (cell, cost) in found[rule.lhs.index()][begin].iter_mut().zip(at) {
                    changed |= cost < *cell;
                    *cell = cost.min(*cell);
                }
            }
        }
    }
    found
}

#[test]
fn relations_of_a_shape_are_the_least_fixpoint_of_the_rules() {
    for spec in [sums(), blocks(), strings()] {
        for shape in shapes() {
            let language = shaped(&spec, &shape);
            let states: Vec<FreeId> = language.free.states().collect();
            let twin = closed_by_definition(&language);
            for (symbol, matrix) in twin.iter().enumerate() {
                for (&from, row) in states.iter().zip(matrix) {
                    for (&to, &cost) in states.iter().zip(row) {
                        let own = language.free.relation(SymbolId::from_index(symbol), from, to);
                        assert_eq!(own, cost, "{shape:?} {symbol} {from:?} {to:?}");
                    }
                }
            }
            for dot in (0..language.grammar.dot_count()).map(DotId::from_index) {
                let position = language.grammar.position(dot);
                for &from in states.iter().filter(|_| position > 0) {
                    for &to in &states {
                        let last = language.grammar.rule(dot).rhs[position - 1];
                        let before = |via: FreeId| language.free.prefix(DotId(dot.0 - 1), from, via);
                        let cost = |via: FreeId| before(via).saturating_add(language.free.relation(last, via, to));
                        let least = states.iter().map(|&via| cost(via)).min().expect("a state");
                        assert_eq!(language.free.prefix(dot, from, to), least, "{shape:?} {dot:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn long_costs_are_exact_as_well() {
    let mut rules = vec!["s20 -> s19 s19".to_string()];
    rules.extend((1..20).rev().map(|level| format!("s{level} -> s{} s{}", level - 1, level - 1)));
    rules.push("s0 -> A".into());
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let language = compile(&define(&["A a", "_BLANK / +/"], &rules));
    let cost = |level: u32| language.free.relation(symbol(&language.grammar, &format!("s{level}")), MIDDLE, MIDDLE);
    assert_eq!([14, 15, 16, 17, 20].map(cost), [14, 15, 16, 17, 20].map(|level| 1 << level));
}

#[test]
fn equal_matrices_of_a_shape_are_stored_once() {
    let letters: Vec<String> = ('a'..='z').map(|letter| format!("{} {letter}", letter.to_ascii_uppercase())).collect();
    let lexemes: Vec<&str> = letters.iter().map(String::as_str).chain(["_BLANK / +/"]).collect();
    let names: Vec<char> = ('A'..='Z').collect();
    let mut rules: Vec<String> = (0..26).map(|index| format!("s -> s r{index} | r{index}")).collect();
    let own = |index: usize| {
        let letter = |more: usize| names[(index + more) % 26];
        format!("r{index} -> {} r{index} {} {} | {}", letter(0), letter(1), letter(2), letter(3))
    };
    rules.extend((0..26).map(own));
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let shape = Arc::new(Shape::regex(".{0,9}").expect("a shape"));
    let language = shaped(&define(&lexemes, &rules), &shape);
    let classes: BTreeSet<u32> =
        (0..language.grammar.dot_count()).map(|dot| language.free.prefix_class(DotId::from_index(dot))).collect();
    assert!(language.grammar.dot_count() > 200);
    assert!(classes.len() < 10, "{}", classes.len());
}

#[test]
fn a_useless_text_is_refused_with_its_key() {
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
fn lexemes_of_modes_without_code_are_strings() {
    let language = compile(&strings());
    let is_string = |name: &str| {
        let of = |accept: &AcceptId| {
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
