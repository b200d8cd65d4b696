//! The right context by itself: its chart, and its columns.

use crate::chart::predict::Predictions;
use crate::engine::verdicts::Engine;
use crate::grammar::rules::Rules;
use crate::ids::{DotId, NodeId, SourceId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::{Cost, INFINITE};
use crate::lexing::layout::Column;
use crate::right::columns::{Classes, Measure};
use crate::right::least::{FreeItem, Least, Pending};
use crate::right::queries::Right;
use crate::spec::LanguageSpec;
use crate::test_languages::{
    Random, blocks, compile, define, derives, earley, letters, lists, opened, slashes, spelled, sums, symbol, texts,
};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Offset of a node in R; the length of R for the end of the file.
fn position(right: &Right, node: NodeId) -> usize {
    right.place(node).position().map_or(right.text().len(), |position| position as usize)
}

/// Completions at a node: the nonterminal, the node at which it began, the node itself.
fn begun_at(right: &Right, nonterminals: &[SymbolId], node: NodeId) -> Vec<(SymbolId, NodeId, NodeId)> {
    let of = |&symbol: &SymbolId| {
        let mut found = Vec::new();
        right.begun(symbol, &[node], &mut found);
        found.into_iter().map(move |begun| (symbol, begun, node))
    };
    nonterminals.iter().flat_map(of).collect()
}

/// The nonterminals that some text before R leads to at a position of R: all predicted ones, and those awaited by rules
/// that began in that text.
fn predicted(rules: &Rules, right: &[u8], at: usize, before: &[Vec<u8>]) -> (BTreeSet<SymbolId>, BTreeSet<SymbolId>) {
    let mut found: BTreeSet<SymbolId> = (at == 0).then_some(rules.start).into_iter().collect();
    let mut asked = BTreeSet::new();
    for before in before {
        let text = [before.as_slice(), &right[..at]].concat();
        let sets = earley(rules, rules.start, &spelled(&text));
        let items = &sets[text.len()];
        found.extend(items.iter().map(|item| rules.next(item.0)));
        asked.extend(items.iter().filter(|item| item.1 < before.len()).map(|item| rules.next(item.0)));
    }
    (found, asked)
}

/// The chart keeps all that a rule that began before R can ask for, and everything where the cursor may fall. Its other
/// entries are true as well.
#[test]
fn the_chart_finds_all_derivations_of_parts_of_r() {
    let (few, many) = (texts(b"abc", 3), texts(b"abc", 5));
    let (mut asked_for, mut left_out) = (0, 0);
    let specs = letters().into_iter().map(|spec| (spec, &few)).chain(lists().into_iter().map(|spec| (spec, &many)));
    for (spec, before) in specs {
        let language = compile(&spec);
        let grammar = &language.grammar;
        let nonterminals: Vec<SymbolId> =
            (grammar.lexeme_count()..grammar.symbol_count()).map(SymbolId::from_index).collect();
        for text in texts(b"abc", 4) {
            let right = Right::open(&language, &mut Predictions::default(), &text);
            let nodes = || (0..right.node_count()).map(NodeId::from_index);
            let found: BTreeSet<(SymbolId, usize, usize)> = nodes()
                .flat_map(|node| begun_at(&right, &nonterminals, node))
                .map(|(symbol, begun, node)| (symbol, position(&right, begun), position(&right, node)))
                .collect();
            let (mut wanted, mut possible) = (BTreeSet::new(), BTreeSet::new());
            for begin in 0..text.len() {
                let (predicted, asked) = predicted(grammar, &text, begin, before);
                for end in begin + 1..=text.len() {
                    let part = spelled(&text[begin..end]);
                    let derived = nonterminals.iter().filter(|&&symbol| derives(grammar, symbol, &part));
                    for &symbol in derived.filter(|symbol| predicted.contains(symbol)) {
                        possible.insert((symbol, begin, end));
                        if begin == 0 || asked.contains(&symbol) {
                            wanted.insert((symbol, begin, end));
                        }
                    }
                }
            }
            let text = String::from_utf8_lossy(&text);
            assert!(found.is_superset(&wanted), "{text:?} of {spec:?}: {found:?} but {wanted:?}");
            assert!(found.is_subset(&possible), "{text:?} of {spec:?}: {found:?} but {possible:?}");
            asked_for += wanted.len();
            left_out += possible.len() - found.len();
        }
    }
    assert!(asked_for > 1_000 && left_out > 100, "{asked_for} were asked for, {left_out} left out");
}

#[test]
fn a_rule_begun_in_the_middle_costs_its_shortest_prefix() {
    let before = texts(b"abc", 4);
    for spec in letters() {
        let language = compile(&spec);
        let grammar = &language.grammar;
        for text in texts(b"abc", 2).iter().filter(|text| !text.is_empty()) {
            let right = Right::open(&language, &mut Predictions::default(), text);
            let mut found: BTreeMap<(SymbolId, usize), Cost> = BTreeMap::new();
            for node in (0..right.node_count()).map(NodeId::from_index) {
                for symbol in (grammar.lexeme_count()..grammar.symbol_count()).map(SymbolId::from_index) {
                    if let Some(cost) = right.begun_free(symbol, node).map(|(_, cost)| cost).min() {
                        found.insert((symbol, position(&right, node)), cost);
                    }
                }
            }
            for symbol in (grammar.lexeme_count()..grammar.symbol_count()).map(SymbolId::from_index) {
                for end in 1..=text.len() {
                    let derived = |before: &&Vec<u8>| {
                        derives(grammar, symbol, &spelled(&[before.as_slice(), &text[..end]].concat()))
                    };
                    let least = before.iter().skip(1).find(derived).map(|before| before.len() as Cost);
                    match found.get(&(symbol, end)) {
                        // Nothing of R was read before it, and only nullable parts of its rule were passed in the middle.
                        Some(0) => assert!(derived(&&Vec::new()), "{} {end} {text:?}", grammar.name(symbol)),
                        Some(&cost) => {
                            assert_eq!(least.unwrap_or(cost.max(5)), cost, "{} {text:?}", grammar.name(symbol))
                        }
                        None => assert_eq!(least, None, "{} {end} {text:?} of {spec:?}", grammar.name(symbol)),
                    }
                }
            }
        }
    }
}

/// A reproducible stream of pseudo-random numbers.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % below
    }
}

