//! States: a middle in progress.

use crate::diagnostics::expected;
use crate::diagnostics::inside::{Inside, inside_all};
use crate::engine::branch::Branch;
use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::language::compiled::Language;
use crate::language::spelling::Spelling;
use crate::limits;
use crate::masking::cache::MaskCache;
use crate::masking::healing;
use crate::masking::plain::{self, Recognizer};
use crate::masking::tables::Tables;
use crate::masking::trie_walk::TrieWalk;
use crate::masking::vocabulary::Vocabulary;
use crate::planning::landing::{self, Search};
use crate::planning::plan::{Outcome, Plan};
use crate::planning::shortest;
use crate::session::{Guarantee, Session};
use std::sync::Arc;

/// Verdict on a middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// True if some text can follow that makes the whole a program.
    pub viable: bool,
    /// The whole is a program.
    pub complete: bool,
    /// Byte offset of the first impossible byte.
    pub rejected_at: Option<usize>,
}

/// Diagnosis of a text: its allowed part, and the lexemes that may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Number of allowed bytes of the text.
    pub accepted: usize,
    /// True if all of the text is allowed.
    pub viable: bool,
    /// Lexemes that may come after the last whole symbol.
    pub expected: Vec<String>,
    /// Open constructs of L and the middle, innermost first.
    pub open_left: Vec<String>,
    /// Symbols with which R begins after the cursor and to which the middle has to lead, as R's text.
    pub open_right: Vec<String>,
}

impl Session {
    /// A state before the middle's first byte.
    #[must_use]
    pub fn start(self: &Arc<Self>) -> State {
        State::new(self.clone())
    }

    /// Judge a middle.
    #[must_use]
    pub fn check(self: &Arc<Self>, middle: &str) -> Verdict {
        let mut state = self.start();
        let viable = self.guarantee() == Guarantee::Exact;
        let accepted = state.advance(middle.as_bytes());
        if !viable || accepted < middle.len() {
            return Verdict { viable: false, complete: false, rejected_at: Some(accepted) };
        }
        Verdict { viable, complete: state.is_complete(), rejected_at: None }
    }
}

/// A middle in progress. Cheap to fork; every byte can be taken back.
#[derive(Debug, Clone)]
pub struct State {
    session: Arc<Session>,
    /// The branches after each byte; the empty middle's first.
    history: Vec<Arc<[Branch]>>,
}

impl State {
    /// The empty middle, between the branches from which it goes on.
    fn new(session: Arc<Session>) -> Self {
        let opening = session.opening().into();
        Self { session, history: vec![opening] }
    }

    /// A state that goes on from here without this one's history.
    pub(crate) fn onward(&self) -> Self {
        let here = self.history.last().expect("never empty").clone();
        Self { session: self.session.clone(), history: vec![here] }
    }

