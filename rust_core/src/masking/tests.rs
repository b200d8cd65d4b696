//! Masks: the trie, its walk, the caches, and the table, each compared with answers token by token.

use crate::chart::left::FIRST_SET;
use crate::engine::verdicts::Engine;
use crate::ids::{SetId, TokenId};
use crate::language::shape::Shape;
use crate::limits;
use crate::masking::own::OwnMasks;
use crate::masking::plain::{Recognizer, add_tokens, fill_mask, mask_words};
use crate::masking::shape_index::ShapeIndex;
use crate::masking::stack::{Forms, KnownForms};
use crate::masking::table::file::Spanner;
use crate::masking::tables::Tables;
use crate::masking::trie_walk::TrieWalk;
use crate::masking::vocabulary::Vocabulary;
use crate::matcher::Matcher;
use crate::session::Session;
use crate::test_languages::{
    Random, blocks, compile, define, opened, openings, slashes, stepped, strings, sums, texts, words,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tokens of some bytes: several with the same text, some without text, and an end token.
fn vocabulary(random: &mut Random, alphabet: &[u8], count: usize) -> (Vec<Option<Vec<u8>>>, Vocabulary) {
    let mut token = || (0..random.below(5)).map(|_| alphabet[random.below(alphabet.len())]).collect::<Vec<u8>>();
    let mut tokens: Vec<Option<Vec<u8>>> = (0..count).map(|_| Some(token())).collect();
    tokens.push(None);
    let end = u32::try_from(tokens.len()).expect("few tokens");
    tokens.push(Some(b"</s>".to_vec()));
    let vocabulary = Vocabulary::new(&tokens, &[end]).expect("a vocabulary");
    (tokens, vocabulary)
}

fn allowed(words: &[u32], tokens: usize) -> BTreeSet<usize> {
    (0..tokens).filter(|token| words[token / 32] >> (token % 32) & 1 == 1).collect()
}

#[test]
fn the_trie_holds_the_tokens_and_nothing_else() {
    let mut random = Random::new(6);
    for count in [0, 1, 5, 60] {
        let (tokens, vocabulary) = vocabulary(&mut random, b"abc", count);
        let mut wanted: BTreeMap<Vec<u8>, BTreeSet<usize>> = BTreeMap::new();
        for (id, token) in tokens[..count].iter().enumerate() {
            let token = token.clone().expect("a token");
            if !token.is_empty() {
                wanted.entry(token).or_default().insert(id);
            }
        }
        let mut found: BTreeMap<Vec<u8>, BTreeSet<usize>> = BTreeMap::new();
        let mut path = Vec::new();
        let mut paths = Vec::new();
        for node in vocabulary.nodes() {
            path.truncate(node.depth as usize - 1);
            path.push(node.byte);
            paths.push(path.clone());
            for token in vocabulary.ending(node) {
                assert!(found.entry(path.clone()).or_default().insert(token.index()), "a token is there twice");
            }
        }
        assert_eq!(found, wanted);
        for (at, node) in vocabulary.nodes().iter().enumerate() {
            let within = |other: &Vec<u8>| other.starts_with(&paths[at]);
            assert_eq!(
                paths[at..].iter().position(|other| !within(other)).map_or(paths.len(), |end| at + end),
                node.skip as usize
            );
            assert!(wanted.keys().any(within), "a node leads to a token");
        }
        assert_eq!(vocabulary.longest(), wanted.keys().map(Vec::len).max().unwrap_or(0));
        for text in texts(b"abc", 5) {
            let mut along = Vec::new();
            vocabulary.tokens_along(&text, &mut along);
            let prefixes = (1..=text.len()).filter_map(|end| Some((end, wanted.get(&text[..end])?)));
            let first = |ids: &BTreeSet<usize>| TokenId::from_index(*ids.first().expect("a token"));
            assert_eq!(along, prefixes.map(|(end, ids)| (end, first(ids))).collect::<Vec<_>>());
        }
    }
    assert!(Vocabulary::new(&[None], &[1]).is_err(), "an end token that is none");
}

/// Recognizer of some texts and their prefixes.
struct Beginnings<'a> {
    texts: &'a BTreeSet<Vec<u8>>,
    pushed: Vec<u8>,
}

