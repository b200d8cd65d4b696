//! Searches for texts that complete a middle, compared with all short ones.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::error::ErrorKind;
use crate::ids::TokenId;
use crate::language::compiled::Language;
use crate::language::free::{Cost, INFINITE};
use crate::language::shape::Shape;
use crate::limits::LANDING_EXPANSIONS;
use crate::masking::vocabulary::Vocabulary;
use crate::planning::landing::{Search, land, restrict_sharing};
use crate::planning::plan::{Outcome, Plan, completes};
use crate::planning::search::{Step, Steps, search};
use crate::planning::shared::SharedSearch;
use crate::planning::short::short_completion;
use crate::planning::shortest::{Bytes, shortest_completion};
use crate::test_languages::{Random, Twin, blocks, compile, define, sums, texts, words};
use std::sync::Arc;

const SEARCH: usize = 10_000;

fn open(twin: &Twin, left: &str, right: &str) -> (Engine, Vec<Branch>) {
    open_in(&twin.language, left, right)
}

fn open_in(language: &Arc<Language>, left: &str, right: &str) -> (Engine, Vec<Branch>) {
    let mut engine = Engine::open(language, right.as_bytes());
    let mut branches = engine.parser.first_branches();
    let mut stepped = Vec::new();
    for byte in left.bytes() {
        engine.parser.step_all(&branches, byte, &mut stepped);
        std::mem::swap(&mut branches, &mut stepped);
    }
    branches.retain(|branch| engine.viable_by_requirements(branch));
    engine.find_unconstrained(&branches);
    (engine, branches)
}

fn vocabulary(tokens: &[&[u8]]) -> Vocabulary {
    Vocabulary::new(&tokens.iter().map(|token| Some(token.to_vec())).collect::<Vec<_>>(), &[]).expect("a vocabulary")
}

/// A language, the bytes of its middles, their maximal length, and contexts.
type Case = (Twin, Vec<u8>, usize, Vec<(&'static str, &'static str)>);

/// Contexts of each language, with the bytes of its middles and their maximal length.
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

/// Lines and blocks with headers of several words, which blanks keep apart, and fields of strings.
fn headers() -> Arc<Language> {
    let lexemes = [
        "NEWLINE /\\n/",
        "_BLANK /[ \\t]+/",
        "_COMMENT /#[^\\n]*/",
        "_JOIN /\\\\\\n/",
        "NAME /[a-z]+/",
        "IF if",
        "ELSE else",
        "COLON :",
        "OPEN (",
        "CLOSE )",
        "INDENT",
        "DEDENT",
    ];
    let rules = [
        "file -> | lines",
        "lines -> line | lines line",
        "line -> value NEWLINE | IF value COLON body | IF value COLON body ELSE COLON body",
        "body -> block | value NEWLINE",
        "block -> NEWLINE INDENT lines DEDENT",
        "value -> NAME | OPEN value CLOSE | value IF value ELSE value | OPEN CLOSE",
    ];
    let mut spec = define(&lexemes, &rules);
    spec.brackets = vec![("OPEN".into(), "CLOSE".into())];
    let layout = serde_json::json!({
        "newline": "NEWLINE", "indent": "INDENT", "dedent": "DEDENT", "blank": "_BLANK", "comment": "_COMMENT",
        "join": "_JOIN", "block_opener": ":", "step": 4
    });
    spec.layout = Some(serde_json::from_value(layout).expect("a layout"));
    compile(&spec)
}

/// The search without a bound: it tries all texts no longer than its result.
struct Plain(Bytes);

impl Steps for Plain {
    type Note = ();

    fn admits(&mut self, (): &()) -> bool {
        true
    }

    fn each(&mut self, engine: &mut Engine, branch: &Branch, from: usize, out: &mut Vec<Step>) -> Option<usize> {
        self.0.each(engine, branch, from, out)
    }

    fn text(&self, text: usize) -> &[u8] {
        self.0.text(text)
    }

    fn note(&mut self, _: &Engine, _: (&Branch, &()), _: &Step) {}

    fn bound(&self, engine: &mut Engine, branch: &Branch, _: &()) -> Cost {
        if engine.bound(branch) == INFINITE { INFINITE } else { 0 }
    }

