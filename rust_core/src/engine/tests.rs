//! Branches over both contexts, against all short middles of whole texts.

use crate::engine::verdicts::Engine;
use crate::language::free::INFINITE;
use crate::test_languages::{Twin, blocks, compile, opened, strings, sums, texts, words};
use std::collections::BTreeSet;

/// A middle's verdict, derived from all middles up to a length.
struct Case<'a> {
    left: &'a str,
    right: &'a str,
    /// Middles whose completeness is checked.
    middles: &'a [Vec<u8>],
    /// Number of bytes up to which viability is known from the middles that extend them.
    judged: usize,
}

fn check(twin: &mut Twin, case: &Case<'_>) {
    let &Case { left, right, middles, judged } = case;
    let completing: BTreeSet<&[u8]> = twin.completing(left, right, middles).into_iter().collect();
    let mut engine = Engine::open(&twin.language, right.as_bytes());
    let opening = opened(&mut engine, left.as_bytes());
    for unconstrained in [true, false] {
        if unconstrained {
            engine.find_unconstrained(&opening);
        } else {
            engine.tighten();
        }
        for (index, middle) in middles.iter().enumerate() {
            let mut branches = Vec::new();
            engine.advance_all(&opening, middle, &mut branches);
            let what = format!("{left:?} {:?} {right:?}", String::from_utf8_lossy(middle));
            let complete = branches.iter().any(|branch| engine.complete(branch));
            assert_eq!(complete, completing.contains(middle.as_slice()), "{what}");
            if index < judged {
                let further = completing.range(middle.as_slice()..).next();
                let viable = further.is_some_and(|further| further.starts_with(middle));
                assert_eq!(!branches.is_empty(), viable, "{what}");
                let least = completing.iter().filter(|other| other.starts_with(middle)).map(|other| other.len()).min();
                let bound = branches.iter().map(|branch| engine.bound(branch)).min().unwrap_or(INFINITE);
                if let Some(least) = least {
                    assert!(bound as usize <= least - middle.len(), "{what}: {bound} is more than {least} tells");
                }
            }
        }
    }
}

#[test]
fn verdicts_on_sums_agree_with_all_middles() {
    let mut twin = Twin::new(sums());
    let middles = texts(b"a+() ", 4);
    for (left, right) in [("", ""), ("(", ")"), ("a", "a"), ("(a+", "+a)"), ("a ", " )"), ("((", "+a"), ("a)", "")] {
        check(&mut twin, &Case { left, right, middles: &middles, judged: 6 });
    }
}

#[test]
fn verdicts_without_separators_agree_with_all_middles() {
    let mut twin = Twin::new(words());
    let middles = texts(b"ab", 7);
    for left in ["", "a", "ab", "aba", "b", "abab"] {
        for right in ["", "a", "b", "ba", "aa", "abab"] {
            check(&mut twin, &Case { left, right, middles: &middles, judged: 7 });
        }
    }
}

#[test]
fn verdicts_with_layout_agree_with_all_middles() {
    let mut twin = Twin::new(blocks());
    let pieces = ["a", "if:", "\n", " ", "\n  a\n"];
    let places: Vec<u8> = (0..5).collect();
    let spell = |text: &Vec<u8>| text.iter().flat_map(|&piece| pieces[usize::from(piece)].bytes()).collect();
    let middles: Vec<Vec<u8>> = texts(&places, 4).iter().map(spell).collect();
    for left in ["", "if:\n", "a", "if:\n a\n"] {
        for right in ["", "a\n", "\n", " a\n", "\n a\n", " a\na\n"] {
            check(&mut twin, &Case { left, right, middles: &middles, judged: 1 });
        }
    }
}

#[test]
fn an_impossible_text_has_no_branches() {
    let language = compile(&sums());
    let mut engine = Engine::open(&language, b")");
    assert!(opened(&mut engine, b"a)").is_empty());
    assert!(opened(&mut engine, b"+").is_empty());
    let opening = opened(&mut engine, b"(a");
    assert_eq!(opening.len(), 1);
    let after = |engine: &mut Engine, text: &[u8]| {
        let mut out = Vec::new();
        engine.advance_all(&opening, text, &mut out);
        out.len()
    };
    assert_eq!(["+", "+)", "(", "aa", "$"].map(|text| after(&mut engine, text.as_bytes())), [1, 0, 0, 1, 0]);
}