/// Compare R with one of which every set was computed. Return the number of sets found again, and of all sets.
fn compare_with_plain(language: &Arc<Language>, text: &str) -> (usize, usize) {
    let right = Right::open(language, &mut Predictions::default(), text.as_bytes());
    let plain = Right::open_plainly(language, &mut Predictions::default(), text.as_bytes());
    assert_eq!((right.node_count(), plain.found()), (plain.node_count(), 0), "{text:?}");
    for node in (0..right.node_count()).map(NodeId::from_index) {
        assert_eq!(right.place(node), plain.place(node), "{text:?}");
        assert_eq!(right.stands(node), plain.stands(node), "{:?} in {text:?}", right.place(node));
        let edges = [&right, &plain].map(|right| right.incoming(node).collect::<Vec<_>>());
        assert_eq!(edges[0], edges[1], "{text:?}");
    }
    (right.found(), right.node_count())
}

/// The costs of readings that drift apart exceed the gap, and several groups arise. Found sets get the right offsets.
#[test]
fn memoised_costs_equal_computed_ones_when_they_drift_apart() {
    let python = serde_json::from_str(include_str!("../../tests/languages/python.json")).expect("a definition");
    let language = compile(&python);
    let mut found = 0;
    let units = [
        "a:b,",
        "b:X[Y],",
        ":",
        "a:",
        "lambda a:b,",
        "a:b,c,",
        "}:",
        "]:",
        ")]}",
        "}'",
        "a if b else c:",
        "x:y=z,",
        "}\"a:{",
        "a:\n",
    ];
    for unit in units {
        for (begin, end) in [("", ""), (":", "}\n"), ("b,", "]\n"), ("'", "x\n")] {
            found += compare_with_plain(&language, &format!("{begin}{}{end}", unit.repeat(150))).0;
        }
    }
    assert!(found > 20_000, "{found} sets were found");
}

