//! Requirements of the right context on the parse stack.

mod frames;
mod named;
pub(crate) mod requirements;
pub(crate) mod solver;

#[cfg(test)]
mod tests;
