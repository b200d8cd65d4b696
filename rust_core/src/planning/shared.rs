//! Knowledge that searches for short completions share: the words to try, and the steps from branches.
//!
//! A landing mask searches from the end of each token, and the continuations after a symbol or two are mostly the same.
//! So the steps found by one search are kept for the next ones. A mask then costs one visit for each branch that any
//! search reaches, not one for each search.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::ids::{AcceptId, StateId};
use crate::language::compiled::Language;
use crate::language::free::Cost;
use crate::language::spelling::{BracketKind, Spelling};
use crate::lexing::layout::Column;
use crate::lexing::lexer::DEAD;
use crate::limits;
use crate::planning::right_text::{first_word, is_word, returns};
use crate::planning::search::Step;
use crate::planning::shortest;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Cost of words of several letters and of operators: more than a name of one letter, which often does as well. Unit:
/// tokens.
pub(super) const WORD: Cost = 2;

/// Knowledge about one engine. It is valid as long as the engine forgets no set.
#[derive(Debug, Default)]
pub(crate) struct SharedSearch {
    pub(super) words: Option<Arc<TriedWords>>,
    /// The steps from a branch, by whether a search began in its set.
    pub(super) steps: FxHashMap<(Branch, bool), Box<[Step]>>,
    /// Number of steps kept.
    kept: usize,
    /// Completions by whole lines, by the branches where a line begins and the number of lines that may be tried.
    pub(super) lines: FxHashMap<(Vec<Branch>, usize), Option<Vec<u8>>>,
}

impl SharedSearch {
    /// Knowledge with the words of this one, without anything that depends on sets.
    pub(super) fn of_words(&self) -> Self {
        Self { words: self.words.clone(), ..Self::default() }
    }

    /// Keep the steps from a branch, up to a limit.
    pub(super) fn keep(&mut self, place: (Branch, bool), steps: &[Step]) {
        if self.kept + steps.len() <= limits::KNOWN_STEPS {
            self.kept += steps.len();
            self.steps.insert(place, steps.into());
        }
    }
}

/// Texts that searches try between a language's text and one R.
#[derive(Debug)]
pub(super) struct TriedWords {
    /// Bytes, and behind them longer texts in order.
    pub texts: Vec<Box<[u8]>>,
    /// Cost of each longer text.
    pub costs: Vec<Cost>,
    /// Number of the texts that are bytes.
    pub bytes: usize,
    /// Texts that R completes to a word.
    pub cut: FxHashSet<Box<[u8]>>,
    /// Brackets that R closes, the outermost first; `None` if unknown.
    pub needed: Option<Vec<BracketKind>>,
    /// Columns to which R's lines return.
    pub returns: Vec<Column>,
    /// True if R has a tab.
    pub tabs: bool,
}

impl TriedWords {
    pub(super) fn new(engine: &Engine) -> Self {
        let language = &engine.language;
        let spelling = &*language.spelling;
        let words = spelling.words.get_or_init(|| spell_words(language).into());
        let right = engine.right.text();
        let mut texts: Vec<Box<[u8]>> = Vec::new();
        texts.extend(shortest::alphabet(engine).into_iter().map(|byte| Box::from([byte])));
        let bytes = texts.len();
        // R may begin in the midst of a word.
        let rest = first_word(right);
        let beginnings = words.iter().filter_map(|word| word.strip_suffix(rest));
        let cut = beginnings.filter(|word| !word.is_empty() && !rest.is_empty());
        let cut: FxHashSet<Box<[u8]>> =
            cut.flat_map(|word| [Box::from(word), [b" ", word].concat().into_boxed_slice()]).collect();
        texts.extend(words.iter().cloned());
        texts.extend(words.iter().map(|word| [b" ", &**word].concat().into_boxed_slice()));
        texts.extend(cut.iter().cloned());
        let names = engine.parser.names();
        texts.extend(names.iter().flat_map(|name| [Box::from(&**name), [b" ", &**name].concat().into_boxed_slice()]));
        texts.extend(spelling.openings.iter().cloned());
        let blocks = spelling.block_lines.iter().filter(|line| line.opens);
        texts.extend(blocks.map(|line| Box::from(line.text.as_bytes())));
        if let Some(shaped) = &language.shaped {
            let own = texts.split_off(bytes);
            texts.extend(own.into_iter().filter(|text| text.iter().all(|&byte| shaped.takes(byte))));
        }
        texts[bytes..].sort_unstable();
        texts.dedup();
        let costs = texts[bytes..].iter().map(|text| word_cost(spelling, text)).collect();
        let closers = engine.right.closers();
        Self {
            texts,
            costs,
            bytes,
            cut,
            needed: closers.map(|found| found.iter().rev().map(|closer| spelling.closed_by(closer.1)).collect()),
            returns: Vec::from_iter(returns(spelling, right).into_iter().map(|(column, _)| column)),
            tabs: right.contains(&b'\t'),
        }
    }
}

/// Cost of a word. A word that opens a bracket or a block costs little; a string costs more than its quotes alone.
fn word_cost(spelling: &Spelling, word: &[u8]) -> Cost {
    let bare = word.strip_prefix(b" ").unwrap_or(word);
    if bare.len() == 1 || spelling.is_empty_string(bare) {
        1
    } else if spelling.ends_open(bare) || bare.ends_with(b" ") {
        bare.len().div_ceil(4) as Cost
    } else if spelling.ends_quoted(bare) {
        WORD + 1
    } else {
        WORD
    }
}

/// The symbols of a language of more than one byte, or of a letter, each in its shortest text, of several the most readable.
fn spell_words(language: &Language) -> Vec<Box<[u8]>> {
    let lexer = &language.lexer;
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.sort_unstable_by_key(|&byte| (language.spelling.readability(byte), byte));
    let spell = |start: StateId, accept: AcceptId| {
        let (mut state, mut text) = (start, Vec::new());
        while lexer.accept(state) != accept || lexer.is_start(state) {
            let left = lexer.to_accept(state, accept).checked_sub(1)?;
            let closer = |&&byte: &&u8| {
                let next = lexer.step(state, byte);
                next != DEAD && lexer.to_accept(next, accept) == left
            };
            let &byte = bytes.iter().find(closer)?;
            text.push(byte);
            state = lexer.step(state, byte);
        }
        Some(text.into_boxed_slice())
    };
    // A soft keyword is a name too, and `x` is a shorter one.
    let lexemes = |accept| language.unmarked(accept);
    let alone = |lexeme| lexer.accept_sets().any(|accept| *lexemes(accept) == [lexeme]);
    let is_soft = |accept| lexemes(accept).len() > 1 && lexemes(accept).iter().any(|&lexeme| alone(lexeme));
    let is_symbol = |&accept: &AcceptId| !language.accept_role(accept).is_ignored() && !is_soft(accept);
    let accepts = || lexer.accept_sets().filter(is_symbol);
    let spelt = lexer.starts().flat_map(|start| accepts().map(move |accept| (start, accept)));
    let mut found: Vec<Box<[u8]>> = spelt.filter_map(|(start, accept)| spell(start, accept)).collect();
    found.retain(|text| text.len() > 1 || text.first().is_some_and(|&byte| is_word(byte)));
    found.sort_unstable();
    found.dedup();
    found
}