impl Recognizer for Beginnings<'_> {
    fn try_push(&mut self, byte: u8) -> bool {
        self.pushed.push(byte);
        let begins = self.texts.iter().any(|text| text.starts_with(&self.pushed));
        if !begins {
            self.pushed.pop();
        }
        begins
    }

    fn pop_to(&mut self, length: usize) {
        self.pushed.truncate(length);
    }

    fn is_complete(&mut self) -> bool {
        self.texts.contains(&self.pushed)
    }
}

#[test]
fn plain_masks_agree_with_single_tokens() {
    let mut random = Random::new(7);
    for round in 0..100 {
        let (tokens, vocabulary) = vocabulary(&mut random, b"abc", 70);
        let mut text = || (0..random.below(6)).map(|_| b"abc"[random.below(3)]).collect::<Vec<u8>>();
        let texts: BTreeSet<Vec<u8>> = (0..round % 7).map(|_| text()).collect();
        let begins = |token: &Vec<u8>| !token.is_empty() && texts.iter().any(|text| text.starts_with(token));
        let mut wanted: BTreeSet<usize> = (0..70).filter(|&token| tokens[token].as_ref().is_some_and(begins)).collect();
        let mut words = vec![u32::MAX; mask_words(tokens.len())];
        let mut recognizer = Beginnings { texts: &texts, pushed: Vec::new() };
        fill_mask(&mut recognizer, &vocabulary, &mut words);
        if texts.contains(&Vec::new()) {
            wanted.insert(71);
        }
        assert_eq!(allowed(&words, tokens.len()), wanted);
        assert!(recognizer.pushed.is_empty(), "all is taken back");
    }
}

#[test]
fn masks_of_every_kind_agree_with_single_tokens() {
    let mut random = Random::new(8);
    let languages = [
        (sums(), &b"a+() "[..]),
        (words(), b"ab"),
        (blocks(), b"a:\n if#"),
        (strings(), b"ab<>{}"),
        (slashes(), b"ab/();`{}"),
        (openings(), b"(/a "),
    ];
    for (spec, alphabet) in languages {
        let language = compile(&spec);
        let (tokens, vocabulary) = vocabulary(&mut random, alphabet, 80);
        let tables = Tables::new(vocabulary, None);
        let masks = tables.masks(&language);
        let mut some = 0;
        for _ in 0..200 {
            let mut text = |longest: usize| -> Vec<u8> {
                (0..random.below(longest)).map(|_| alphabet[random.below(alphabet.len())]).collect()
            };
            let (left, right) = (text(6), text(4));
            let mut engine = Engine::open(&language, &right);
            let branches = opened(&mut engine, &left);
            engine.find_unconstrained(&branches);
            let viable = |engine: &mut Engine, token: &Vec<u8>| {
                let mut out = Vec::new();
                engine.advance_all(&branches, token, &mut out);
                !token.is_empty() && !out.is_empty()
            };
            let wanted: BTreeSet<usize> =
                (0..80).filter(|&token| viable(&mut engine, tokens[token].as_ref().expect("a token"))).collect();
            some += usize::from(!wanted.is_empty());
            let mut words = vec![0; mask_words(tokens.len())];
            let mut own = OwnMasks::default();
            for round in 0..2 {
                masks.fill(&mut engine, &mut own, &tables.vocabulary, &branches, &mut words);
                assert_eq!(
                    allowed(&words, tokens.len()),
                    wanted,
                    "{round}: {left:?} {right:?} of {}",
                    spec.rules[0].lhs
                );
            }
            words.fill(0);
            let mut walk = TrieWalk::new(&mut engine, &branches, tables.vocabulary.longest());
            add_tokens(&mut walk, &tables.vocabulary, &mut words);
            assert_eq!(allowed(&words, tokens.len()), wanted, "{left:?} {right:?}");
            assert_eq!(walk.branches(), branches);
        }
        assert!(some > 10, "{some} masks allow anything");
        let statistics = masks.statistics();
        assert!(statistics.hits >= 200 && statistics.misses > 0, "{statistics:?}");
    }
}

