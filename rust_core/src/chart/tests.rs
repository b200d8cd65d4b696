//! The left chart compared with Earley's plain algorithm.

use crate::chart::left::{FIRST_SET, LeftChart, NO_SET, Read};
use crate::chart::predict::Predictions;
use crate::chart::texts::PLAIN;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{DotId, SetId, SymbolId};
use crate::language::marks::Slots;
use crate::test_languages::{NaiveItem, Random, accept_of, compile, earley, letters, spelled, strings, texts};
use std::collections::{BTreeMap, BTreeSet};

/// Fields that distinguish sets: items in progress, as (dot, origin), and whether a whole text has been read.
type Contents = (BTreeSet<(DotId, SetId)>, bool);

#[test]
fn sets_agree_with_plain_earley() {
    for spec in letters() {
        let language = compile(&spec);
        let grammar = &language.grammar;
        let mut predictions = Predictions::default();
        let mut chart = LeftChart::new(&language, &mut predictions, Slots::default());
        let mut known: BTreeMap<Contents, SetId> = BTreeMap::new();
        for text in texts(b"abc", 6) {
            let naive = earley(grammar, grammar.start, &spelled(&text));
            let mut path = vec![FIRST_SET];
            for (at, &byte) in text.iter().enumerate() {
                let accept = accept_of(&language, byte);
                let can = chart.can_scan(&language, &predictions, path[at], accept);
                let to = chart.scan(&language, &mut predictions, path[at], Read::Accepted(accept, PLAIN));
                assert_eq!(to == NO_SET, naive[at + 1].is_empty(), "{text:?} at {at} of {spec:?}");
                assert_eq!(can, to != NO_SET, "{text:?} at {at} of {spec:?}");
                if to == NO_SET {
                    break;
                }
                path.push(to);
            }
            let at = path.len() - 1;
            let set = chart.set(path[at]);
            let unfinished = naive[at].iter().filter(|item| grammar.next(item.0) != END_OF_RULE);
            let (begun, under_way): (Vec<NaiveItem>, Vec<NaiveItem>) =
                unfinished.copied().partition(|item| item.1 == at);
            let under_way: BTreeSet<(DotId, SetId)> =
                under_way.into_iter().map(|item| (item.0, path[item.1])).collect();
            let items: BTreeSet<(DotId, SetId)> = set.items.iter().map(|item| (item.dot, item.origin)).collect();
            assert_eq!(items, under_way, "{text:?} of {spec:?}");
            assert_eq!(items.len(), set.items.len(), "an item is there twice");
            let whole = naive[at].iter().any(|&(dot, origin)| {
                origin == 0 && grammar.next(dot) == END_OF_RULE && grammar.lhs(dot) == grammar.start
            });
            assert_eq!(set.accepts, whole, "{text:?} of {spec:?}");
            let symbols = (0..grammar.symbol_count()).map(SymbolId::from_index);
            let before = |symbol: &SymbolId| !predictions.dots(grammar, set.prediction, *symbol).is_empty();
            assert!(symbols.clone().all(|symbol| predictions.has(set.prediction, symbol) == before(&symbol)));
            let lexemes = symbols.clone().filter(|&symbol| grammar.is_lexeme(symbol)).filter(before);
            assert!(predictions.lexemes(grammar, set.prediction).eq(lexemes));
            let predicted: BTreeSet<DotId> =
                symbols.flat_map(|symbol| predictions.dots(grammar, set.prediction, symbol).to_vec()).collect();
            assert_eq!(predicted, begun.into_iter().map(|item| item.0).collect(), "{text:?} of {spec:?}");
            if at > 0 {
                let id = *known.entry((items, whole)).or_insert(path[at]);
                assert_eq!(id, path[at], "a set was made twice for its items");
            }
        }
        let ids: BTreeSet<&SetId> = known.values().collect();
        assert_eq!(ids.len(), known.len(), "one set stands for different items");
    }
}

