//! Searches for texts that complete a middle, against all short ones.

use crate::completing::landing::{Search, land};
use crate::completing::plan::{Outcome, Plan, completes};
use crate::completing::short::short_completion;
use crate::completing::shortest::shortest_completion;
use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::error::ErrorKind;
use crate::ids::TokenId;
use crate::language::compiled::Language;
use crate::language::shape::Shape;
use crate::masking::vocabulary::Vocabulary;
use crate::test_languages::{Random, Twin, blocks, sums, texts, words};
use std::sync::Arc;

const SEARCH: usize = 10_000;

fn open(twin: &Twin, left: &str, right: &str) -> (Engine, Vec<Branch>) {
    open_in(&twin.language, left, right)
}

fn open_in(language: &Arc<Language>, left: &str, right: &str) -> (Engine, Vec<Branch>) {
    let mut engine = Engine::open(language, right.as_bytes());
    let mut branches = vec![engine.parser.first_branch()];
    let mut stepped = Vec::new();
    for byte in left.bytes() {
        engine.parser.step_all(&branches, byte, &mut stepped);
        std::mem::swap(&mut branches, &mut stepped);
    }
    branches.retain(|branch| engine.viable_by_colours(branch));
    engine.loosen(&branches);
    (engine, branches)
}

fn vocabulary(tokens: &[&[u8]]) -> Vocabulary {
    Vocabulary::new(&tokens.iter().map(|token| Some(token.to_vec())).collect::<Vec<_>>(), &[]).expect("a vocabulary")
}

/// A language, the bytes of its middles, how long they are tried, and contexts.
type Case = (Twin, Vec<u8>, usize, Vec<(&'static str, &'static str)>);

/// Contexts of each language, with the bytes of its middles and how long they are tried.
fn cases() -> Vec<Case> {
    let brackets = vec![("", ""), ("((", ")"), ("a+", ")"), ("(a", "a"), ("a", "+a"), ("((a+", ""), ("(", "a))")];
    let unseparated = vec![("", ""), ("a", "a"), ("ab", ""), ("aba", "b"), ("a", "bab"), ("abab", "aa")];
    let lines = vec![
        ("", ""),
        ("a", "a\n"),
        ("if:\n", ""),
        ("ia", ""),
        ("if:\n", " a\n"),
        ("if:\n a\n", "  a\n"),
        ("if", "a\n"),
    ];
    vec![
        (Twin::new(sums()), b"a+() ".to_vec(), 5, brackets),
        (Twin::new(words()), b"ab".to_vec(), 8, unseparated),
        (Twin::new(blocks()), b"a:if\n #".to_vec(), 4, lines),
    ]
}

#[test]
fn the_shortest_completion_is_a_shortest_middle() {
    for (mut twin, alphabet, longest, contexts) in cases() {
        let middles = texts(&alphabet, longest);
        for (left, right) in contexts {
            let least = twin.completing(left, right, &middles).first().map(|middle| middle.len());
            let (mut engine, branches) = open(&twin, left, right);
            let found = shortest_completion(&mut engine, &branches, SEARCH).expect("it is found soon");
            let length = found.as_ref().map(Vec::len);
            assert_eq!(length.filter(|&length| length <= longest), least, "{left:?} {right:?}: {found:?}");
            if let Some(found) = found {
                assert!(
                    twin.whole(&[left.as_bytes(), &found, right.as_bytes()].concat()),
                    "{left:?} {found:?} {right:?}"
                );
            }
        }
    }
}

/// Shapes of middles: of one line, of texts without something, of some lengths.
fn shapes() -> Vec<Arc<Shape>> {
    let patterns = ["[^()]*", "(?s).{2,4}", r"(?s)(a|\n| )*", "a+[^a]*"];
    let mut found: Vec<Arc<Shape>> =
        patterns.iter().map(|pattern| Arc::new(Shape::regex(pattern).expect("a shape"))).collect();
    found.extend([1, 2].map(|lines| Arc::new(Shape::lines(lines).expect("a shape"))));
    found
}

