//! Matchers: a state moved by the tokens of a vocabulary.

use crate::bits::{contains, insert, remove};
use crate::diagnostics::inside::Inside;
use crate::engine::branch::Branch;
use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::limits;
use crate::masking::cache::MaskCache;
use crate::masking::plain::mask_words;
use crate::masking::tables::Tables;
use crate::masking::vocabulary::Vocabulary;
use crate::planning::landing::Search;
use crate::planning::plan::{Outcome, Plan};
use crate::state::State;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A middle in progress, in tokens.
#[derive(Debug, Clone)]
pub struct Matcher {
    state: State,
    tables: Arc<Tables>,
    /// Masks of the session's language, made on demand.
    masks: OnceLock<Arc<MaskCache>>,
    /// Text to be rewritten at the middle's beginning. It ends where the state began.
    rewrite: Vec<u8>,
    /// For each place of that text: whether tokens lead on from there.
    rewritable: Vec<bool>,
    /// Bytes of that text that have been rewritten.
    written: usize,
    /// Bytes of each committed token; an end token has none.
    lengths: Vec<Length>,
    /// The bytes that have moved the state.
    text: Vec<u8>,
    ended: bool,
    /// Known endings of the middle from here.
    endings: Endings,
    /// Known endings before each committed token, for when tokens are rolled back.
    earlier: Vec<Endings>,
}

/// The bytes of a token.
#[derive(Debug, Clone, Copy)]
struct Length {
    /// Bytes that rewrote the middle's beginning.
    rewrite: usize,
    /// Bytes that moved the state.
    new: usize,
}

/// Known endings of a middle.
#[derive(Debug, Clone, Default)]
struct Endings {
    plan: Option<Plan>,
    /// Plans after tokens of landing queries, the latest one last.
    asked: Vec<(TokenId, Plan)>,
    /// Answers of searches that found no ending within some tokens.
    answers: FxHashMap<(Box<[Branch]>, usize), Option<bool>>,
}

impl Endings {
    /// The plan after a token.
    fn after(&self, vocabulary: &Vocabulary, token: TokenId) -> Option<Plan> {
        let asked = self.asked.iter().filter(|asked| asked.0 == token).map(|asked| asked.1.clone());
        let rest = self.plan.as_ref().and_then(|plan| plan.after(vocabulary, token));
        asked.chain(rest).min_by_key(Plan::len)
    }
}

impl Matcher {
    /// A matcher that goes on from a state.
    #[must_use]
    pub fn new(state: State, tables: Arc<Tables>) -> Self {
        Self::healing(state, tables, Vec::new())
    }

    /// A matcher of middles that rewrite a text before they go on from a state (token healing). The text is the end of
    /// the context left of the state, and tokens may reach across its end. All answers concern the whole middle, that
    /// text included.
    #[must_use]
    pub fn healing(state: State, tables: Arc<Tables>, rewrite: Vec<u8>) -> Self {
        let rewritable = if rewrite.is_empty() { Vec::new() } else { state.rewritable(&rewrite, &tables.vocabulary) };
        Self {
            state,
            tables,
            masks: OnceLock::new(),
            rewrite,
            rewritable,
            written: 0,
            lengths: Vec::new(),
            text: Vec::new(),
            ended: false,
            endings: Endings::default(),
            earlier: Vec::new(),
        }
    }

    /// Fill a packed mask; after an end token nothing is allowed.
    pub fn fill_mask(&self, words: &mut [u32]) {
        if self.ended {
            words.fill(0);
        } else if self.is_healing() {
            self.state.fill_healing_mask(self.rest(), &self.rewritable[self.written..], self.vocabulary(), words);
        } else {
            let masks = self.masks.get_or_init(|| self.state.masks(&self.tables));
            self.state.fill_mask(self.vocabulary(), masks, words);
        }
    }

    /// Fill a packed mask by a walk over the vocabulary's trie, with nothing kept: the plain twin.
    pub fn fill_mask_plain(&self, words: &mut [u32]) {
        if self.ended {
            words.fill(0);
        } else if self.is_healing() {
            words.fill(0);
            let tokens = (0..self.vocabulary().len()).map(TokenId::from_index);
            tokens.filter(|&token| self.takes(token)).for_each(|token| insert(words, token.index()));
        } else {
            self.state.fill_mask_plain(&self.tables.vocabulary, words);
        }
    }

