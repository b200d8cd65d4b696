//! Rules of whole files, with nonterminals that only choose another one written out.
//!
//! [`crate::language::follow`] classifies the ends of files by the rules of a file. The rule `file: list` does not show
//! whether a list can go on. So the rules of `list: | ended | open` become rules of the file.

use crate::grammar::rule::Rule;
use crate::ids::SymbolId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Replace the first symbols of the rules of `files` by those that they choose from. The texts stay the same.
pub(super) fn unfold(rules: &mut Vec<Rule>, files: &[SymbolId], lexeme_count: usize) {
    let mut by_lhs: FxHashMap<SymbolId, Vec<&[SymbolId]>> = FxHashMap::default();
    for rule in rules.iter() {
        by_lhs.entry(rule.lhs).or_default().push(&rule.rhs);
    }
    let is_choice = |symbol: SymbolId| {
        let only_chooses = |rhs: &&[SymbolId]| match **rhs {
            [] => true,
            [one] => one.index() >= lexeme_count,
            _ => false,
        };
        !files.contains(&symbol) && by_lhs.get(&symbol).is_some_and(|own| own.iter().all(only_chooses))
    };
    let mut unfolded = Vec::with_capacity(rules.len());
    let mut seen: FxHashSet<(SymbolId, Vec<SymbolId>)> = FxHashSet::default();
    for rule in rules.iter() {
        if !files.contains(&rule.lhs) {
            unfolded.push(rule.clone());
            continue;
        }
        let mut waiting = vec![rule.rhs.clone()];
        while let Some(rhs) = waiting.pop() {
            if !seen.insert((rule.lhs, rhs.clone())) {
                continue;
            }
            match rhs.split_first() {
                Some((&first, rest)) if is_choice(first) => {
                    let chosen = by_lhs[&first].iter().rev();
                    waiting.extend(chosen.map(|own| own.iter().chain(rest).copied().collect()));
                }
                _ => unfolded.push(Rule { lhs: rule.lhs, rhs, block: None }),
            }
        }
    }
    *rules = unfolded;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_languages::Random;
    use std::collections::BTreeSet;

    const LEXEMES: usize = 2;
    const SYMBOLS: usize = 6;
    const LONGEST: usize = 4;

    /// Short texts of each symbol, as a least fixpoint.
    fn texts(rules: &[Rule]) -> Vec<BTreeSet<Vec<SymbolId>>> {
        let own = |index| (index < LEXEMES).then(|| vec![SymbolId::from_index(index)]);
        let mut found: Vec<BTreeSet<Vec<SymbolId>>> =
            (0..SYMBOLS).map(|index| own(index).into_iter().collect()).collect();
        let count = |found: &[BTreeSet<Vec<SymbolId>>]| found.iter().map(BTreeSet::len).sum::<usize>();
        loop {
            let known = count(&found);
            for rule in rules {
                let mut texts: BTreeSet<Vec<SymbolId>> = std::iter::once(Vec::new()).collect();
                for symbol in &rule.rhs {
                    let ends = &found[symbol.index()];
                    let longer = texts.iter().flat_map(|begin| ends.iter().map(move |end| [&begin[..], end].concat()));
                    texts = longer.filter(|text| text.len() <= LONGEST).collect();
                }
                found[rule.lhs.index()].extend(texts);
            }
            if count(&found) == known {
                return found;
            }
        }
    }

    #[test]
    fn unfolded_files_have_the_same_texts() {
        let mut random = Random::new(46);
        let mut unfolded = 0;
        for _ in 0..2000 {
            let mut rules: Vec<Rule> = (0..4 + random.below(8))
                .map(|_| {
                    let lhs = SymbolId::from_index(LEXEMES + random.below(SYMBOLS - LEXEMES));
                    let rhs = (0..random.below(3)).map(|_| SymbolId::from_index(random.below(SYMBOLS))).collect();
                    Rule { lhs, rhs, block: None }
                })
                .collect();
            let files: Vec<SymbolId> = (LEXEMES..LEXEMES + 1 + random.below(2)).map(SymbolId::from_index).collect();
            let before = rules.clone();
            unfold(&mut rules, &files, LEXEMES);
            assert_eq!(texts(&rules), texts(&before), "{before:?}");
            unfolded += usize::from(rules.len() != before.len());
        }
        assert!(unfolded > 200, "{unfolded}");
    }

    #[test]
    fn a_file_of_one_list_has_the_rules_of_the_list() {
        let [comment, file, list, ended] = [0, 2, 3, 4].map(SymbolId::from_index);
        let rule = |lhs, rhs: &[SymbolId]| Rule { lhs, rhs: rhs.to_vec(), block: None };
        let mut rules = vec![
            rule(file, &[list]),
            rule(file, &[list, comment]),
            rule(list, &[]),
            rule(list, &[ended]),
            rule(ended, &[ended, SymbolId(1)]),
            rule(ended, &[SymbolId(1)]),
        ];
        unfold(&mut rules, &[file], LEXEMES);
        let own: Vec<&[SymbolId]> = rules.iter().filter(|rule| rule.lhs == file).map(|rule| &rule.rhs[..]).collect();
        assert_eq!(own, [&[][..], &[ended], &[comment], &[ended, comment]]);
    }
}