fn has_shape(shape: &Shape, text: &[u8]) -> bool {
    let end = text.iter().try_fold(shape.first(), |at, &byte| shape.step(at, byte));
    end.is_some_and(|at| shape.accepts(at))
}

#[test]
fn completions_of_a_shape_are_shortest_ones_and_have_it() {
    let mut compared = 0;
    for (mut twin, alphabet, longest, contexts) in cases() {
        let middles = texts(&alphabet, longest);
        for shape in shapes() {
            let Ok(language) = twin.language.shaped(shape.clone()) else {
                continue; // nothing keeps its lexemes apart
            };
            let language = Arc::new(language);
            for &(left, right) in &contexts {
                let whole = twin.completing(left, right, &middles);
                let least = whole.into_iter().find(|middle| has_shape(&shape, middle)).map(<[u8]>::len);
                let (mut engine, branches) = open_in(&language, left, right);
                assert!(least.is_none() || !branches.is_empty());
                let shortest = shortest_completion(&mut engine, &branches, SEARCH);
                let short = short_completion(&mut engine, &branches, SEARCH);
                if let Ok(found) = &shortest {
                    let length = found.as_ref().map(Vec::len).filter(|&length| length <= longest);
                    assert_eq!(length, least, "{left:?} {right:?} {shape:?}: {found:?}");
                    compared += usize::from(length.is_some());
                }
                for found in [shortest, short].into_iter().flatten().flatten() {
                    assert!(has_shape(&shape, &found), "{left:?} {right:?} {shape:?}: {found:?}");
                    assert!(twin.whole(&[left.as_bytes(), &found, right.as_bytes()].concat()));
                }
            }
        }
    }
    assert!(compared > 30, "{compared} lengths were compared");
}

#[test]
fn a_short_completion_completes() {
    let mut complete = 0;
    for (mut twin, _, _, contexts) in cases() {
        for (left, right) in contexts {
            let (mut engine, branches) = open(&twin, left, right);
            let found = short_completion(&mut engine, &branches, SEARCH).expect("it is found soon");
            assert!(found.is_some() || branches.is_empty(), "{left:?} {right:?}");
            if let Some(found) = found {
                assert!(
                    twin.whole(&[left.as_bytes(), &found, right.as_bytes()].concat()),
                    "{left:?} {found:?} {right:?}"
                );
                complete += 1;
            }
        }
    }
    assert!(complete > 10, "{complete} contexts can be completed");
}

#[test]
fn a_text_completes_if_the_whole_is_a_text_of_the_language() {
    for (mut twin, alphabet, longest, contexts) in cases() {
        let middles = texts(&alphabet, longest.min(4));
        for (left, right) in contexts {
            let completing = twin.completing(left, right, &middles);
            let (mut engine, branches) = open(&twin, left, right);
            let found: Vec<&[u8]> =
                middles.iter().map(Vec::as_slice).filter(|middle| completes(&mut engine, &branches, middle)).collect();
            assert_eq!(found, completing, "{left:?} {right:?}");
        }
    }
}

#[test]
fn a_search_that_looks_at_too_much_says_so() {
    let twin = Twin::new(sums());
    let (mut engine, branches) = open(&twin, "((((", "");
    let error = shortest_completion(&mut engine, &branches, 1).expect_err("too few states");
    assert_eq!(error.kind(), ErrorKind::Search);
    assert_eq!(shortest_completion(&mut engine, &[], SEARCH).expect("nothing to look at"), None);
}

