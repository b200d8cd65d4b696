//! Limits as data: unit, default, and the effect of passing each.

/// Guard configurations of a language whose symbols need no separator between them (each is a state of the free
/// middle). Unit: states. Passing it refuses the language.
pub(crate) const FREE_STATES: usize = 200;

/// Modes of a language, the default one included. Unit: modes. Passing it refuses the language.
pub(crate) const MODES: usize = 64;

/// Limits on the automaton of a mode's lexemes. Python's have 1,500 states at most.
pub(crate) const LEXER: Determinising =
    Determinising { pattern_bytes: 200_000, nfa_bytes: 8 << 20, states: 20_000, work: 60_000_000 };

/// States of the joined lexemes of all modes, times the sets of lexemes that they can be. Unit: pairs. Passing it
/// refuses the language. Python has 260,000.
pub(crate) const LEXER_PAIRS: usize = 8_000_000;

/// Symbols of a language: lexemes and nonterminals. Unit: symbols. Passing it refuses the language. Python has 428.
pub(crate) const SYMBOLS: usize = 30_000;

/// Dots of a grammar, times the cube of its free states: the work of one round of closing its relations. Unit: steps.
/// Passing it refuses the language. JSON has 40.
pub(crate) const FREE_WORK: usize = 200_000_000;

/// Expansions of the search for the shortest completion. Unit: states taken off the queue. Passing it is an error, never
/// an answer. Contexts of real files take some hundred; 100,000 take some ten seconds and half a GB.
pub(crate) const COMPLETION_EXPANSIONS: usize = 100_000;

/// Expansions of a search when a token needs to know whether the middle can still end within its budget. Beyond it the
/// answer is unknown. Unit: states taken off the queue. A state takes some ten microseconds, tenths of a millisecond
/// where much is open.
pub(crate) const LANDING_EXPANSIONS: usize = 400;

/// Expansions of a search for a plan once the middle has begun: where nothing is found it can go back to where
/// something was. Unit: states.
pub(crate) const LATER_EXPANSIONS: usize = 200;

/// Expansions of a second search for a plan where a middle begins and the first search found nothing, since all that
/// follows rests on that plan. Unit: states.
pub(crate) const FIRST_EXPANSIONS: usize = 2_000;

/// Expansions of a search by bytes where no other has found a plan. Unit: states.
pub(crate) const LAST_EXPANSIONS: usize = 2_000;

/// Least missing bytes from which a plan is searched for by bytes at once. Unit: bytes.
pub(crate) const MANY_BYTES: u32 = 200;

/// Expansions of a search by bytes that needs at least `least` bytes: a state for each byte, and as many besides.
#[must_use]
pub(crate) fn straight_expansions(least: u32) -> usize {
    LAST_EXPANSIONS + 4 * least as usize
}

/// Expansions from one bracket of a plan to the next. After a wrong bracket a search would try all that may follow.
/// Unit: states.
pub(crate) const BRACKET_EXPANSIONS: usize = 20;

/// Expansions from one bracket to the next where exactly the brackets are open that R closes. Unit: states.
pub(crate) const MATCHED_EXPANSIONS: usize = 160;

/// Brackets open beyond those that R closes that are closed before the search for a plan. Unit: brackets.
pub(crate) const MANY_BRACKETS: usize = 4;

/// Expansions of a search for a plan after one token of a mask, if `left` more tokens are allowed. A middle that few
/// tokens complete is found soon; one that is not found soon would need many.
#[must_use]
pub(crate) fn landing_expansions(left: usize) -> usize {
    (50 + 10 * left).min(LATER_EXPANSIONS / 2)
}

/// Expansions of a search where the previous plan still fits, but is too long. Unit: states.
pub(crate) const SHORTER_EXPANSIONS: usize = 50;

/// States looked at for a way to the end of the cursor's line, before whole lines are tried. Unit: states.
pub(crate) const SCAFFOLD_EXPANSIONS: usize = 300;

/// Lines tried to complete a middle by whole lines; at most as many as states were looked at before. Unit: lines.
pub(crate) const SCAFFOLD_LINES: usize = 400;

/// Least budget for a completion by lines. Unit: tokens.
pub(crate) const SCAFFOLD_TOKENS: usize = 6;

/// Most lines of such a completion. Unit: lines.
pub(crate) const SCAFFOLD_DEPTH: usize = 10;

/// Sets of the left chart that searches of one landing mask may share. Unit: sets, of some hundred bytes to some kB.
pub(crate) const KNOWN_SETS: usize = 20_000;

/// Steps from branches that searches may share. Unit: steps, of some 60 bytes.
pub(crate) const KNOWN_STEPS: usize = 200_000;

/// Plans of other tokens that are tried before a search. Unit: plans.
pub(crate) const LANDING_HINTS: usize = 8;

/// Columns an indentation may have, left of the cursor and in the middle. Unit: columns. A line indented further has no
/// layout and is refused.
pub(crate) const COLUMN: u32 = 10_000;

/// Columns an indentation may have in R, whose chart grows with the square of a column: this one takes half a second
/// and 100 MB.
pub(crate) const RIGHT_COLUMN: u32 = 2_000;

/// Columns of an indentation in texts around several open holes. Unit: columns. A hole takes some microseconds for each,
/// and a line's first symbols as much again.
pub(crate) const HOLE_COLUMNS: usize = 400;

