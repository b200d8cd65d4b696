//! The grammar's tables compared with all short texts that the rules derive.

use crate::bits;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::{END_OF_RULE, Rules};
use crate::ids::{DotId, ModeId, SymbolId};
use crate::lexing::lexer::mode_of;
use crate::spec::LanguageSpec;
use crate::test_languages::{blocks, define, letters, slashes, strings, sums, symbol};
use std::collections::BTreeSet;

fn grammar(spec: &LanguageSpec) -> Grammar {
    let modes = mode_of(spec).expect("modes");
    Grammar::compile(spec, &vec![true; spec.lexemes.len()], modes).expect("a grammar")
}

/// Per symbol: the sequences of lexemes up to a length that it derives, as a least fixpoint.
fn derivations(rules: &Rules, longest: usize) -> Vec<BTreeSet<Vec<SymbolId>>> {
    let lexeme = |symbol: usize| (symbol < rules.lexeme_count()).then(|| vec![SymbolId::from_index(symbol)]);
    let mut found: Vec<BTreeSet<Vec<SymbolId>>> =
        (0..rules.symbol_count()).map(|symbol| lexeme(symbol).into_iter().collect()).collect();
    loop {
        let mut grown = false;
        for rule in rules.rules() {
            for sequence in sequences(&found, &rule.rhs, longest) {
                grown |= found[rule.lhs.index()].insert(sequence);
            }
        }
        if !grown {
            return found;
        }
    }
}

fn sequences(found: &[BTreeSet<Vec<SymbolId>>], symbols: &[SymbolId], longest: usize) -> BTreeSet<Vec<SymbolId>> {
    let mut sequences: BTreeSet<Vec<SymbolId>> = std::iter::once(Vec::new()).collect();
    for symbol in symbols {
        let longer = sequences
            .iter()
            .flat_map(|begin| found[symbol.index()].iter().map(move |end| [begin.as_slice(), end.as_slice()].concat()));
        sequences = longer.filter(|sequence| sequence.len() <= longest).collect();
    }
    sequences
}

fn dots(rules: &Rules) -> impl Iterator<Item = DotId> + '_ {
    (0..rules.rules().len())
        .flat_map(move |rule| (0..=rules.rules()[rule].rhs.len()).map(move |position| rules.dot(rule, position)))
}

/// The symbols from a dot to the end of its rule.
fn rest(rules: &Rules, dot: DotId) -> &[SymbolId] {
    &rules.rule(dot).rhs[rules.position(dot)..]
}

#[test]
fn dots_know_their_rule_and_position() {
    for spec in letters() {
        let grammar = grammar(&spec);
        for (index, rule) in grammar.rules().iter().enumerate() {
            for position in 0..=rule.rhs.len() {
                let dot = grammar.dot(index, position);
                assert_eq!(grammar.next(dot), rule.rhs.get(position).copied().unwrap_or(END_OF_RULE));
                assert_eq!((grammar.lhs(dot), grammar.position(dot)), (rule.lhs, position));
            }
        }
        for symbol in (0..grammar.symbol_count()).map(SymbolId::from_index) {
            let wanted: Vec<DotId> = dots(&grammar).filter(|&dot| grammar.next(dot) == symbol).collect();
            assert_eq!(grammar.occurrences(symbol), wanted);
            let begins = |dot: &DotId| {
                grammar.rule(*dot).rhs[..grammar.position(*dot)].iter().all(|&symbol| grammar.nullable(symbol))
            };
            assert_eq!(grammar.initial(symbol), wanted.into_iter().filter(begins).collect::<Vec<DotId>>());
        }
    }
}

#[test]
fn nullable_and_initial_agree_with_derivations() {
    for spec in letters() {
        let grammar = grammar(&spec);
        let found = derivations(&grammar, 5);
        for symbol in (0..grammar.symbol_count()).map(SymbolId::from_index) {
            assert_eq!(
                grammar.nullable(symbol),
                found[symbol.index()].contains(&Vec::new()),
                "{}",
                grammar.name(symbol)
            );
        }
        for dot in dots(&grammar) {
            let rests = sequences(&found, rest(&grammar, dot), 5);
            let first: BTreeSet<usize> = rests.iter().filter_map(|rest| Some(rest.first()?.index())).collect();
            assert_eq!(bits::numbers(grammar.first(dot)).collect::<BTreeSet<usize>>(), first, "{dot:?} of {spec:?}");
        }
    }
}

#[test]
fn adjacency_agrees_with_derived_texts() {
    for spec in letters().into_iter().chain([sums()]) {
        let grammar = grammar(&spec);
        let found = derivations(&grammar, 6);
        let texts = &found[grammar.start.index()];
        let pairs: BTreeSet<(SymbolId, SymbolId)> =
            texts.iter().flat_map(|text| text.windows(2).map(|pair| (pair[0], pair[1]))).collect();
        for one in (0..grammar.lexeme_count()).map(SymbolId::from_index) {
            for other in (0..grammar.lexeme_count()).map(SymbolId::from_index) {
                let names = [grammar.name(one), grammar.name(other)];
                assert_eq!(grammar.is_adjacent(one, other), pairs.contains(&(one, other)), "{names:?} of {spec:?}");
            }
        }
    }
}

