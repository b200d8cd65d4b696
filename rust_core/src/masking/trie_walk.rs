//! Engine as a [`Recognizer`], for walks over the vocabulary's trie.

use crate::chart::texts::WILD;
use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::masking::plain::Recognizer;

/// A stack of branch lists over one engine, in one flat list.
pub(crate) struct TrieWalk<'a> {
    engine: &'a mut Engine,
    branches: Vec<Branch>,
    /// Start of each list in `branches`; the last one ends with it.
    begins: Vec<usize>,
    stepped: Vec<Branch>,
}

impl<'a> TrieWalk<'a> {
    /// A walk at its root; tokens have at most `longest` bytes.
    pub(crate) fn new(engine: &'a mut Engine, branches: &[Branch], longest: usize) -> Self {
        let mut begins = Vec::with_capacity(longest + 1);
        begins.push(0);
        Self { engine, branches: branches.to_vec(), begins, stepped: Vec::new() }
    }

    /// The branches after the pushed bytes.
    pub(crate) fn branches(&self) -> &[Branch] {
        &self.branches[*self.begins.last().expect("never empty")..]
    }

    /// The engine.
    pub(crate) fn engine(&mut self) -> &mut Engine {
        self.engine
    }
}

impl Recognizer for TrieWalk<'_> {
    fn try_push(&mut self, byte: u8) -> bool {
        let begin = *self.begins.last().expect("never empty");
        let end = self.branches.len();
        if let [only] = self.branches[begin..]
            && only.text != WILD
            && let Some(continued) = self.engine.continued(&only, byte)
        {
            if !self.engine.viable(&continued) {
                return false;
            }
            self.branches.push(continued);
        } else {
            self.engine.advance(&self.branches[begin..], byte, &mut self.stepped);
            if self.stepped.is_empty() {
                return false;
            }
            self.branches.extend_from_slice(&self.stepped);
        }
        self.begins.push(end);
        true
    }

    fn pop_to(&mut self, length: usize) {
        if let Some(&end) = self.begins.get(length + 1) {
            self.branches.truncate(end);
            self.begins.truncate(length + 1);
        }
    }

    fn is_complete(&mut self) -> bool {
        let branches = self.branches().to_vec();
        branches.iter().any(|branch| self.engine.complete(branch))
    }
}