    fn is_goal(&self, engine: &mut Engine, branch: &Branch) -> bool {
        engine.complete(branch)
    }
}

/// The search in which no step waits for another.
struct AtOnce(Bytes);

impl Steps for AtOnce {
    type Note = ();

    fn admits(&mut self, (): &()) -> bool {
        true
    }

    fn each(&mut self, engine: &mut Engine, branch: &Branch, from: usize, out: &mut Vec<Step>) -> Option<usize> {
        let mut more = Some(from);
        while let Some(from) = more {
            more = self.0.each(engine, branch, from, out);
        }
        None
    }

    fn text(&self, text: usize) -> &[u8] {
        self.0.text(text)
    }

    fn note(&mut self, _: &Engine, _: (&Branch, &()), _: &Step) {}

    fn bound(&self, engine: &mut Engine, branch: &Branch, note: &()) -> Cost {
        self.0.bound(engine, branch, note)
    }

    fn is_goal(&self, engine: &mut Engine, branch: &Branch) -> bool {
        engine.complete(branch)
    }
}

/// Some lines of [`headers`].
fn lines(random: &mut Random, column: usize) -> String {
    let mut found = String::new();
    for _ in 0..=random.below(3) {
        let indent = [" ", "    ", "\t"][random.below(3)].repeat(usize::from(column > 0)) + &" ".repeat(column);
        let value = ["a", "()", "(a)", "a if a else a", "ifa"][random.below(5)];
        found += &match random.below(if column > 20 { 2 } else { 4 }) {
            0 => format!("{indent}{value}\n"),
            1 => format!("{indent}if {value}: a # if\n"),
            2 => {
                let column = column + 1 + random.below(4);
                format!("{indent}if {value}:\n{}", lines(random, column))
            }
            _ => {
                let columns = [random.below(9), random.below(9)].map(|more| column + 1 + more);
                let bodies = columns.map(|column| lines(random, column));
                format!("{indent}if {value}:\n{}{indent}else:\n{}", bodies[0], bodies[1])
            }
        };
    }
    found
}

#[test]
fn bounds_keep_completions_shortest() {
    let languages = [
        (headers(), Vec::new()),
        (compile(&blocks()), vec!["if:\n ", "a", "a\n", "\n", "\n ", "#"]),
        (compile(&sums()), vec!["a", "+", "(", ")", " ", "(a", "a)"]),
        (compile(&words()), vec!["abb", "abaa", "aba", "b"]),
    ];
    let mut random = Random::new(16);
    let (mut compared, mut lengths) = (0, 0);
    for (language, pieces) in languages {
        for _ in 0..if cfg!(debug_assertions) { 40 } else { 300 } {
            let mut text = || -> String {
                if pieces.is_empty() {
                    return lines(&mut random, 0);
                }
                (0..random.below(7)).map(|_| pieces[random.below(pieces.len())]).collect()
            };
            let (left, right) = (text(), text());
            let left = &left[..random.below(left.len() + 1)];
            let right = &right[random.below(right.len() + 1)..];
            let (mut engine, branches) = open_in(&language, left, right);
            let mut plain = Plain(Bytes::new(&engine));
            let Ok(least) = search(&mut engine, &branches, &mut plain, 4_000) else { continue };
            let found = shortest_completion(&mut engine, &branches, SEARCH).expect("it is found soon");
            let length = |found: &Option<Vec<u8>>| found.as_ref().map(Vec::len);
            assert_eq!(length(&found), length(&least), "{left:?} {right:?}: {found:?} but {least:?}");
            let mut at_once = AtOnce(Bytes::new(&engine));
            let first = search(&mut engine, &branches, &mut at_once, SEARCH).expect("it is found soon");
            assert_eq!(length(&found), length(&first), "{left:?} {right:?}: {found:?} but {first:?}");
            compared += usize::from(found.is_some());
            lengths += length(&found).unwrap_or_default();
        }
    }
    assert!(compared > 60 && lengths > 60, "{lengths} bytes of {compared} completions");
}