    /// Return whether a token may be committed.
    ///
    /// # Errors
    /// A token outside the vocabulary.
    pub fn allows(&self, token: TokenId) -> Result<bool, Error> {
        self.known(token)?;
        Ok(!self.ended && self.takes(token))
    }

    fn takes(&self, token: TokenId) -> bool {
        if !self.is_healing() {
            return self.state.allows(self.vocabulary(), token);
        }
        let bytes = self.vocabulary().bytes_of(token);
        let Some((rewrite, new)) = self.parts(bytes) else { return false };
        !bytes.is_empty() && self.rewritable[self.written + rewrite] && self.state.takes(new)
    }

    /// Return whether some text still has to be rewritten.
    fn is_healing(&self) -> bool {
        self.written < self.rewrite.len()
    }

    /// Text that still has to be rewritten.
    fn rest(&self) -> &[u8] {
        &self.rewrite[self.written..]
    }

    /// Split a token's bytes into those that rewrite the text, and those after it; `None` if they differ from the text.
    fn parts<'a>(&self, bytes: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let rest = self.rest();
        let (rewrite, new) = bytes.split_at(bytes.len().min(rest.len()));
        rest.starts_with(rewrite).then_some((rewrite.len(), new))
    }

    /// Append a token.
    ///
    /// # Errors
    /// A token outside the vocabulary, or one that the mask does not allow; then nothing changes.
    pub fn commit(&mut self, token: TokenId) -> Result<(), Error> {
        self.known(token)?;
        let refused = || Error::new(ErrorKind::State, format!("token {} is not allowed here", token.0));
        if self.ended {
            return Err(Error::new(ErrorKind::State, format!("token {} after the end token", token.0)));
        }
        if self.vocabulary().is_end(token) {
            if !self.is_complete() {
                return Err(refused());
            }
            self.ended = true;
            self.push(0, b"", None);
            return Ok(());
        }
        let tables = self.tables.clone();
        let bytes = tables.vocabulary.bytes_of(token);
        let Some((rewrite, new)) = self.parts(bytes) else { return Err(refused()) };
        if bytes.is_empty() || rewrite > 0 && !self.rewritable[self.written + rewrite] {
            return Err(refused());
        }
        let accepted = self.state.advance(new);
        if accepted < new.len() {
            self.state.rollback(accepted)?;
            return Err(refused());
        }
        let plan = match (rewrite, new) {
            (0, _) => self.endings.after(&tables.vocabulary, token),
            (_, []) => self.endings.plan.clone(),
            _ => None,
        };
        self.push(rewrite, new, plan);
        Ok(())
    }

    fn push(&mut self, rewrite: usize, new: &[u8], plan: Option<Plan>) {
        self.lengths.push(Length { rewrite, new: new.len() });
        self.written += rewrite;
        self.text.extend_from_slice(new);
        self.earlier.push(std::mem::replace(&mut self.endings, Endings { plan, ..Endings::default() }));
    }

    /// The last known plan, from some tokens ago, and the text since.
    fn hint(&self) -> Option<(&Plan, &[u8])> {
        let mut since = 0;
        for (endings, length) in self.earlier.iter().zip(&self.lengths).rev() {
            since += length.new;
            if let Some(plan) = &endings.plan {
                return Some((plan, &self.text[self.text.len() - since..]));
            }
        }
        None
    }

    /// Find an ending of the middle (see [`crate::planning::plan`]). A plan of `enough` tokens suffices, though a
    /// shorter one may exist.
    pub fn landing(&mut self, enough: usize) -> Outcome {
        if self.ended {
            return Outcome::Plan(Plan::default());
        }
        let found = self.landing_of_state(enough);
        match found {
            Outcome::Plan(plan) if self.is_healing() => {
                Plan::spell(self.vocabulary(), [self.rest(), &plan.bytes].concat())
                    .map_or(Outcome::Unknown, Outcome::Plan)
            }
            found => found,
        }
    }

    /// Find an ending of the middle after the text that has to be rewritten.
    fn landing_of_state(&mut self, enough: usize) -> Outcome {
        let known = self.endings.plan.take();
        if let Some(plan) = known.as_ref().filter(|plan| plan.len() <= enough) {
            self.endings.plan.clone_from(&known);
            return Outcome::Plan(plan.clone());
        }
        let (hints, tries) = match self.hint() {
            Some((plan, since)) => (vec![plan], plan.adapted(self.state.spelling(), since)),
            None => (Vec::new(), Vec::new()),
        };
        let (hints, tries, vocabulary) = (&hints[..], &tries[..], self.vocabulary());
        let search = |most| self.state.landing(&Search { vocabulary, hints, tries, enough, most });
        let is_first = self.earlier.is_empty();
        let mut found = search(if is_first { limits::LANDING_EXPANSIONS } else { limits::LATER_EXPANSIONS });
        if found == Outcome::Unknown && is_first {
            found = search(limits::FIRST_EXPANSIONS);
        }
        let better = match (found, known) {
            (Outcome::Plan(found), Some(known)) if known.len() <= found.len() => Outcome::Plan(known),
            (Outcome::Never | Outcome::Unknown, Some(known)) => Outcome::Plan(known),
            (found, _) => found,
        };
        if let Outcome::Plan(plan) = &better {
            self.endings.plan = Some(plan.clone());
        }
        better
    }

    /// Return whether the middle can end within `left` tokens after a token that may follow; `None` if unknown. The end
    /// token ends it.
    ///
    /// # Errors
    /// A token outside the vocabulary, or one that may not follow.
    pub fn lands(&mut self, token: TokenId, left: usize) -> Result<Option<bool>, Error> {
        self.known(token)?;
        let refused = || Error::new(ErrorKind::State, format!("token {} is not allowed here", token.0));
        if self.ended {
            return Err(refused());
        }
        if self.vocabulary().is_end(token) {
            return if self.is_complete() { Ok(Some(true)) } else { Err(refused()) };
        }
        if self.is_healing() {
            let mut after = self.clone();
            after.commit(token)?;
            return Ok(after.landing(left).within(left));
        }
        let tables = self.tables.clone();
        let vocabulary = &tables.vocabulary;
        if self.endings.after(vocabulary, token).is_some_and(|rest| rest.len() <= left) {
            return Ok(Some(true));
        }
        let bytes = vocabulary.bytes_of(token);
        // A stopped search appends nothing.
        let mut after = self.state.onward();
        if bytes.is_empty() || after.advance(bytes) < bytes.len() {
            return Err(refused());
        }
        let place = (after.branches().into(), left);
        if let Some(&answer) = self.endings.answers.get(&place) {
            return Ok(answer);
        }
        let last = self.endings.asked.last().map(|asked| &asked.1);
        let spelling = self.state.spelling();
        let (plan, tries) = match (&self.endings.plan, self.hint()) {
            (Some(plan), _) => (Some(plan), plan.adapted(spelling, bytes)),
            (None, Some((plan, since))) => (Some(plan), plan.adapted(spelling, &[since, bytes].concat())),
            (None, None) => (None, Vec::new()),
        };
        let hints: Vec<&Plan> = plan.into_iter().chain(last).collect();
        let most = limits::landing_expansions(left);
        let search = Search { vocabulary, hints: &hints, tries: &tries, enough: left, most };
        let found = after.landing(&search);
        let within = found.within(left);
        if within != Some(true) {
            self.endings.answers.insert(place, within);
        }
        if let Outcome::Plan(plan) = found {
            self.endings.asked.push((token, plan));
        }
        Ok(within)
    }

    /// Fill a packed mask with the tokens after which the middle is known to end within `left` tokens; the end tokens
    /// iff the whole is a program. Return how many tokens `left` rules out.
    pub fn fill_landing_mask(&mut self, left: usize, words: &mut [u32]) -> usize {
        self.fill_mask(words);
        if self.ended {
            return 0;
        }
        if self.is_healing() {
            return self.restrict_healing(left, words);
        }
        self.landing(left + 1);
        self.state.restrict_to_landing(self.vocabulary(), self.endings.plan.as_ref(), left, words)
    }

    /// Restrict a mask as [`State::restrict_to_landing`] does, while text still has to be rewritten.
    fn restrict_healing(&mut self, left: usize, words: &mut [u32]) -> usize {
        let tokens = (0..self.vocabulary().len()).map(TokenId::from_index);
        let allowed: Vec<TokenId> = tokens.filter(|token| contains(words, token.index())).collect();
        let mut refused = 0;
        for token in allowed {
            if !matches!(self.lands(token, left), Ok(Some(true))) {
                remove(words, token.index());
                refused += 1;
            }
        }
        refused
    }

    /// Take back tokens.
    ///
    /// # Errors
    /// More tokens than were committed.
    pub fn rollback(&mut self, tokens: usize) -> Result<(), Error> {
        if tokens > self.lengths.len() {
            return Err(Error::new(
                ErrorKind::State,
                format!("cannot take back {tokens} tokens: {} were committed", self.lengths.len()),
            ));
        }
        let kept = self.lengths.len() - tokens;
        let new = self.lengths[kept..].iter().map(|length| length.new).sum();
        self.state.rollback(new)?;
        self.text.truncate(self.text.len() - new);
        self.written -= self.lengths[kept..].iter().map(|length| length.rewrite).sum::<usize>();
        self.ended &= tokens == 0;
        if let Some(endings) = self.earlier.drain(kept..).next() {
            self.endings = endings;
        }
        self.lengths.truncate(kept);
        Ok(())
    }

    /// Return whether the whole is a program.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.is_healing() && self.state.is_complete()
    }

    /// The kind of non-code text at the end of the middle, if all readings agree. `None` while text still has to be
    /// rewritten.
    #[must_use]
    pub fn inside(&self) -> Option<Inside> {
        if self.is_healing() { None } else { self.state.inside() }
    }

    /// The common beginning of all continuations; empty where the middle may end, or has ended.
    #[must_use]
    pub fn forced(&self) -> Vec<u8> {
        if self.ended || !self.state.is_viable() {
            return Vec::new();
        }
        [self.rest(), &self.state.forced()].concat()
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.tables.vocabulary
    }

    fn known(&self, token: TokenId) -> Result<(), Error> {
        if token.index() < self.vocabulary().len() {
            return Ok(());
        }
        let message = format!("token {} is outside the vocabulary of {} tokens", token.0, self.vocabulary().len());
        Err(Error::new(ErrorKind::Vocabulary, message))
    }
}

