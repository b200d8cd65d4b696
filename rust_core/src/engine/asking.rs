//! Questions to the sets of the parser's left chart, for parts of walks that stacks share.

use crate::chart::questions::{Paused, Question};
use crate::engine::parser::Parser;
use crate::ids::SetId;

impl Parser {
    /// Record questions to sets from here on, or none, see [`Questions::record`].
    pub(crate) fn record(&mut self, is_recording: bool) -> Paused {
        self.left.questions.record(is_recording)
    }

    /// Go on where [`Parser::record`] was called, and return what was recorded since.
    pub(crate) fn resume(&mut self, paused: Paused) -> Vec<Question> {
        self.left.questions.resume(paused)
    }

    /// Write the items of a set, see [`LeftChart::contents`].
    pub(crate) fn contents(&self, set: SetId, found: &mut Vec<(u32, SetId)>) {
        self.left.contents(set, found);
    }

    /// Write the answer to a question, see [`LeftChart::answer`].
    pub(crate) fn answer(&mut self, question: Question, found: &mut Vec<(u32, SetId)>) {
        self.left.answer(&self.language, &mut self.predictions, question, found);
    }

    /// The question that follows from an answer, see [`LeftChart::follows`].
    pub(crate) fn follows(&mut self, question: Question) -> Option<Question> {
        self.left.follows(&self.language, &mut self.predictions, question)
    }

    /// Brackets that must stay open.
    #[inline]
    pub(crate) fn least_brackets(&self) -> u32 {
        self.least.brackets
    }
}