/// The followers are the least sets that hold what each place of a symbol in a rule brings.
#[test]
fn followers_agree_with_derived_texts() {
    for spec in letters().into_iter().chain([sums()]) {
        let grammar = grammar(&spec);
        let found = derivations(&grammar, 6);
        let mut wanted: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); grammar.symbol_count()];
        loop {
            let before = wanted.clone();
            for rule in grammar.rules() {
                for (place, symbol) in rule.rhs.iter().enumerate() {
                    let rests = sequences(&found, &rule.rhs[place + 1..], 5);
                    wanted[symbol.index()].extend(rests.iter().filter_map(|rest| Some(rest.first()?.index())));
                    if rests.iter().any(Vec::is_empty) {
                        let after = wanted[rule.lhs.index()].clone();
                        wanted[symbol.index()].extend(after);
                    }
                }
            }
            if wanted == before {
                break;
            }
        }
        for symbol in (0..grammar.symbol_count()).map(SymbolId::from_index) {
            let followers: BTreeSet<usize> = bits::numbers(grammar.followers(symbol)).collect();
            assert_eq!(followers, wanted[symbol.index()], "{} of {spec:?}", grammar.name(symbol));
        }
    }
}

#[test]
fn layout_is_passed_over_between_neighbours() {
    let grammar = grammar(&blocks());
    let adjacent = |one, other| grammar.is_adjacent(symbol(&grammar, one), symbol(&grammar, other));
    assert!(adjacent("NEWLINE", "NAME"), "by way of an INDENT, a DEDENT, or neither");
    assert!(adjacent("COLON", "NEWLINE") && !adjacent("COLON", "NAME"));
    assert!(!adjacent("NAME", "NAME") && !adjacent("IF", "NAME"));
    let block = grammar.rules().iter().find(|rule| rule.lhs == symbol(&grammar, "block")).expect("a block");
    assert_eq!(block.block, Some((1, 3)));
}

#[test]
fn closures_hold_all_initial_nonterminals() {
    for spec in letters() {
        let grammar = grammar(&spec);
        for from in (grammar.lexeme_count()..grammar.symbol_count()).map(SymbolId::from_index) {
            let mut wanted: BTreeSet<SymbolId> = std::iter::once(from).collect();
            loop {
                let dots = dots(&grammar).filter(|&dot| {
                    let before = &grammar.rule(dot).rhs[..grammar.position(dot)];
                    wanted.contains(&grammar.lhs(dot)) && before.iter().all(|&symbol| grammar.nullable(symbol))
                });
                let next: Vec<SymbolId> = dots.map(|dot| grammar.next(dot)).collect();
                let before = wanted.len();
                wanted.extend(next.into_iter().filter(|&next| next != END_OF_RULE && !grammar.is_lexeme(next)));
                if wanted.len() == before {
                    break;
                }
            }
            // Symbols that no rule uses predict nothing, and do not matter.
            if grammar.rules().iter().any(|rule| rule.lhs == from) {
                let closure = bits::numbers(grammar.closure(from));
                let closure: BTreeSet<SymbolId> =
                    closure.map(|index| SymbolId::from_index(index + grammar.lexeme_count())).collect();
                assert_eq!(closure, wanted, "{}", grammar.name(from));
            }
        }
    }
}

#[test]
fn rules_that_no_text_needs_are_dropped() {
    let rules = ["s -> A t | u B | A t | s", "t -> B", "u -> u A", "v -> A", "w -> C"];
    let spec = define(&["A a", "B b", "C c"], &rules);
    let kept = |producible: &[bool]| {
        let rules = Rules::compile(&spec, producible).expect("rules");
        rules.rules().iter().map(|rule| rules.name(rule.lhs).to_string()).collect::<Vec<String>>()
    };
    assert_eq!(kept(&[true; 3]), ["s", "t"], "u derives no text, v and w are never reached, s -> s says nothing");
    let none = Rules::compile(&spec, &[false, true, true]).expect_err("every text has an a");
    assert!(none.to_string().contains("no text at all derives from s"), "{none}");
}

