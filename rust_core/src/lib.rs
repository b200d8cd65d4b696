//! Exact fill-in-the-middle constraints: which bytes may follow, given both contexts, and which middles are whole.
//!
//! The way the data goes: [`spec`] → [`language`] (over [`lexing`] and [`grammar`]) → [`session`] ([`engine`]: branches over the
//! [`chart`] of L and the middle; [`right`]: the right context's lattice and chart; [`colour`]: what R asks of the parse
//! stack) → [`masking`] over a vocabulary. The crate knows nothing of Python.

pub mod chart;
pub mod colour;
pub mod completing;
pub mod engine;
pub mod error;
pub mod explaining;
pub mod grammar;
pub mod ids;
pub mod language;
pub mod lexing;
pub mod limits;
pub mod masking;
pub mod matcher;
pub mod right;
pub mod session;
pub mod spec;