/// Lines of [`headers`] in blocks up to a depth, with the briefest indentation. Variants have odd columns, tabs,
/// backslash-newlines, blank lines and comments.
fn deep_lines(random: &mut Random, indent: &str, depth: usize) -> String {
    let mut found = String::new();
    for at in 0..=random.below(if depth > 0 { 2 } else { 3 }) {
        found += ["", "", "", "\n", "#\n", "   #a\n", "\t\n"][random.below(7)];
        let value = ["a", "a", "()", "(a)", "(\na)", "a if a else a"][random.below(6)];
        let body = |random: &mut Random| {
            let more = [" ", " ", "  ", "   ", "\t", "\t ", "       ", "            ", " \\\n"][random.below(9)];
            // A backslash-newline keeps a column once, and only the first one of a line is asked.
            let more = if indent.contains('\\') && more.contains('\\') { " " } else { more };
            deep_lines(random, &format!("{indent}{more}"), depth - 1)
        };
        found += &match random.below(4) {
            _ if depth == 0 => format!("{indent}{value}\n"),
            0 if at > 0 => format!("{indent}if {value}:{value}\n"),
            1 => format!("{indent}if {value}:\n{}{indent}else:\n{}", body(random), body(random)),
            _ => format!("{indent}if {value}:\n{}", body(random)),
        };
    }
    found
}

/// A text cut out of a whole one completes it, so the bound at each of its places is at most the rest of it. This needs
/// no search, so blocks may be deep.
#[test]
fn bounds_never_exceed_the_rest_of_a_text() {
    let language = headers();
    let mut random = Random::new(27);
    let (mut gaps, mut tight) = (0, 0);
    for _ in 0..if cfg!(debug_assertions) { 30 } else { 600 } {
        let depth = 2 + random.below(4);
        let text = deep_lines(&mut random, "", depth);
        for _ in 0..12 {
            let from = random.below(text.len() + 1);
            let to = (from + [3, 8, 20, 60][random.below(4)]).min(text.len());
            let to = from + random.below(to - from + 1);
            let (left, middle, right) = (&text[..from], &text[from..to], &text[to..]);
            let (mut engine, mut branches) = open_in(&language, left, right);
            if !completes(&mut engine, &branches, middle.as_bytes()) {
                continue; // a tab that makes a column which spaces make elsewhere
            }
            gaps += 1;
            let mut stepped = Vec::new();
            for at in 0..=middle.len() {
                let expected = branches.iter().map(|branch| engine.bound(branch)).min().unwrap_or(INFINITE);
                let left_over = (middle.len() - at) as Cost;
                assert!(expected <= left_over, "{expected} bytes: {left:?} {middle:?} at {at} {right:?}");
                tight += usize::from(expected == left_over && expected > 0);
                if let Some(&byte) = middle.as_bytes().get(at) {
                    engine.advance(&branches, byte, &mut stepped);
                    std::mem::swap(&mut branches, &mut stepped);
                }
            }
        }
    }
    assert!(gaps > 100 && tight > 60, "{gaps} gaps, as much expected as was left at {tight} places");
}

/// Bounds include blocks that lie wholly in the middle, blanks between words, and written indentations: a search looks
/// at little besides its result.
#[test]
fn a_search_expands_little_besides_its_result() {
    let language = headers();
    let deep = |depth: usize| (0..depth).rev().map(|at| format!("{}a\n", "    ".repeat(at))).collect::<String>();
    let nested = |depth: usize| (0..depth).map(|at| format!("{}if a:\n", " ".repeat(at))).collect::<String>();
    let cases = [
        ("a\n".to_string(), deep(9)),
        ("if a:\n a\n".to_string(), deep(6)),
        ("(a if a".to_string(), format!(")\n{}", deep(5))),
        (nested(9), format!("{}else:a\n", " ".repeat(5))),
        ("(a if ".repeat(20), String::new()),
        ("# ".to_string(), deep(7)),
        // A line that has to begin right of all blocks, or at one of them, and nowhere else.
        (nested(90), " a\n".to_string()),
        (nested(90), "\n a\n".to_string()),
    ];
    for (left, right) in cases {
        let (mut engine, branches) = open_in(&language, &left, &right);
        let found = shortest_completion(&mut engine, &branches, 2_000);
        assert!(found.is_ok_and(|found| found.is_some()), "{left:?} {right:?}");
    }
}