    /// Append bytes up to the first impossible one, and return how many were appended.
    pub fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut engine = self.session.lock();
        let mut stepped = Vec::new();
        // A stop on the way appends nothing.
        let mut further: Vec<Arc<[Branch]>> = Vec::new();
        for &byte in bytes {
            let branches = further.last().or(self.history.last()).expect("never empty");
            engine.advance(branches, byte, &mut stepped);
            if stepped.is_empty() {
                break;
            }
            further.push(stepped.as_slice().into());
        }
        drop(engine);
        let appended = further.len();
        self.history.append(&mut further);
        appended
    }

    /// Bytes of middle so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.history.len() - 1
    }

    /// Return whether no byte has been appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Take back bytes.
    ///
    /// # Errors
    /// More bytes than there are.
    pub fn rollback(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > self.len() {
            return Err(Error::new(
                ErrorKind::State,
                format!("cannot take back {bytes} bytes: the middle has {}", self.len()),
            ));
        }
        self.history.truncate(self.history.len() - bytes);
        Ok(())
    }

    /// Return whether the whole is a program.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let mut engine = self.session.lock();
        self.branches().iter().any(|branch| engine.complete(branch))
    }

    /// Return whether some text can follow that makes the whole a program (false only where the guarantee is `None`).
    #[must_use]
    pub fn is_viable(&self) -> bool {
        !self.branches().is_empty()
    }

    /// The kind of non-code text at the end of the middle, if all readings agree.
    #[must_use]
    pub fn inside(&self) -> Option<Inside> {
        inside_all(&mut self.session.lock().parser, self.branches())
    }

    /// A shortest text that makes the whole a program; `None` if there is none.
    ///
    /// # Errors
    /// The search passed its limit.
    pub fn shortest_completion(&self) -> Result<Option<Vec<u8>>, Error> {
        self.shortest_completion_within(limits::COMPLETION_EXPANSIONS)
    }

    /// A shortest completion, as [`Self::shortest_completion`], with a lower limit on the search: states looked at.
    ///
    /// # Errors
    /// The search passed its limit.
    pub fn shortest_completion_within(&self, most: usize) -> Result<Option<Vec<u8>>, Error> {
        let mut engine = self.session.lock();
        let mark = engine.mark();
        let most = most.min(limits::COMPLETION_EXPANSIONS);
        let found = shortest::shortest_completion(&mut engine, self.branches(), most);
        engine.truncate(mark);
        found
    }

    /// Find an ending of the middle in a few tokens.
    #[must_use]
    pub fn landing(&self, search: &Search<'_>) -> Outcome {
        landing::land(&mut self.session.lock(), self.branches(), search)
    }

    /// Remove from a packed mask the tokens after which the middle is not known to end within `left` more tokens, and
    /// return how many. The mask is one of this state, and `plan` one of this state's plans.
    ///
    /// # Panics
    /// If `words` is not [`plain::mask_words`] long.
    pub fn restrict_to_landing(
        &self,
        vocabulary: &Vocabulary,
        plan: Option<&Plan>,
        left: usize,
        words: &mut [u32],
    ) -> usize {
        assert_eq!(words.len(), plain::mask_words(vocabulary.len()), "one word for 32 tokens");
        landing::restrict(&mut self.session.lock(), self.branches(), vocabulary, plan, left, words)
    }

    /// The masks of this session's language over a vocabulary; its table is loaded, or built, when it is first asked for.
    #[must_use]
    pub fn masks(&self, tables: &Tables) -> Arc<MaskCache> {
        tables.masks(self.session.language())
    }

    /// Fill a packed mask over a vocabulary with the tokens that may follow; the end tokens iff the whole is a program.
    ///
    /// # Panics
    /// If `words` is not [`plain::mask_words`] long.
    pub fn fill_mask(&self, vocabulary: &Vocabulary, masks: &MaskCache, words: &mut [u32]) {
        assert_eq!(words.len(), plain::mask_words(vocabulary.len()), "one word for 32 tokens");
        let mut engine = self.session.lock();
        masks.fill(&mut engine, &mut self.session.own_masks(), vocabulary, self.branches(), words);
        if self.branches().iter().any(|branch| engine.complete(branch)) {
            plain::add_end_tokens(vocabulary, words);
        }
    }

    /// Fill a packed mask by a walk over the vocabulary's trie, with nothing kept: the plain twin.
    pub fn fill_mask_plain(&self, vocabulary: &Vocabulary, words: &mut [u32]) {
        let mut engine = self.session.lock();
        let mark = engine.mark();
        plain::fill_mask(&mut TrieWalk::new(&mut engine, self.branches(), vocabulary.longest()), vocabulary, words);
        engine.truncate(mark);
    }

    /// Return whether one token may follow.
    #[must_use]
    pub fn allows(&self, vocabulary: &Vocabulary, token: TokenId) -> bool {
        if vocabulary.is_end(token) {
            return self.is_complete();
        }
        let bytes = vocabulary.bytes_of(token);
        !bytes.is_empty() && self.takes(bytes)
    }

    /// Return whether some bytes may follow.
    #[must_use]
    pub(crate) fn takes(&self, bytes: &[u8]) -> bool {
        let mut engine = self.session.lock();
        let mut walk = TrieWalk::new(&mut engine, self.branches(), bytes.len());
        self.is_viable() && bytes.iter().all(|&byte| walk.try_push(byte))
    }

    /// Fill a packed mask with the tokens with which a middle can begin that rewrites a text and then goes on from
    /// here. `rewritable` is [`Self::rewritable`] of the text.
    pub(crate) fn fill_healing_mask(
        &self,
        text: &[u8],
        rewritable: &[bool],
        vocabulary: &Vocabulary,
        words: &mut [u32],
    ) {
        let mut engine = self.session.lock();
        let mark = engine.mark();
        let mut walk = TrieWalk::new(&mut engine, self.branches(), vocabulary.longest());
        healing::fill_mask(&mut walk, text, rewritable, vocabulary, words);
        engine.truncate(mark);
    }

    /// For each place of a text to be rewritten before the middle goes on from here: whether tokens lead on from there.
    pub(crate) fn rewritable(&self, text: &[u8], vocabulary: &Vocabulary) -> Vec<bool> {
        let mut engine = self.session.lock();
        let mark = engine.mark();
        let mut walk = TrieWalk::new(&mut engine, self.branches(), vocabulary.longest());
        let rewritable = healing::rewritable(&mut walk, text, self.is_viable(), vocabulary);
        engine.truncate(mark);
        rewritable
    }

    /// The common beginning of all continuations; empty where the middle may end. A text longer than the limit is cut.
    #[must_use]
    pub fn forced(&self) -> Vec<u8> {
        let mut engine = self.session.lock();
        let lexer_bytes = byte_classes(&engine.language);
        let mut branches = self.branches().to_vec();
        let mut forced = Vec::new();
        let mut stepped = Vec::new();
        while forced.len() < limits::FORCED_BYTES && !branches.iter().any(|branch| engine.complete(branch)) {
            let mut only: Option<(u8, Vec<Branch>)> = None;
            for &(byte, count) in &lexer_bytes {
                engine.advance(&branches, byte, &mut stepped);
                if stepped.is_empty() {
                    continue;
                }
                if only.is_some() || count > 1 {
                    return forced;
                }
                only = Some((byte, stepped.clone()));
            }
            let Some((byte, next)) = only else { return forced };
            forced.push(byte);
            branches = next;
        }
        forced
    }

    /// Explain how much of a text is allowed from here, and why the rest is not.
    #[must_use]
    pub fn explain(&self, text: &[u8]) -> Explanation {
        let mut probe = self.clone();
        let accepted = probe.advance(text);
        let mut engine = self.session.lock();
        let mut lexemes = Vec::new();
        let mut open_left = Vec::new();
        for branch in probe.branches() {
            lexemes.extend(expected::expected(&mut engine, branch));
            if open_left.is_empty() {
                open_left = expected::open_rules(&engine, branch);
            }
        }
        lexemes.sort_unstable();
        lexemes.dedup();
        let open_right = engine.right.unmatched_closers();
        Explanation {
            accepted,
            viable: accepted == text.len() && self.is_viable(),
            expected: lexemes,
            open_left,
            open_right,
        }
    }

    /// The spelling of the language.
    pub(crate) fn spelling(&self) -> &Spelling {
        &self.session.language().spelling
    }

    pub(crate) fn branches(&self) -> &[Branch] {
        self.history.last().expect("never empty")
    }
}

/// One byte of each class that no state of the lexer distinguishes, with the size of the class.
fn byte_classes(language: &Language) -> Vec<(u8, usize)> {
    let lexer = &language.lexer;
    if language.shaped.is_some() || language.marks.is_some() {
        return (0..=255u8).map(|byte| (byte, 1)).collect();
    }
    let count = |byte: u8| (0..=255u8).filter(|&other| lexer.class_of(other) == lexer.class_of(byte)).count();
    lexer.representatives().into_iter().map(|byte| (byte, count(byte))).collect()
}