#[test]
fn waiting_items_have_the_symbol_next() {
    for spec in letters() {
        let language = compile(&spec);
        let grammar = &language.grammar;
        let mut predictions = Predictions::default();
        let mut chart = LeftChart::new(&language, &mut predictions, Slots::default());
        let mut set = FIRST_SET;
        for &byte in b"aabc" {
            let next = chart.scan(&language, &mut predictions, set, Read::Accepted(accept_of(&language, byte), PLAIN));
            if next == NO_SET {
                break;
            }
            set = next;
            for symbol in (0..grammar.symbol_count()).map(SymbolId::from_index) {
                let wanted: Vec<_> =
                    chart.set(set).items.iter().copied().filter(|item| grammar.next(item.dot) == symbol).collect();
                assert_eq!(chart.waiting(grammar, set, symbol), wanted);
            }
        }
    }
}

#[test]
fn forgotten_sets_are_made_again() {
    let mut random = Random::new(3);
    for spec in letters() {
        let language = compile(&spec);
        let mut predictions = Predictions::default();
        let mut chart = LeftChart::new(&language, &mut predictions, Slots::default());
        let mut read = |chart: &mut LeftChart, text: &[u8]| {
            text.iter().fold(FIRST_SET, |set, &byte| match set {
                NO_SET => NO_SET,
                set => chart.scan(&language, &mut predictions, set, Read::Accepted(accept_of(&language, byte), PLAIN)),
            })
        };
        for _ in 0..30 {
            let kept: Vec<u8> = (0..random.below(5)).map(|_| b"abc"[random.below(3)]).collect();
            let more: Vec<u8> = (0..random.below(5)).map(|_| b"abc"[random.below(3)]).collect();
            let before = read(&mut chart, &kept);
            let (mark, length) = (chart.mark(), chart.len());
            let text = [kept.as_slice(), &more].concat();
            let first = read(&mut chart, &text);
            let contents = (first != NO_SET).then(|| (chart.set(first).items.clone(), chart.set(first).accepts));
            chart.truncate(mark);
            assert_eq!(chart.len(), length);
            assert_eq!(read(&mut chart, &kept), before, "what was there before is kept");
            let second = read(&mut chart, &text);
            let again = (second != NO_SET).then(|| (chart.set(second).items.clone(), chart.set(second).accepts));
            assert_eq!((second, again), (first, contents), "{text:?} of {spec:?}");
        }
    }
}

#[test]
fn a_chain_finishes_the_nonterminals_that_derive_its_symbol_alone() {
    for spec in letters() {
        let language = compile(&spec);
        let grammar = &language.grammar;
        let mut predictions = Predictions::default();
        let chart = LeftChart::new(&language, &mut predictions, Slots::default());
        let prediction = chart.set(FIRST_SET).prediction;
        for byte in *b"abc" {
            let input = spelled(&[byte]);
            let naive = earley(grammar, grammar.start, &input);
            let finished: BTreeSet<SymbolId> = naive[1]
                .iter()
                .filter(|item| item.1 == 0 && grammar.next(item.0) == END_OF_RULE)
                .map(|item| grammar.lhs(item.0))
                .collect();
            let chain = predictions.chain(&language, prediction, input[0][0]).clone();
            for symbol in (grammar.lexeme_count()..grammar.symbol_count()).map(SymbolId::from_index) {
                assert_eq!(chain.finishes(grammar, symbol), finished.contains(&symbol), "{byte} of {spec:?}");
            }
            assert_eq!(chain.moves, !naive[1].is_empty());
        }
    }
}

#[test]
fn a_set_is_in_the_mode_of_its_next_lexemes() {
    let language = compile(&strings());
    let grammar = &language.grammar;
    let mut predictions = Predictions::default();
    let mut chart = LeftChart::new(&language, &mut predictions, Slots::default());
    let accept = |name: &str| {
        let holds = |accept: &crate::ids::AcceptId| {
            language.lexer.lexemes(*accept).iter().any(|&lexeme| grammar.name(lexeme.into()) == name)
        };
        language.lexer.accept_sets().find(holds).expect("an accept set")
    };
    let mut set = FIRST_SET;
    let modes = ["START", "TEXT", "FIELD", "NAME", "CLOSE", "END"].map(|name| {
        set = chart.scan(&language, &mut predictions, set, Read::Accepted(accept(name), PLAIN));
        assert_ne!(set, NO_SET, "{name}");
        chart.set(set).modes
    });
    assert_eq!(modes, [2, 2, 1, 1, 2, 1], "masks of modes");
}