/// A line may have its indentation from R: some of its blanks, or, where a comment takes in the rest of the cursor's line, all of it.
#[test]
fn indentation_that_r_has_is_not_required_of_the_middle() {
    let language = headers();
    let cases = [
        ("if a:\n", "a\n  a\n", "#"),
        ("if a:\n", " a\n", ""),
        ("if a:\n if a:\n", " a\n", " "),
        ("if a:\n if a:\n", "\n  a\n", ""),
        ("if a:\n          ", "      (\n)\n            a\n", "  \\\n"),
        ("if a:\n        if a:\n  ", "\\\n a\n", "\t "),
    ];
    for (left, right, least) in cases {
        let (mut engine, branches) = open_in(&language, left, right);
        let found = shortest_completion(&mut engine, &branches, SEARCH).expect("it is found soon").expect("some do");
        assert!(completes(&mut engine, &branches, least.as_bytes()), "{left:?} {least:?} {right:?}");
        assert_eq!(found.len(), least.len(), "{left:?} {right:?}: {}", String::from_utf8_lossy(&found));
    }
}

/// A search reads in proportion to its result, not to all alternatives.
#[test]
fn other_steps_wait_for_one_as_good_as_its_bound() {
    let language = headers();
    let left = "(a if ".repeat(60);
    let sets = |at_once: bool| {
        let (mut engine, branches) = open_in(&language, &left, "");
        let before = engine.parser.set_count();
        let mut bytes = Bytes::new(&engine);
        let found = match at_once {
            true => search(&mut engine, &branches, &mut AtOnce(bytes), SEARCH),
            false => search(&mut engine, &branches, &mut bytes, SEARCH),
        };
        (found.expect("it is found soon").expect("some do"), engine.parser.set_count() - before)
    };
    let ((waiting, few), (at_once, many)) = (sets(false), sets(true));
    assert_eq!(waiting, at_once);
    assert!(4 * few < 3 * many, "{few} sets instead of {many}");
}

/// A completion with many missing parts is searched for by bytes: by words, every step looks equally good.
#[test]
fn a_short_completion_can_be_long() {
    let language = headers();
    for depth in [60, 120] {
        let left = "(a if ".repeat(depth);
        let (mut engine, branches) = open_in(&language, &left, "");
        let found = short_completion(&mut engine, &branches, LANDING_EXPANSIONS, &mut SharedSearch::default());
        let found = found.expect("it is found soon").expect("some do");
        assert!(completes(&mut engine, &branches, &found));
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
fn completions_of_a_shape_are_shortest_and_have_the_shape() {
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
                let short = short_completion(&mut engine, &branches, SEARCH, &mut SharedSearch::default());
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
            let found = short_completion(&mut engine, &branches, SEARCH, &mut SharedSearch::default())
                .expect("it is found soon");
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
fn a_search_past_its_limit_is_an_error() {
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
fn plans_complete_and_dead_states_have_none() {
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
fn shared_searches_allow_the_same_tokens_as_separate_ones() {
    let tokens: [&[u8]; 12] = [b"a", b"+", b"(", b")", b"))", b"\n", b" ", b":", b"if:\n a", b"((", b"a+", b"if"];
    let vocabulary = vocabulary(&tokens);
    let mut random = Random::new(9);
    let (mut some, mut none) = (0, 0);
    for (twin, alphabet, ..) in cases().into_iter().filter(|case| case.1 != b"ab") {
        for round in 0..150 {
            let mut text = |longest: usize| -> String {
                (0..random.below(longest)).map(|_| char::from(alphabet[random.below(alphabet.len())])).collect()
            };
            let (left, right) = (text(6), text(4));
            let (mut engine, branches) = open(&twin, &left, &right);
            let mut mask = |shared| {
                let mut words = vec![(1u32 << tokens.len()) - 1];
                let refused =
                    restrict_sharing(&mut engine, &branches, (&vocabulary, None), round % 5, &mut words, shared);
                (words, refused)
            };
            let alone = mask(0);
            for shared in [3, usize::MAX / 2] {
                assert_eq!(mask(shared), alone, "{left:?} {right:?} within {}", round % 5);
            }
            some += usize::from(alone.0[0] != 0);
            none += usize::from(alone.1 > 0);
        }
    }
    assert!(some > 100 && none > 40, "{some} {none}");
}

#[test]
fn only_hints_that_complete_are_used() {
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
