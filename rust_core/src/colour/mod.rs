//! What the right context asks of the parse stack.

pub(crate) mod colours;
pub(crate) mod demands;
mod frames;

#[cfg(test)]
mod tests;