/// Items of the chart over texts with several open holes. Unit: items, of eight bytes each and their share of a node.
pub(crate) const HOLE_ITEMS: usize = 30_000_000;

/// Masks kept for all sessions of one language and vocabulary. Unit: bytes. Those not asked for lately are forgotten.
pub(crate) const MASK_BYTES: usize = 32 << 20;

/// Parts of walks kept for all sessions of one language and vocabulary. Unit: bytes.
pub(crate) const PART_BYTES: usize = if cfg!(test) { 1 << 17 } else { 16 << 20 };

/// Questions by which a part of a walk is found again. Unit: questions. A part that asks more is not kept.
pub(crate) const PART_QUESTIONS: usize = 64;

/// Questions that the walk of a part asks, those to sets that it makes itself included. Unit: questions. A part that
/// asks more is not kept.
pub(crate) const PART_READS: usize = 1_000;

/// States whose masks are kept. Unit: states, of some hundred bytes each.
pub(crate) const MASK_KEYS: usize = 60_000;

/// Masks of constrained states that a session keeps. Unit: bytes. Passing it forgets them.
pub(crate) const OWN_MASK_BYTES: usize = 1 << 20;

/// Forms of parse stacks that the masks of one language and vocabulary distinguish. Unit: forms, of some hundred bytes
/// each. Passing it clears them, and the masks.
pub(crate) const STACK_FORMS: usize = 50_000;

/// Sets of the left chart that a session may make after it was opened. Unit: sets, of half a kB each. Past it, sets
/// made for a mask are forgotten after it, instead of being left to later masks.
pub(crate) const MASK_SETS: usize = 3_000;

/// Bytes of L between two places that a session remembers as starts for the next one. Unit: bytes. Each place takes
/// some fifty bytes, and stepping this far takes some ten microseconds.
pub(crate) const STOP_BYTES: usize = 128;

/// Sets of the left chart that the sessions sharing an engine may make. Unit: sets, of half a kB each. Past it, the
/// next session opens its contexts afresh.
pub(crate) const REUSED_SETS: usize = 10_000;

/// Requirements that the sessions sharing an engine may make. Unit: requirements, of some hundred bytes each; those of
/// long lists in R take more.
pub(crate) const REUSED_REQUIREMENTS: usize = 10_000;

/// Texts that may bind or match, in the sessions that share an engine. Unit: texts, some 30 bytes each.
pub(crate) const REUSED_TEXTS: usize = 100_000;

/// States with settled open tokens that the sessions of one engine keep. Unit: states, of some hundred bytes.
pub(crate) const SETTLED_MASKS: usize = 1 << 12;

/// Bound texts that a search for a short completion tries. Unit: texts.
pub(crate) const TRIED_NAMES: usize = 8;

/// Bytes looked ahead for the common beginning of all continuations. Unit: bytes.
pub(crate) const FORCED_BYTES: usize = 256;

/// Predictions that the sessions of a language share. Unit: predictions, of some ten kB each. Passing it clears them.
pub(crate) const SHARED_PREDICTIONS: usize = 1_000;

/// Items of free parts that the sessions of a language share. Unit: items, of twelve bytes. Passing it drops them.
pub(crate) const SHARED_ITEMS: usize = 2_000_000;

/// Free parts and lists that the sessions of a language share. Unit: parts. Passing it drops them.
pub(crate) const SHARED_PARTS: usize = 20_000;

/// Limits on the automaton of a shape, so that one that is too large is refused within 100 ms.
pub(crate) const SHAPE: Determinising =
    Determinising { pattern_bytes: 4_000, nfa_bytes: 1 << 20, states: 4_000, work: 8_000_000 };

/// States of a shape's automaton once it is minimal. Unit: states. Passing it refuses the shape.
pub(crate) const SHAPE_STATES: usize = 1_000;

/// Lines of a shape. Unit: lines. The part of R's chart that a session of a shape keeps grows with their square.
pub(crate) const SHAPE_LINES: usize = 16;

/// States of a shape between characters. Unit: states. Passing it refuses the shape, for the same reason.
pub(crate) const SHAPE_BOUNDARIES: usize = 24;

/// Lexemes of a token that the walk over the token table follows. Unit: lexemes. Longer tokens are left to the trie
/// walk.
pub(crate) const TOKEN_LEXEMES: usize = 128;

/// Memory of the product of a lexer and a shape, if all pairs of their states came up. Unit: bytes. Passing it refuses the
/// shape.
pub(crate) const SHAPE_PRODUCT_BYTES: usize = 128 << 20;

/// Places of a shape whose tokens a session knows. Unit: places, of some masks each. Passing it forgets them.
pub(crate) const SHAPE_INDEXES: usize = 32;

/// Limits of the way from regular expressions to an automaton over bytes. Passing one refuses them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Determinising {
    /// All expressions together. Unit: bytes.
    pub pattern_bytes: usize,
    /// The nondeterministic automaton, in which counted repetitions are written out. Unit: bytes.
    pub nfa_bytes: usize,
    /// States of the deterministic one before it is minimal. Unit: states.
    pub states: usize,
    /// Steps of the determinisation: for each state, the bytes of its set of states times its classes of bytes. Unit:
    /// steps, of about five nanoseconds each.
    pub work: usize,
}