#[test]
fn a_branch_forks_where_a_symbol_may_have_ended_and_may_go_on() {
    let language = compile(&words());
    let mut engine = Engine::open(&language, b"");
    // `a` ended and `b` begun, or `aba` under way.
    assert_eq!(opened(&mut engine, b"a").len(), 1);
    assert_eq!(opened(&mut engine, b"ab").len(), 2);
    assert_eq!(opened(&mut engine, b"aba").len(), 1, "`aba` is the longest match");
}

#[test]
fn a_symbol_in_progress_has_a_continuation_for_each_end() {
    let language = compile(&sums());
    let mut engine = Engine::open(&language, b"a)");
    let opening = opened(&mut engine, b"(a");
    let continuations = engine.continuations_of(&opening[0]);
    let name = language.lexer.accept(opening[0].state);
    assert!(
        continuations.iter().all(|continuation| continuation.accept == Some(name)),
        "a name can end as nothing else: {continuations:?}"
    );
    let free = continuations.iter().filter(|continuation| continuation.free.is_some()).count();
    let in_right = continuations.iter().filter(|continuation| !continuation.targets.is_empty()).count();
    assert_eq!((free, in_right), (1, 1), "it ends in the middle, or goes on in R");
    assert_eq!(engine.continuations_of(&opening[0]), continuations);
}

#[test]
fn a_forgotten_branch_is_found_again() {
    let mut twin = Twin::new(sums());
    let middles = texts(b"a+()", 4);
    let completing: BTreeSet<Vec<u8>> = twin.completing("(a+", ")", &middles).into_iter().map(<[u8]>::to_vec).collect();
    let mut engine = Engine::open(&twin.language, b")");
    let opening = opened(&mut engine, b"(a+");
    let mark = engine.mark();
    let sizes = engine.sizes();
    for middle in middles.iter().chain(middles.iter().rev()) {
        let mut branches = Vec::new();
        engine.advance_all(&opening, middle, &mut branches);
        let complete = branches.iter().any(|branch| engine.complete(branch));
        assert_eq!(complete, completing.contains(middle), "{:?}", String::from_utf8_lossy(middle));
        engine.truncate(mark);
        assert_eq!(engine.sizes().0, sizes.0, "the sets made since are gone");
    }
}

#[test]
fn continued_agrees_with_the_general_step() {
    let language = compile(&strings());
    let mut engine = Engine::open(&language, b"");
    let mut continued = 0;
    for text in texts(b"a<{}> ", 5) {
        for branch in opened(&mut engine, &text) {
            for byte in *b"ab<> " {
                let mut stepped = Vec::new();
                engine.parser.step_all(&[branch], byte, &mut stepped);
                if let Some(after) = engine.parser.continued(&branch, byte) {
                    assert_eq!(stepped, [after], "{text:?} {byte}");
                    continued += 1;
                }
            }
        }
    }
    assert!(continued > 20, "{continued} bytes only go on with their symbols");
}

#[test]
fn brackets_and_blocks_are_counted_up_to_their_limits() {
    let mut spec = sums();
    spec.limits.brackets = 2;
    let language = compile(&spec);
    let mut engine = Engine::open(&language, b"");
    assert_eq!(opened(&mut engine, b"((").first().map(|branch| branch.depth), Some(1), "the second one is in progress");
    assert!(!opened(&mut engine, b"((a))").is_empty());
    assert!(opened(&mut engine, b"(((a)))").is_empty() && opened(&mut engine, b"(((").is_empty());
    let mut spec = blocks();
    spec.limits.blocks = 1;
    let mut engine = Engine::open(&compile(&spec), b"");
    assert!(!opened(&mut engine, b"if:\n a\n").is_empty());
    assert!(opened(&mut engine, b"if:\n if:\n  a\n").is_empty());
}
