//! Depth of a dot in the brackets, or blocks, of its rule, as floors count it.
//!
//! Depth and rule must agree: what closes below a depth ends a rule that began there. A nonterminal leaves as many
//! brackets open whatever it derives. It closes a bracket that it has not opened at most at its very end (a field of a
//! formatted string, whose brace the text before it opens).

use crate::grammar::rules::Rules;
use crate::ids::{DotId, SymbolId};

/// Per dot: the number of constructs open there, less those open where the rule began.
#[derive(Debug)]
pub(crate) struct Nesting {
    at: Vec<i32>,
    /// Per dot: the least depth at the dots after it.
    lowest_after: Vec<i32>,
}

impl Nesting {
    /// Count what lexemes open (1) and close (-1); `None` where depth and rule do not agree.
    pub(super) fn derive(rules: &Rules, of_lexeme: impl Fn(SymbolId) -> i32) -> Option<Self> {
        let lexemes = (0..rules.lexeme_count()).map(|index| Some(of_lexeme(SymbolId::from_index(index))));
        let mut net: Vec<Option<i32>> = lexemes.collect();
        net.resize(rules.symbol_count(), None);
        let sum =
            |net: &[Option<i32>], rhs: &[SymbolId]| rhs.iter().map(|symbol| net[symbol.index()]).sum::<Option<i32>>();
        loop {
            let unknown = rules.rules().iter().filter(|rule| net[rule.lhs.index()].is_none());
            let found = unknown.filter_map(|rule| Some((rule.lhs, sum(&net, &rule.rhs)?))).next();
            let Some((lhs, value)) = found else { break };
            net[lhs.index()] = Some(value);
        }
        let mut at = vec![0; rules.dot_count()];
        let mut lowest_after = vec![i32::MAX; rules.dot_count()];
        for (index, rule) in rules.rules().iter().enumerate() {
            let end = rule.rhs.len();
            for position in 0..end {
                let own = net[rule.rhs[position].index()]?;
                if rule.block.is_some()
                    && own != 0
                    && rule.block.is_none_or(|(open, close)| position != open && position != close)
                {
                    return None; // a block whose INDENT is still to come is taken as a whole
                }
                let before = at[rules.dot(index, position).index()];
                at[rules.dot(index, position + 1).index()] = before + own;
                if position + 1 < end && before + own < 0 {
                    return None;
                }
            }
            let last = at[rules.dot(index, end).index()];
            if Some(last) != net[rule.lhs.index()] || !(-1..=0).contains(&last) {
                return None;
            }
            for position in (0..end).rev() {
                let next = rules.dot(index, position + 1).index();
                lowest_after[rules.dot(index, position).index()] = at[next].min(lowest_after[next]);
            }
        }
        (net[rules.start.index()] == Some(0)).then_some(Self { at, lowest_after })
    }

    /// The depth of a dot.
    #[inline]
    pub(crate) fn at(&self, dot: DotId) -> i32 {
        self.at[dot.index()]
    }

    /// The least depth further on in the rule.
    #[inline]
    pub(crate) fn lowest_after(&self, dot: DotId) -> i32 {
        self.lowest_after[dot.index()]
    }
}