#[test]
fn invalid_grammars_are_refused() {
    let refused = |spec: &LanguageSpec| {
        let modes = mode_of(spec).expect("modes");
        Grammar::compile(spec, &vec![true; spec.lexemes.len()], modes).expect_err("refused").to_string()
    };
    let lexemes = ["A a", "B b"];
    assert!(refused(&define(&lexemes, &["s -> A t"])).contains("t is used and never defined"));
    assert!(refused(&define(&lexemes, &["s -> A", "B -> A"])).contains("B is both lexeme and rule"));
    assert!(refused(&define(&["A a", "A b"], &["s -> A"])).contains("lexeme A is defined twice"));
    let mut spec = blocks();
    spec.rules.last_mut().expect("block").rhs.pop();
    assert!(refused(&spec).contains("a rule of block must hold one INDENT"), "{}", refused(&spec));
    let mut spec = strings();
    let parts = spec.rules.iter_mut().find(|rule| rule.lhs == "string").expect("string");
    parts.rhs.remove(0);
    let modes = mode_of(&spec).expect("modes");
    Grammar::compile(&spec, &vec![true; spec.lexemes.len()], modes).expect("without layout, any rule may end a mode");
    let layout = blocks();
    let made = ["NEWLINE", "_COMMENT", "INDENT", "DEDENT"];
    spec.lexemes.extend(layout.lexemes.into_iter().filter(|lexeme| made.contains(&&*lexeme.name)));
    spec.layout = layout.layout;
    assert!(refused(&spec).contains("ends a mode with END"), "{}", refused(&spec));
    spec.modes.push(spec.modes[0].clone());
    assert!(mode_of(&spec).expect_err("refused").to_string().contains("is in two modes"));
}

#[test]
fn modes_after_a_dot_are_those_of_its_next_lexemes() {
    let spec = strings();
    let grammar = grammar(&spec);
    assert!(grammar.has_modes());
    assert_eq!(grammar.code_modes(), 1);
    assert!(grammar.reads_code(ModeId(0)) && !grammar.reads_code(ModeId(1)));
    for (name, mode) in [("NAME", 0), ("START", 0), ("TEXT", 1), ("END", 1), ("FIELD", 1), ("CLOSE", 0)] {
        assert_eq!(grammar.mode_of(symbol(&grammar, name)), ModeId(mode), "{name}");
    }
    let away = |name: &str| grammar.leads_away(symbol(&grammar, name));
    assert!(away("START") && away("CLOSE") && !away("NAME"), "a string goes on after each of the first two");
}

/// Texts of a grammar with first lexemes: those of the rules as they are written that have one at most at their
/// beginning, and the start before all others.
#[test]
fn a_file_begins_with_its_start_or_a_first_lexeme() {
    let rules = [
        &["file -> F list | list", "list -> | list x", "x -> A | B F"][..],
        &["file -> head A | G", "head -> | F | head B | G head"],
        &["file -> x y", "x -> | y", "y -> F x A | A | x"],
        &["file -> file file | F | A", "x -> F"],
        &["file -> F A | F B file", "x -> A"],
    ];
    for written in rules {
        let mut spec = define(&["A a", "B b", "F f", "G g", "I i"], written);
        let plain = grammar(&spec);
        spec.first_lexemes = ["F", "G", "I"].map(String::from).into();
        spec.ignore = vec!["I".into()];
        let spec = spec.with_file_start();
        let begun = grammar(&spec);
        let first = [symbol(&begun, "F"), symbol(&begun, "G")];
        let mut expected: BTreeSet<Vec<SymbolId>> = BTreeSet::new();
        for text in &derivations(&plain, 4)[plain.start.index()] {
            match text.iter().rposition(|symbol| first.contains(symbol)) {
                Some(0) => _ = expected.insert(text.clone()),
                Some(_) => {}
                None => expected.extend(["{start of file}", "I"].map(|begin| {
                    let begin = spec.lexemes.iter().position(|lexeme| lexeme.name == begin).expect("a lexeme");
                    [&[SymbolId::from_index(begin)], text.as_slice()].concat()
                })),
            }
        }
        let found = &derivations(&begun, 5)[begun.start.index()];
        let short = |text: &&Vec<SymbolId>| text.len() < 5 || !first.contains(&text[0]);
        assert_eq!(found.iter().filter(short).cloned().collect::<BTreeSet<_>>(), expected, "{written:?}");
        assert!(begun.files.iter().all(|&file| file != begun.start), "{written:?}");
    }
}

#[test]
fn several_modes_are_in_force_without_layout() {
    let mut spec = slashes();
    let in_force = |spec: &LanguageSpec, names: &[&str]| {
        let grammar = grammar(spec);
        grammar.modes_in_force(names.iter().fold(0, |mask, name| mask | grammar.mode_kinds(symbol(&grammar, name))))
    };
    assert_eq!(in_force(&spec, &["NAME"]), 1);
    assert_eq!(in_force(&spec, &["DIVIDE", "NAME"]), 2, "division reads names as well");
    assert_eq!(in_force(&spec, &["DIVIDE", "REGEX", "NAME"]), 2 | 4);
    assert_eq!(in_force(&spec, &["T_END"]), 8);
    assert_eq!(in_force(&spec, &["T_END", "NAME"]), 8 | 1, "text does not read names");
    spec.modes[0].without = vec!["NAME".into()];
    assert_eq!(in_force(&spec, &["DIVIDE", "NAME"]), 2 | 1);
    assert_eq!(in_force(&spec, &["DIVIDE", "REGEX", "NAME"]), 2 | 4, "the other mode reads it");
    assert_eq!(in_force(&spec, &["DIVIDE", "END"]), 2);
    spec.modes[1].covers = false;
    assert_eq!(in_force(&spec, &["DIVIDE", "END"]), 2 | 1, "the plain way");
    assert_eq!(in_force(&spec, &["DIVIDE"]), 2);
}
