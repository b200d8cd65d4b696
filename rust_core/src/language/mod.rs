//! Language as the engine uses it, and relations over a text that is still to be written.

pub(crate) mod ahead;
mod alike;
mod closing;
mod code_modes;
pub(crate) mod compiled;
pub(crate) mod definition;
pub(crate) mod follow;
pub(crate) mod free;
pub(crate) mod kept;
pub(crate) mod marks;
mod matrices;
pub(crate) mod nesting;
pub(crate) mod prediction;
mod prices;
pub(crate) mod shape;
pub(crate) mod shaped;
pub(crate) mod spelling;
mod terminals;

#[cfg(test)]
mod tests;
