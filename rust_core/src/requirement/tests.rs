//! Requirements of R on the parse stack, compared with all short middles.

use crate::chart::left::{FIRST_SET, NO_SET, Read};
use crate::chart::texts::PLAIN;
use crate::engine::verdicts::Engine;
use crate::ids::SetId;
use crate::language::compiled::Language;
use crate::language::free::INFINITE;
use crate::test_languages::{accept_of, compile, derives, letters, opened, spelled, texts};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Longest middle tried. Unit: bytes.
const LONGEST: usize = 3;

fn read(engine: &mut Engine, text: &[u8]) -> SetId {
    let language = engine.language.clone();
    text.iter().fold(FIRST_SET, |set, &byte| match set {
        NO_SET => NO_SET,
        set => engine.parser.scan(set, Read::Accepted(accept_of(&language, byte), PLAIN)),
    })
}

#[test]
fn a_stack_costs_the_shortest_middle_that_r_can_follow() {
    let middles = texts(b"abc", LONGEST);
    for spec in letters() {
        let language = compile(&spec);
        let grammar = &language.grammar;
        let between = language.free.at_boundary(&[]).expect("a boundary");
        let whole: BTreeSet<Vec<u8>> = texts(b"abc", 2 * 2 + LONGEST)
            .into_iter()
            .filter(|text| derives(grammar, grammar.start, &spelled(text)))
            .collect();
        for right in texts(b"abc", 2) {
            let mut engine = Engine::open(&language, &right);
            for left in texts(b"abc", 2) {
                let completes = |middle: &&Vec<u8>| whole.contains(&[left.as_slice(), middle, &right].concat());
                let least = middles.iter().find(completes).map(|middle| middle.len());
                let set = read(&mut engine, &left);
                if set == NO_SET {
                    assert_eq!(least, None);
                    continue;
                }
                let cost = engine.reachability(set).cost(between);
                let found = (cost != INFINITE && cost as usize <= LONGEST).then_some(cost as usize);
                assert_eq!(found, least, "{left:?} {right:?} of {spec:?}");
            }
        }
    }
}

#[test]
fn a_stack_reaches_the_nodes_from_which_r_ends_its_file() {
    for spec in letters() {
        let language = compile(&spec);
        let grammar = &language.grammar;
        for right in texts(b"abc", 3) {
            let mut engine = Engine::open(&language, &right);
            for left in texts(b"abc", 3) {
                let set = read(&mut engine, &left);
                if set == NO_SET {
                    continue;
                }
                let modes = engine.parser.modes_of(set);
                let nodes = engine.right.nodes_at(0, modes);
                let (solver, context) = engine.parts();
                let targets: Vec<usize> = nodes.iter().filter_map(|&node| solver.requirements.target(node)).collect();
                let reaches = solver.reaches(context, set, &targets);
                let reachability = solver.reachability(context, set);
                assert_eq!(reaches, targets.iter().any(|&target| reachability.reaches(target)));
                let whole = derives(grammar, grammar.start, &spelled(&[left.as_slice(), &right].concat()));
                assert_eq!(reaches, whole, "{left:?} {right:?} of {spec:?}");
            }
        }
    }
}

#[test]
fn equal_demands_have_one_requirement() {
    // The stacks after `a`, `aa`, … differ in nothing that R can see.
    let language = compile(&letters()[0]);
    let mut engine = Engine::open(&language, b"a");
    let sets = [&b"b"[..], b"ba", b"baa"].map(|text| read(&mut engine, text));
    let reachabilities = sets.map(|set| engine.reachability(set));
    let before = engine.sizes();
    assert_eq!(sets.map(|set| *engine.reachability(set) == *reachabilities[0]), [true; 3]);
    assert_eq!(engine.sizes(), before, "asking again makes nothing");
}

/// Number of unions of requirements that are computed for a middle between two texts.
fn united(language: &Arc<Language>, left: &str, right: &str) -> usize {
    let mut engine = Engine::open(language, right.as_bytes());
    let branches = opened(&mut engine, left.as_bytes());
    assert!(!branches.is_empty(), "{left:?} {right:?}");
    engine.parts().0.requirements.united
}

#[test]
fn equal_unions_are_computed_once() {
    let spec = serde_json::from_str(include_str!("../../tests/languages/python.json")).expect("a definition");
    let language = compile(&spec);
    let [few, many] = [50, 100].map(|count| {
        let clauses = "for x in x if x ".repeat(count);
        united(&language, &format!("[x {clauses}"), &format!("{clauses}]\n"))
    });
    assert!(few > 0 && many <= few + 2, "{few} unions, {many} for twice as much");
}
