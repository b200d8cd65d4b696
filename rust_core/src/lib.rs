//! Exact fill-in-the-middle constraints: which bytes may follow, given both contexts, and which middles are whole.
//!
//! The way the data goes: [`spec`] → [`language`] ([`lexer`], [`grammar`], [`free`]) → [`session`] ([`engine`]: branches over
//! the [`left`] chart; [`right`]: the right context's lattice and chart; [`colour`]: what R asks of the parse stack) →
//! [`mask`] over a [`vocabulary`]. The crate knows nothing of Python.

pub mod colour;
pub mod completion;
pub mod constructs;
pub mod endings;
pub mod engine;
pub mod error;
pub mod follow;
pub mod free;
pub mod grammar;
pub mod guards;
pub mod ids;
pub mod landing;
pub mod language;
pub mod layout;
pub mod left;
pub mod lexer;
pub mod limits;
pub mod lookahead;
pub mod mask;
pub mod masks;
pub mod matcher;
pub mod next;
pub mod predict;
pub mod quotient;
pub mod right;
pub mod scaffold;
pub mod session;
pub mod shape;
pub mod shaped;
pub mod spanner;
pub mod spanner_builder;
pub mod spec;
pub mod token_sets;
pub mod vocabulary;
pub mod walk;