/// Sets that are found stand for those that would be computed: texts that repeat pieces, and pieces of pieces.
#[test]
fn memoised_sets_equal_computed_ones() {
    let python = serde_json::from_str(include_str!("../../tests/languages/python.json")).expect("a definition");
    let pieces: Vec<&str> = "1,|a:b,|b:X[Y],|2**|a if b else |(|)|[|]|{|}|lambda a=1:|.a|()|\"a\"|x=1;|*a,|a=b,|f'{a}'|f'{|}'|for x in y |if c |and \
        |not |\n|    |#c\n|x = 1\n|if a:\n    b\n|elif b:\n  c\n|@a\n|\\\n|a<|await |yield |{a:b}|**b,|\t|\n\t|if a:\n\tb\n|\"\"\"|'|try:\n  \
        a\nfinally:\n  b\n|case a:\n  b\n|match x:\n|x,|x|+|+[x,"
        .split('|')
        .collect();
    let letters: Vec<&str> = vec!["a", "b", "c", "ab", "bca"];
    let mut all = vec![(compile(&python), pieces, 250)];
    all.extend(self::letters().iter().chain(&lists()).map(|spec| (compile(spec), letters.clone(), 8)));
    let (mut found, mut nodes) = (0, 0);
    for (language, pieces, count) in all {
        for seed in 0..count {
            let mut number = numbers(seed + 1);
            let mut text = String::new();
            for _ in 0..=number(5) {
                let unit: String = (0..=number(3)).map(|_| pieces[number(pieces.len())]).collect();
                text += &unit.repeat(1 + number(14));
            }
            let (again, all) = compare_with_plain(&language, &text);
            found += again;
            nodes += all;
        }
    }
    assert!(found > nodes / 5, "{found} of {nodes} sets were found");
}

/// The chart grows linearly with R, and has no more parts or lists. The lists that begin at every comma or colon are
/// one, drifting costs do not split parts, and chains of completions are not spelled out.
#[test]
fn the_chart_grows_linearly_with_r() {
    let spec = serde_json::from_str(include_str!("../../tests/languages/python.json")).expect("a definition");
    let language = compile(&spec);
    let open = |unit: &str, count: usize, end: &str| {
        language.parts.forget();
        Right::open(&language, &mut Predictions::default(), format!("{}{end}", unit.repeat(count)).as_bytes())
    };
    let units = [
        ("a:b,", "}\n"),
        ("b:X[Y],", "):pass\n"),
        ("1,", "]\n"),
        ("a=b,", ")\n"),
        ("2**", "2\n"),
        ("a if b else ", "c\n"),
        ("lambda a=1:", "b\n"),
        (".a", "\n"),
        ("()", "\n"),
        ("for b in c ", "]\n"),
        ("a<", "b\n"),
        ("{a}", "'\n"),
        ("x = f(a, b)\n", ""),
        ("if a:\n    b\n", ""),
    ];
    for (unit, end) in units {
        let [one, two] = [200, 400].map(|count| open(unit, count, end));
        let (few, many) = (one.entries(), two.entries());
        assert!(few > 200 && many < 2 * few + few / 20, "{unit:?}: {few} entries, of twice as much {many}");
        let (few, many) = (one.part_count(), two.part_count());
        assert!(many <= few + 2, "{unit:?}: {few} parts, of twice as much {many}");
    }
}

#[test]
fn edges_lead_to_later_nodes_by_the_symbols_of_r() {
    for spec in letters() {
        let language = compile(&spec);
        for text in texts(b"abc", 4) {
            let right = Right::open(&language, &mut Predictions::default(), &text);
            for node in (0..right.node_count()).map(NodeId::from_index) {
                for (symbol, from) in right.incoming(node) {
                    let (begin, end) = (position(&right, from), position(&right, node));
                    assert_eq!(begin + 1, end, "symbols have one byte");
                    assert_eq!(spelled(&text[begin..end]), [[symbol]]);
                }
            }
        }
    }
}

#[test]
fn a_parse_reaches_the_end_of_r_iff_a_middle_leads_to_it() {
    let before = texts(b"abc", 3);
    for spec in letters() {
        let language = compile(&spec);
        let grammar = &language.grammar;
        for text in texts(b"abc", 3) {
            let right = Right::open(&language, &mut Predictions::default(), &text);
            let viable = |before: &Vec<u8>| {
                let text = [before.as_slice(), &text].concat();
                let sets = earley(grammar, grammar.start, &spelled(&text));
                !sets[text.len()].is_empty()
            };
            assert_eq!(right.end().is_some(), before.iter().any(viable), "{text:?} of {spec:?}");
        }
    }
    let language = compile(&sums());
    let end = |text: &[u8]| Right::open(&language, &mut Predictions::default(), text).end().is_some();
    assert!(end(b")+(a)") && end(b"a") && end(b"") && end(b"))"));
    assert!(!end(b"+)") && !end(b"$") && !end(b"a(+"));
}

