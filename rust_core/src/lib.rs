//! Exact fill-in-the-middle constraints: decides which bytes may follow, given both contexts, and which middles are
//! whole.
//!
//! Dataflow: [`spec`] → [`language`] (over [`lexing`] and [`grammar`]) → [`session`] → [`masking`] over a vocabulary. A
//! session has an [`engine`] with branches over the [`chart`] of L and the middle. [`right`] holds the right context's
//! lattice and chart, [`requirement`] R's requirements on the parse stack. The crate knows nothing of Python.

mod bits;
mod chart;
mod chunked;
mod components;
mod diagnostics;
mod engine;
mod error;
mod grammar;
mod holes;
mod ids;
mod interned;
mod language;
mod lexing;
mod limits;
mod masking;
mod matcher;
mod planning;
mod requirement;
mod right;
mod session;
mod spec;
mod state;
mod stop;

pub use diagnostics::inside::Inside;
pub use error::{Error, ErrorKind, Passed};
pub use holes::is_possible;
pub use ids::{ModeId, TokenId};
pub use language::compiled::Language;
pub use language::definition::Floor;
pub use language::shape::Shape;
pub use masking::plain::mask_words;
pub use masking::tables::Tables;
pub use masking::vocabulary::Vocabulary;
pub use matcher::{Matcher, fill_masks};
pub use planning::plan::Outcome;
pub use session::{Broken, Guarantee, Session};
pub use spec::{LanguageSpec, check_definition};
pub use state::State;
pub use stop::{Stop, Stopped, count, counted, watched};

#[cfg(test)]
mod test_languages;
