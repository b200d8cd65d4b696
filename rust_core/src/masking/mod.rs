//! Token masks: the plain walk, the token table, and the caches.

pub(crate) mod cache;
mod doubtful;
pub(crate) mod healing;
pub(crate) mod key;
pub(crate) mod open;
pub(crate) mod own;
pub(crate) mod parts;
pub(crate) mod plain;
pub(crate) mod shape_index;
pub(crate) mod stack;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod trie;
pub(crate) mod trie_walk;
pub(crate) mod vocabulary;
pub(crate) mod walk;
mod walk_parts;

#[cfg(test)]
mod tests;