#[test]
fn r_closes_the_brackets_that_it_does_not_open() {
    let mut spec = blocks();
    let brackets =
        define(&["OPEN (", "CLOSE )"], &["line -> NAME OPEN inner CLOSE NEWLINE", "inner -> NAME | OPEN inner CLOSE"]);
    spec.lexemes.extend(brackets.lexemes);
    spec.rules.extend(brackets.rules);
    spec.brackets = vec![("OPEN".into(), "CLOSE".into())];
    let language = compile(&spec);
    let closed = |text: &[u8]| Right::open(&language, &mut Predictions::default(), text).first_depth();
    assert_eq!([closed(b"a\n"), closed(b")\n"), closed(b"(a))\na(a)\n")], [Some(0), Some(1), Some(1)]);
    let right = Right::open(&language, &mut Predictions::default(), b"(a)) )");
    assert_eq!(right.first_depth(), Some(2));
    let closers = right.closers().expect("R begins with a symbol");
    assert_eq!(closers, [(3, &b")"[..]), (5, &b")"[..])]);
}

#[test]
fn columns_are_classed_by_width_except_lines_of_r() {
    let spaces = |wide| Column { wide, narrow: wide };
    let tabs = Column { wide: 8, narrow: 1 };
    let text = b"a\n  a\n        a\n";
    let classes = Classes::of(text, Measure::Spaces);
    for column in [0, 2, 8].map(spaces) {
        assert_eq!(classes.class(column), column, "a line of R");
    }
    assert_eq!(classes.class(Column { wide: 16, narrow: 2 }), spaces(16), "no line of R is as wide");
    let other = classes.class(tabs);
    assert!(other != spaces(8) && other.wide == 8);
    assert_eq!(other, classes.class(Column { wide: 8, narrow: 5 }));
    assert_eq!(classes.compare(other, spaces(8)), None, "tabs and spaces disagree");
    assert_eq!(classes.compare(other, spaces(2)), Some(Ordering::Greater));
    assert_eq!(classes.compare(spaces(2), spaces(8)), Some(Ordering::Less));
    assert_eq!(classes.below(spaces(2)), [1, 0].map(spaces));
    assert_eq!(classes.between(spaces(0), spaces(3)), [2, 1].map(spaces));
    assert_eq!(classes.between(spaces(7), spaces(9)), [spaces(8), other]);
    let each = Classes::of(text, Measure::Each);
    assert_eq!(each.class(tabs), tabs);
    assert_eq!(each.below(spaces(2)).into_iter().collect::<BTreeSet<Column>>(), BTreeSet::from([spaces(0), spaces(1)]));
    let mut classes = classes;
    classes.see(spaces(8));
    assert!(!classes.surprised);
    classes.see(tabs);
    assert!(classes.surprised, "a line of tabs was not foreseen");
}

#[test]
fn a_cut_indentation_continues_from_the_middles_column() {
    let language = compile(&blocks());
    let right = Right::open(&language, &mut Predictions::default(), b"  a\nb\n");
    let spaces = |wide| Column { wide, narrow: wide };
    assert_eq!(right.column_through(0, spaces(3), None), Some((2, spaces(5))));
    let cut = right.line_start(0, false).expect("a line");
    assert_eq!((cut.position, cut.column), (2, None));
    let begun = right.line_start(0, true).expect("a line");
    assert_eq!((begun.position, begun.column), (2, Some(spaces(2))));
}

#[test]
fn closers_are_those_of_the_parse_where_modes_are_united() {
    let language = compile(&slashes());
    let cases: [(&str, Option<&[usize]>); 9] = [
        ("", Some(&[])),
        (" a) / b);", Some(&[2, 7])),
        ("(a)/(b);", Some(&[])),
        ("/)/);", Some(&[3])),
        ("/a)/b;", Some(&[2])),
        ("`)`);", Some(&[3])),
        ("`a{b}(`);a;", Some(&[7])),
        ("a)}b)`);", Some(&[1, 6])),
        ("/ /;", None),
    ];
    for (text, expected) in cases {
        let right = Right::open(&language, &mut Predictions::default(), text.as_bytes());
        let closers = right.closers();
        let places = closers.as_ref().map(|found| found.iter().map(|closer| closer.0).collect::<Vec<usize>>());
        assert_eq!(places.as_deref(), expected, "{text:?}");
        assert!(closers.iter().flatten().all(|closer| closer.1 == b")"), "{text:?}");
        let count = expected.map(|places| u32::try_from(places.len()).expect("few"));
        assert_eq!((right.first_depth(), right.unopened(0)), (count, count), "{text:?}");
    }
    let right = Right::open(&language, &mut Predictions::default(), b"a)/(b));");
    assert_eq!([0, 1, 2, 3, 4].map(|at| right.unopened(at)), [2, 2, 1, 1, 2].map(Some));
}