/// A text, as long as it stays viable, of bytes drawn one after another.
fn drawn(random: &mut Random, engine: &mut Engine, alphabet: &[u8], longest: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..random.below(longest) {
        text.push(alphabet[random.below(alphabet.len())]);
        if opened(engine, &text).is_empty() {
            text.pop();
        }
    }
    text
}

#[test]
fn parts_of_walks_serve_stacks_that_answer_alike() {
    let mut random = Random::new(17);
    // What may come after a pair depends on what stands before it.
    let lexemes = ["X x", "Y y", "A a", "OPEN (", "CLOSE )", "BANG !", "QUEST ?"];
    let rules = [
        "file -> | file one",
        "one -> X pair BANG | Y pair QUEST | pair A",
        "pair -> OPEN inner CLOSE",
        "inner -> A | inner A | pair",
    ];
    let languages: [(_, &[u8]); 6] = [
        (define(&lexemes, &rules), b"xya()!?"),
        (sums(), b"a+() "),
        (blocks(), b"aif: \n#"),
        (strings(), b"ab{}\""),
        (slashes(), b"a/b ()"),
        (openings(), b"(/a "),
    ];
    let mut reused = 0;
    for (spec, alphabet) in languages {
        let language = compile(&spec);
        // Tokens are pieces of texts of the language: most texts of a few bytes are none.
        let mut engine = Engine::open(&language, b"");
        let texts: Vec<u8> = (0..60).flat_map(|_| drawn(&mut random, &mut engine, alphabet, 60)).collect();
        let tokens: Vec<Option<Vec<u8>>> = (0..300)
            .map(|_| {
                let (at, length) = (random.below(texts.len() - 6), 1 + random.below(6));
                Some(texts[at..at + length].to_vec())
            })
            .collect();
        let tables = Tables::new(Vocabulary::new(&tokens, &[]).expect("a vocabulary"), None);
        let masks = tables.masks(&language);
        for _ in 0..2_000 {
            let mut engine = Engine::open(&language, b"");
            let left = drawn(&mut random, &mut engine, alphabet, 24);
            let branches = opened(&mut engine, &left);
            engine.find_unconstrained(&branches);
            let (mut words, mut plain) = (vec![0; mask_words(tokens.len())], vec![0; mask_words(tokens.len())]);
            masks.fill(&mut engine, &mut OwnMasks::default(), &tables.vocabulary, &branches, &mut words);
            add_tokens(
                &mut TrieWalk::new(&mut engine, &branches, tables.vocabulary.longest()),
                &tables.vocabulary,
                &mut plain,
            );
            let name = &spec.rules[0].lhs;
            assert_eq!(allowed(&words, tokens.len()), allowed(&plain, tokens.len()), "{left:?} of {name}");
        }
        let most = limits::PART_BYTES + (1 << 16); // a shard is emptied when it is asked again
        assert!(masks.part_bytes() <= most, "{} bytes", masks.part_bytes());
        reused += masks.parts_found();
    }
    assert!(reused > 800, "{reused} parts were used again");
}

/// A parse stack written out: items with their origins' stacks in place of the origins.
fn written(engine: &Engine, set: SetId) -> String {
    if set == FIRST_SET {
        return "first".into();
    }
    let set = engine.parser.set(set);
    let mut items: Vec<String> =
        set.items.iter().map(|item| format!("{}:{}", item.dot.0, written(engine, item.origin))).collect();
    items.sort();
    format!("{}[{}]", set.accepts, items.join(" "))
}

#[test]
fn equal_stacks_of_all_sessions_have_one_form() {
    let language = compile(&sums());
    let mut forms = Forms::default();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut random = Random::new(9);
    for _ in 0..20 {
        // Sets are made in another order in each session, so that their ids differ.
        let mut engine = Engine::open(&language, b"");
        let mut known = KnownForms::default();
        for _ in 0..40 {
            let left: Vec<u8> = (0..random.below(8)).map(|_| b"aa+(( )"[random.below(7)]).collect();
            for branch in opened(&mut engine, &left) {
                known.learn(&engine, 1, &mut forms, std::iter::once(branch.set));
                assert!(known.knows(1, branch.set) && !known.knows(2, branch.set));
                let form = known.get(branch.set);
                assert_eq!(*seen.entry(written(&engine, branch.set)).or_insert(form), form, "{left:?}");
            }
        }
    }
    let distinct: BTreeSet<u32> = seen.values().copied().collect();
    assert_eq!(distinct.len(), seen.len(), "one form stands for two stacks");
    assert!(seen.len() > 10, "{} stacks", seen.len());
}