/// Fill one row of packed masks for each matcher, on some threads.
///
/// # Errors
/// Rows that do not fit the matchers or their vocabularies, or threads that cannot be started.
pub fn fill_masks(matchers: &[Arc<Mutex<Matcher>>], words: &mut [u32], threads: usize) -> Result<(), Error> {
    let tables = |matcher: &Mutex<Matcher>| matcher.lock().unwrap_or_else(PoisonError::into_inner).tables.clone();
    let Some(first) = matchers.first() else { return Ok(()) };
    let row = words.len() / matchers.len();
    let needed = mask_words(tables(first).vocabulary.len());
    if row * matchers.len() != words.len() || row < needed {
        let message = format!("{} masks of {needed} words do not fit {} words", matchers.len(), words.len());
        return Err(Error::new(ErrorKind::Vocabulary, message));
    }
    if matchers.iter().any(|matcher| mask_words(tables(matcher).vocabulary.len()) != needed) {
        return Err(Error::new(ErrorKind::Vocabulary, "matchers of vocabularies of different sizes"));
    }
    if row == 0 {
        return Ok(());
    }
    let fill = |(matcher, row): (&Arc<Mutex<Matcher>>, &mut [u32])| {
        let (own, padding) = row.split_at_mut(needed);
        padding.fill(0);
        matcher.lock().unwrap_or_else(PoisonError::into_inner).fill_mask(own);
    };
    if threads < 2 || matchers.len() < 2 {
        matchers.iter().zip(words.chunks_exact_mut(row)).for_each(fill);
        return Ok(());
    }
    let pool = pool(threads)?;
    pool.install(|| matchers.par_iter().zip(words.par_chunks_exact_mut(row)).for_each(fill));
    Ok(())
}

/// A pool of some threads, kept for the next batch of this process.
fn pool(threads: usize) -> Result<Arc<rayon::ThreadPool>, Error> {
    static POOL: Mutex<Option<(u32, Arc<rayon::ThreadPool>)>> = Mutex::new(None);
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let own = std::process::id();
    if let Some((process, pool)) = kept.take() {
        if process == own && pool.current_num_threads() == threads {
            *kept = Some((process, pool.clone()));
            return Ok(pool);
        }
        if process != own {
            // A fork has the pool but not its threads: nothing would ever end it.
            std::mem::forget(pool);
        }
    }
    let built =
        rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|index| format!("mask-{index}")).build();
    let pool = Arc::new(built.map_err(|error| Error::new(ErrorKind::System, format!("no threads: {error}")))?);
    *kept = Some((own, pool.clone()));
    Ok(pool)
}
