//! Lower bounds on the blanks that a begun line still needs. A line can begin only at the column of an open block, or
//! right of all of them where a block must open.

use crate::engine::branch::{Branch, InLine, Opens};
use crate::engine::verdicts::Engine;
use crate::language::free::{Cost, INFINITE, LINE};
use crate::lexing::layout::Column;

impl Engine {
    /// A lower bound on the further bytes that complete a branch before a line and outside comments; 0 if unknown.
    ///
    /// The completions of a fresh line would complete this line as well if its blanks were others. So the bound is the
    /// cost of a fresh line, less the blanks that this line shares with the shortest indentation at a column where it
    /// may begin.
    pub(super) fn bound_of_line(&mut self, branch: &Branch) -> Cost {
        let InLine::Start { column, kept } = branch.line else { return 0 };
        let Some(passed) = self.at_line.passed else { return 0 };
        let opens = self.parser.opens_block(branch.set);
        let top = self.parser.top(branch.indentation);
        let is_start = self.language.lexer.is_start(branch.state);
        // A backslash-newline in progress keeps the column at its end.
        let kept = kept.or_else(|| if is_start { None } else { column.kept() });
        if !is_start && kept.is_none() {
            return 0;
        }
        // R may have more of the indentation, or begin the line itself. It brings at most the bytes that it has there.
        let joins = self.at_line.joins;
        let to_block = match kept {
            Some(kept) => top.is_left_of(kept).then_some(0),
            None => Some(column.least_bytes_to_right_of(top, joins)),
        };
        let over_newline = 1 + top.least_bytes_right_of(joins);
        let needed = match opens {
            Opens::Always if top.is_left_of(self.at_line.after_comment) => 0, // a comment may do
            Opens::Always => to_block.unwrap_or(over_newline).min(over_newline).saturating_sub(passed),
            Opens::Maybe | Opens::Never => 0,
        };
        // The line may begin at any column right of a block, and blanks may have led to another place of a shape.
        if opens != Opens::Never || self.language.shaped.is_some() {
            return needed;
        }
        let fresh = match self.free_at(LINE, branch.at).map(|line| self.reachability(branch.set).cost(line)) {
            Some(cost) if cost != INFINITE => cost,
            _ => return needed,
        };
        let mut common = 0;
        let mut at = |block: Column| {
            let rest = match kept {
                Some(kept) => (kept == block).then_some(0),
                None => column.least_bytes_to(block),
            };
            common = common.max(rest.map_or(0, |rest| block.least_bytes().saturating_sub(rest.saturating_sub(passed))));
        };
        at(Column::ZERO);
        self.parser.for_each_block(branch.indentation, at);
        fresh.saturating_sub(common)
    }
}
