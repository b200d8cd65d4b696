//! Questions to the sets of the left chart, in the order in which they are asked.

use crate::ids::{SetId, SymbolId};

/// A question to a set: what does a symbol move here, that was read or has been completed?
pub(crate) type Question = (SetId, SymbolId);

/// Questions that were kept, by their place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    begin: u32,
    end: u32,
}

/// Questions in the order in which they were asked.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// True while questions are recorded.
    is_recording: bool,
    recorded: Vec<Question>,
    /// Questions for which sets were made.
    kept: Vec<Question>,
}

/// Questions recorded so far, while others are recorded or none.
#[derive(Debug)]
pub(crate) struct Paused(bool, Vec<Question>);

impl Questions {
    #[inline(always)]
    pub(super) fn ask(&mut self, set: SetId, symbol: SymbolId) {
        if self.is_recording {
            self.recorded.push((set, symbol));
        }
    }

    /// The number of recorded questions.
    pub(super) fn count(&self) -> usize {
        self.recorded.len()
    }

    /// Keep the questions recorded since a count, for [`Questions::repeat`].
    pub(super) fn keep(&mut self, since: usize) -> Option<Asked> {
        self.is_recording.then(|| {
            let place = |kept: usize| u32::try_from(kept).expect("few questions are kept");
            let begin = place(self.kept.len());
            self.kept.extend_from_slice(&self.recorded[since..]);
            Asked { begin, end: place(self.kept.len()) }
        })
    }

    /// Record questions again. Return false if they have to be asked, because they were not recorded.
    pub(super) fn repeat(&mut self, asked: Option<Asked>) -> bool {
        if !self.is_recording {
            return true;
        }
        let Some(asked) = asked else { return false };
        self.recorded.extend_from_slice(&self.kept[asked.begin as usize..asked.end as usize]);
        true
    }

    /// The number of kept questions.
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn truncate(&mut self, kept: usize) {
        self.kept.truncate(kept);
    }

    /// Record questions from here on, or none; the ones recorded so far are set aside.
    pub(crate) fn record(&mut self, is_recording: bool) -> Paused {
        let was_recording = std::mem::replace(&mut self.is_recording, is_recording);
        Paused(was_recording, std::mem::take(&mut self.recorded))
    }

    /// Go on where [`Questions::record`] was called, and return what was recorded since.
    pub(crate) fn resume(&mut self, paused: Paused) -> Vec<Question> {
        self.is_recording = paused.0;
        std::mem::replace(&mut self.recorded, paused.1)
    }
}