/// Costs lowered and pending items beside a map and a sorted list, in several closures one after another.
#[test]
fn least_costs_and_their_order_equal_those_of_a_map() {
    let mut number = numbers(5);
    for free_states in [1, 3, 9] {
        let (mut least, mut pending) = (Least::default(), Pending::default());
        for _ in 0..30 {
            least.begin(40, free_states);
            pending.begin();
            let mut map: BTreeMap<(DotId, SourceId), Cost> = BTreeMap::new();
            let mut waiting: Vec<FreeItem> = Vec::new();
            let mut popped = 0;
            for _ in 0..200 {
                if number(3) > 0 {
                    let (dot, from) = (DotId::from_index(number(40)), SourceId::from_index(number(12)));
                    let cost = popped + [0, 1, 5, 700][number(4)] * number(3) as Cost;
                    let known = map.get(&(dot, from)).copied().unwrap_or(INFINITE);
                    assert_eq!((least.get(dot, from), least.lower(dot, from, cost)), (known, cost < known));
                    if cost < known {
                        map.insert((dot, from), cost);
                        pending.push((dot, from, cost));
                        waiting.push((dot, from, cost));
                    }
                } else if let Some(item) = pending.pop() {
                    let cheapest = waiting.iter().map(|other| other.2).min();
                    assert!(item.2 >= 256 && cheapest >= Some(256) || cheapest == Some(item.2), "{item:?}");
                    waiting.remove(waiting.iter().position(|other| *other == item).expect("a pushed item"));
                    popped = item.2;
                }
            }
            while let Some(item) = pending.pop() {
                waiting.remove(waiting.iter().position(|other| *other == item).expect("a pushed item"));
            }
            assert!(waiting.is_empty());
            assert!(map.iter().all(|(&(dot, from), &cost)| least.get(dot, from) == cost));
        }
    }
}

/// Labels, and conditional expressions of the middle that may take any colon of R.
fn labels() -> LanguageSpec {
    define(
        &["NAME /[ab]/", "CASE !", "ASK ?", "COLON :"],
        &[
            "file -> statement | CASE expression COLON statement",
            "statement -> expression | NAME COLON statement",
            "expression -> NAME | NAME ASK expression COLON expression",
        ],
    )
}

#[test]
fn labels_end_no_statement_where_a_colon_follows() {
    let language = compile(&labels());
    let completions = |count: usize| {
        let right = Right::open(&language, &mut Predictions::default(), "a:".repeat(count).as_bytes());
        let nonterminals = language.grammar.lexeme_count()..language.grammar.symbol_count();
        let nonterminals: Vec<SymbolId> = nonterminals.map(SymbolId::from_index).collect();
        let nodes = (0..right.node_count()).map(NodeId::from_index);
        nodes.map(|node| begun_at(&right, &nonterminals, node).len()).sum::<usize>()
    };
    let (some, more) = (completions(100), completions(300));
    assert!(some > 100 && more < 4 * some, "{some} and {more} completions");
}

#[test]
fn texts_with_many_completions_have_the_verdicts_of_the_grammar() {
    let language = compile(&labels());
    let grammar = &language.grammar;
    let lexeme = |byte: u8| match byte {
        b'!' => symbol(grammar, "CASE"),
        b'?' => symbol(grammar, "ASK"),
        b':' => symbol(grammar, "COLON"),
        _ => symbol(grammar, "NAME"),
    };
    let mut random = Random::new(13);
    let (mut taken, mut refused) = (0, 0);
    for round in 0..600 {
        let mut text = if random.below(2) == 0 { b"!".to_vec() } else { Vec::new() };
        let mut asked = 0;
        for _ in 0..30 + random.below(30) {
            text.push(b"ab"[random.below(2)]);
            let asks = random.below(3) == 0 && (asked > 0 || round % 2 == 0);
            asked += usize::from(asks);
            text.push(if asks { b'?' } else { b':' });
        }
        text.push(b'a');
        let at = random.below(text.len());
        let mut engine = Engine::open(&language, &text[at..]);
        let branches = opened(&mut engine, &text[..at]);
        let found = branches.iter().any(|branch| engine.complete(branch));
        let symbols: Vec<Vec<SymbolId>> = text.iter().map(|byte| vec![lexeme(*byte)]).collect();
        assert_eq!(found, derives(grammar, grammar.start, &symbols), "{at} of {text:?}");
        if found { taken += 1 } else { refused += 1 }
    }
    assert!(taken > 50 && refused > 50, "{taken} and {refused}");
}