#[test]
fn a_plan_spells_its_text_in_the_fewest_tokens() {
    let tokens: [&[u8]; 7] = [b"a", b"ab", b"b", b"ba", b"aab", b"abab", b"bb"];
    let vocabulary = vocabulary(&tokens);
    // Per text, the fewest tokens that spell it, by texts of growing length.
    let fewest = |text: &[u8]| {
        let mut least = vec![usize::MAX; text.len() + 1];
        least[0] = 0;
        for end in 1..=text.len() {
            for token in tokens.iter().filter(|token| text[..end].ends_with(token)) {
                least[end] = least[end].min(least[end - token.len()].saturating_add(1));
            }
        }
        least[text.len()]
    };
    for text in texts(b"ab", 8) {
        let plan = Plan::spell(&vocabulary, text.clone()).expect("single bytes are tokens");
        assert_eq!((plan.len(), plan.is_empty()), (fewest(&text), text.is_empty()));
        let spelled: Vec<u8> = plan.tokens().flat_map(|token| vocabulary.bytes_of(token).to_vec()).collect();
        assert_eq!(spelled, text);
        if let Some(first) = plan.tokens().next() {
            let rest = plan.after(&vocabulary, first).expect("the plan's own token");
            assert_eq!((rest.len(), rest.bytes.as_slice()), (plan.len() - 1, &text[tokens[first.index()].len()..]));
            let other = TokenId(u32::from(first.0 == 0));
            assert_eq!(plan.after(&vocabulary, other), None);
        }
    }
    assert_eq!(Plan::spell(&vocabulary, b"ac".to_vec()), None, "no token has a c");
}

#[test]
fn plans_complete_and_what_never_ends_is_told() {
    let tokens: [&[u8]; 9] = [b"a", b"+", b"(", b")", b"))", b"\n", b" ", b":", b"if:\n a"];
    let vocabulary = vocabulary(&tokens);
    let mut random = Random::new(5);
    for (mut twin, alphabet, ..) in cases().into_iter().filter(|case| case.1 != b"ab") {
        let mut plans = 0;
        for _ in 0..60 {
            let mut text = |longest: usize| -> String {
                (0..random.below(longest)).map(|_| char::from(alphabet[random.below(alphabet.len())])).collect()
            };
            let (left, right) = (text(5), text(3));
            let (mut engine, branches) = open(&twin, &left, &right);
            let search = Search { vocabulary: &vocabulary, hints: &[], tries: &[], enough: 3, most: 2_000 };
            match land(&mut engine, &branches, &search) {
                Outcome::Plan(plan) => {
                    assert!(
                        twin.whole(&[left.as_bytes(), &plan.bytes, right.as_bytes()].concat()),
                        "{left:?} {right:?}"
                    );
                    plans += 1;
                }
                Outcome::Never => assert!(branches.is_empty()),
                Outcome::Unknown => assert!(!branches.is_empty()),
            }
        }
        assert!(plans > 5, "{plans} plans");
    }
}

#[test]
fn a_hint_that_completes_is_taken_and_one_that_does_not_is_left() {
    let vocabulary = vocabulary(&[b"a", b")", b"+"]);
    let twin = Twin::new(sums());
    let (mut engine, branches) = open(&twin, "(a", "");
    let spell = |text: &[u8]| Plan::spell(&vocabulary, text.to_vec()).expect("a plan");
    let (wrong, long) = (spell(b"+"), spell(b"+a)"));
    let mut plan = |hints: &[&Plan], tries: &[Vec<u8>], enough| {
        let search = Search { vocabulary: &vocabulary, hints, tries, enough, most: 2_000 };
        match land(&mut engine, &branches, &search) {
            Outcome::Plan(plan) => plan.bytes,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(plan(&[&wrong, &long], &[], 3), b"+a)");
    assert_eq!(plan(&[&wrong, &long], &[], 2), b")", "the hint has too many tokens");
    assert_eq!(plan(&[], &[b"a".to_vec(), b"a)".to_vec()], 3), b"a)");
    assert_eq!(plan(&[], &[], 3), b")");
    assert_eq!(Outcome::Never.within(9), Some(false));
    assert_eq!((Outcome::Unknown.within(9), Outcome::Plan(long).within(2)), (None, Some(false)));
}
