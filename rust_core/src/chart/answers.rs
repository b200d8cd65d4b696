//! Answers of the sets of the left chart to questions. Reading on from a set asks the sets where its rules began what
//! waits for a symbol. Stacks whose sets answer alike read on alike, whatever else is in them.

use crate::chart::left::{FIRST_SET, LeftChart, NO_SET, waiting};
use crate::chart::predict::Predictions;
use crate::chart::questions::Question;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::SetId;
use crate::language::compiled::Language;

impl LeftChart {
    /// Write the items of a set: numbers, each with the set where the item began.
    pub(crate) fn contents(&self, set: SetId, found: &mut Vec<(u32, SetId)>) {
        let source = self.set(set);
        // Every other set has an item, or ends the file.
        if set != FIRST_SET {
            found.push((u32::from(source.accepts), NO_SET));
            found.extend(source.items.iter().map(|item| (item.dot.0, item.origin)));
        }
    }

    /// Write the answer to a question, as numbers with sets.
    pub(crate) fn answer(
        &self,
        language: &Language,
        predictions: &mut Predictions,
        (set, symbol): Question,
        found: &mut Vec<(u32, SetId)>,
    ) {
        let grammar = &language.grammar;
        let source = self.set(set);
        let chain = predictions.chain(language, source.prediction, symbol);
        let finishes = |symbol| chain.finishes(grammar, symbol);
        let ends_file = set == FIRST_SET && (symbol == grammar.start || finishes(grammar.start));
        let flags = u32::from(chain.moves) | u32::from(ends_file) << 1 | u32::from(set == FIRST_SET) << 2;
        found.push((flags, NO_SET));
        found.extend(chain.dots.iter().map(|dot| (dot.0, NO_SET)));
        let direct = waiting(grammar, &source.items, symbol).iter();
        let finished = source.own(grammar).iter().filter(|item| finishes(grammar.next(item.dot)));
        found.extend(direct.chain(finished).map(|item| (item.dot.0, item.origin)));
    }

    /// The question that follows from the answer to one where a single item waits, and a Leo item stands for its
    /// completion.
    pub(crate) fn follows(
        &self,
        language: &Language,
        predictions: &mut Predictions,
        (set, symbol): Question,
    ) -> Option<Question> {
        let grammar = &language.grammar;
        let source = self.set(set);
        source.leo_item(symbol)?;
        let chain = predictions.chain(language, source.prediction, symbol);
        let finished = source.own(grammar).iter().filter(|item| chain.finishes(grammar, grammar.next(item.dot)));
        let item = waiting(grammar, &source.items, symbol).iter().chain(finished).next()?;
        let dot = Grammar::advance(item.dot);
        debug_assert_eq!(grammar.next(dot), END_OF_RULE, "a Leo item stands for a completion");
        Some((item.origin, grammar.lhs(dot)))
    }
}