#[test]
fn own_masks_are_forgotten_beside_another_cache() {
    let mut own = OwnMasks::default();
    let key = || vec![1, 2].into_boxed_slice();
    assert!(own.get((1, 0), &key()).is_none());
    own.keep(key(), &[7], None);
    assert_eq!(own.get((1, 0), &key()).map(|kept| kept.mask[0]), Some(7));
    assert!(own.get((1, 1), &key()).is_none(), "the cache was cleared");
    assert!(own.get((1, 0), &key()).is_none());
}

#[test]
fn tokens_of_a_shape_are_indexed_by_target_state() {
    let mut random = Random::new(10);
    let (tokens, vocabulary) = vocabulary(&mut random, b"ab\n", 80);
    for pattern in ["(a|b)*", "a*b?", "(ab\n?){1,3}"] {
        let shape = Shape::regex(pattern).expect("a shape");
        for at in shape.states() {
            let index = ShapeIndex::new(&vocabulary, &shape, at);
            let mut found = BTreeMap::new();
            for (to, words) in index.iter() {
                allowed(words, tokens.len()).into_iter().for_each(|token| {
                    assert_eq!(found.insert(token, to), None, "a token leads to two places");
                });
            }
            let lead = |token: usize| {
                let bytes = tokens[token].as_ref().filter(|bytes| !bytes.is_empty())?;
                bytes.iter().try_fold(at, |state, &byte| shape.step(state, byte))
            };
            let wanted: BTreeMap<_, _> = (0..80).filter_map(|token| Some((token, lead(token)?))).collect();
            assert_eq!(found, wanted, "{pattern}");
        }
    }
}

/// A symbol read in either of two modes leads to the same place: a token of sixty symbols has 2^60 ways there.
#[test]
fn long_tokens_of_several_modes_are_walked_once() {
    let language = compile(&openings());
    let texts = ["(".repeat(60), "/".repeat(60), "(/".repeat(30), "/a/(".repeat(15), format!("{})", "(".repeat(60))];
    let tokens: Vec<Option<Vec<u8>>> = texts.iter().map(|text| Some(text.clone().into_bytes())).chain([None]).collect();
    let vocabulary = Vocabulary::new(&tokens, &[5]).expect("a vocabulary");
    let tables = Arc::new(Tables::new(vocabulary, None));
    let (mut by_table, mut plain) = (vec![0], vec![0]);
    for (left, right) in [("", ""), ("(", "a/"), ("", "/")] {
        let matcher = Matcher::new(Session::open(&language, left, right).start(), tables.clone());
        matcher.fill_mask(&mut by_table);
        matcher.fill_mask_plain(&mut plain);
        assert_eq!(by_table, plain, "{left:?} {right:?}");
        assert_eq!(plain[0] & 0b10001, 1, "brackets that open, and none that closes");
    }
}

#[test]
fn the_table_has_a_root_for_every_symbol_beside_one_guard() {
    // The second dot is a dot beside `...` in progress.
    let spec = define(&["DOT .", "DOTS ...", "NAME /[a-c]+/"], &["start -> DOT DOT NAME | DOTS"]);
    let language = compile(&spec);
    let (_, vocabulary) = vocabulary(&mut Random::new(31), b".abc", 40);
    let spanner = Spanner::build(&language, &vocabulary, 1);
    let mut engine = Engine::open(&language, b"");
    let mut guarded = 0;
    for text in [&b"."[..], b"..", b"..a"] {
        for branch in stepped(&mut engine, text) {
            let guards = engine.parser.guard_states(branch.guards);
            guarded += usize::from(!guards.is_empty());
            assert!(spanner.root(branch.state, guards, language.lexer.start(), false).is_some(), "{text:?} {branch:?}");
        }
    }
    assert!(guarded > 0, "no symbol began beside a guard");
}
