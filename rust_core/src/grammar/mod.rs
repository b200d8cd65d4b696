//! Rules over lexemes, with all tables that depend on them alone.

mod adjacency;
pub(crate) mod compiled;
mod file_start;
mod followers;
mod modes;
pub(crate) mod rule;
pub(crate) mod rules;
mod whole_file;

#[cfg(test)]
mod tests;
