//! Limits are data: unit, default and what passing one means.

/// Guard configurations of a language whose symbols need no separator between them (each is a state of the free
/// middle). Unit: states. Passing it refuses the language.
pub(crate) const FREE_STATES: usize = 200;

/// Modes of a language, the default one included. Unit: modes. Passing it refuses the language.
pub(crate) const MODES: usize = 64;

/// What the lexemes of a mode may take while they become an automaton. Python's have 1,500 states at most.
pub(crate) const LEXER: Determinising =
    Determinising { pattern_bytes: 200_000, nfa_bytes: 8 << 20, states: 20_000, work: 60_000_000 };

/// States of the joined lexemes of all modes, times the sets of lexemes that they can be. Unit: pairs. Passing it refuses the
/// language. Python has 260,000.
pub(crate) const LEXER_PAIRS: usize = 8_000_000;

/// Symbols of a language: lexemes and nonterminals. Unit: symbols. Passing it refuses the language. Python has 428.
pub(crate) const SYMBOLS: usize = 30_000;

/// Dots of a grammar, times the cube of its free states, which is what one round of closing its relations takes. Unit: steps.
/// Passing it refuses the language. JSON has 40.
pub(crate) const FREE_WORK: usize = 200_000_000;

/// Expansions of the search for the shortest completion. Unit: states taken off the queue. Passing it is an error, never
/// an answer. Contexts of real files take some hundred; 100,000 take some ten seconds and half a GB.
pub(crate) const COMPLETION_EXPANSIONS: usize = 100_000;

/// Expansions of a search where a token asks whether the middle can still end within its budget: what is not found
/// among so many is not known. Unit: states taken off the queue, some ten microseconds each, tenths of a millisecond
/// where much is open.
pub(crate) const LANDING_EXPANSIONS: usize = 400;

/// Expansions of a search for a plan once the middle has begun: where nothing is found it can go back to where
/// something was. Unit: states.
pub(crate) const LATER_EXPANSIONS: usize = 200;

/// Expansions of a second search for a plan where a middle begins and the first one found nothing, since all that
/// follows rests on it. Unit: states.
pub(crate) const FIRST_EXPANSIONS: usize = 2_000;

/// Expansions of a search by bytes where no other has found a plan. Unit: states.
pub(crate) const LAST_EXPANSIONS: usize = 2_000;

/// Bytes that have to follow at least from which on a plan is searched for by bytes at once. Unit: bytes.
pub(crate) const MANY_BYTES: u32 = 200;

/// Expansions of a search by bytes where so many have to follow at least: a state for each of them, and as many beside.
#[must_use]
pub(crate) fn straight_expansions(least: u32) -> usize {
    LAST_EXPANSIONS + 4 * least as usize
}

/// Expansions from one bracket of a plan to the next: where it is the wrong bracket, all that may follow would be
/// tried. Unit: states.
pub(crate) const BRACKET_EXPANSIONS: usize = 20;

/// Expansions from one bracket to the next where those brackets are open that R closes. Unit: states.
pub(crate) const MATCHED_EXPANSIONS: usize = 160;

/// Brackets open beyond those that R closes from which on they are closed before a plan is searched for. Unit: brackets.
pub(crate) const MANY_BRACKETS: usize = 4;

/// Expansions of a search for a plan after one of all the tokens, after which so many more are allowed: what few tokens
/// complete is found soon, and what is not found soon would take many.
#[must_use]
pub(crate) fn landing_expansions(left: usize) -> usize {
    (50 + 10 * left).min(LATER_EXPANSIONS / 2)
}

/// Expansions of a search where what the plan before comes to is a plan, but too long. Unit: states.
pub(crate) const SHORTER_EXPANSIONS: usize = 50;

/// States looked at for a way to the end of the cursor's line, before whole lines are tried. Unit: states.
pub(crate) const SCAFFOLD_EXPANSIONS: usize = 300;

/// Lines tried to complete a middle by whole lines; no more than the states that were looked at before. Unit: lines.
pub(crate) const SCAFFOLD_LINES: usize = 400;

/// Tokens that there must be room for: lines take some. Unit: tokens.
pub(crate) const SCAFFOLD_TOKENS: usize = 6;

/// Lines that such a completion may have. Unit: lines.
pub(crate) const SCAFFOLD_DEPTH: usize = 10;

/// Sets of the left chart that the searches of one landing mask may leave to one another. Unit: sets, of some hundred bytes to some kB.
pub(crate) const KNOWN_SETS: usize = 20_000;

/// Ways on from branches that searches may leave to one another. Unit: steps, of some 60 bytes.
pub(crate) const KNOWN_STEPS: usize = 200_000;

/// Plans of other tokens that are tried before a plan is searched for. Unit: plans.
pub(crate) const LANDING_HINTS: usize = 8;

/// Columns an indentation may have, left of the cursor and in the middle. Unit: columns. A line indented further has no
/// layout and is refused.
pub(crate) const COLUMN: u32 = 10_000;

/// Columns an indentation may have in R, whose chart grows with the square of a column: this one takes half a second
/// and 100 MB.
pub(crate) const RIGHT_COLUMN: u32 = 2_000;

/// Masks kept for all sessions of one language and vocabulary. Unit: bytes. Those not asked for lately are forgotten.
pub(crate) const MASK_BYTES: usize = 32 << 20;

/// States whose masks are kept. Unit: states, of some hundred bytes each.
pub(crate) const MASK_KEYS: usize = 60_000;

/// Masks kept by a session whose right context has a say in them. Unit: bytes. Passing it forgets them.
pub(crate) const OWN_MASK_BYTES: usize = 1 << 20;

/// Shapes of parse stacks told apart by the masks of one language and vocabulary. Unit: shapes, of some hundred bytes
/// each. Passing it starts afresh, masks included.
pub(crate) const STACK_FORMS: usize = 50_000;

/// Sets of the left chart that a session may have made since it was opened. Unit: sets, of half a kB each. Past it, sets
/// made during a mask are forgotten after it, and no longer left to the masks that follow.
pub(crate) const MASK_SETS: usize = 3_000;

/// Bytes of L between two places that a session remembers, for the next one to go on from. Unit: bytes. Each place takes
/// some fifty bytes, and stepping so far some ten microseconds.
pub(crate) const STOP_BYTES: usize = 128;

/// Sets of the left chart that the sessions sharing an engine may have made since its first one was opened. Unit: sets,
/// of half a kB each. Past it, the next session opens its contexts afresh.
pub(crate) const REUSED_SETS: usize = 10_000;

/// Requirements that the sessions sharing an engine may have made since then. Unit: requirements, of some hundred bytes each;
/// those of long lists in R take more.
pub(crate) const REUSED_REQUIREMENTS: usize = 10_000;

/// Texts that may bind or match which the sessions sharing an engine may have met. Unit: texts, some 30 bytes each.
pub(crate) const REUSED_TEXTS: usize = 100_000;

/// States whose tokens that a mask leaves open have been settled, which one engine's sessions keep. Unit: states, of some hundred bytes.
pub(crate) const SETTLED_MASKS: usize = 1 << 12;

/// Texts that are bound which a search for a short completion tries. Unit: texts.
pub(crate) const TRIED_NAMES: usize = 8;

/// Bytes that are looked ahead for what every continuation begins with. Unit: bytes.
pub(crate) const FORCED_BYTES: usize = 256;

/// Predictions that the sessions of a language share. Unit: predictions, of some ten kB each. Passing it starts afresh.
pub(crate) const SHARED_PREDICTIONS: usize = 1_000;

/// What a shape may take while it becomes an automaton, so that one that is too large is refused within 100 ms.
pub(crate) const SHAPE: Determinising =
    Determinising { pattern_bytes: 4_000, nfa_bytes: 1 << 20, states: 4_000, work: 8_000_000 };

/// States of a shape's automaton once it is minimal. Unit: states. Passing it refuses the shape.
pub(crate) const SHAPE_STATES: usize = 1_000;

/// Lines of a shape. Unit: lines. What a session of a shape keeps of R's chart grows with their square.
pub(crate) const SHAPE_LINES: usize = 16;

/// States of a shape between characters. Unit: states. Passing it refuses the shape, for the same reason.
pub(crate) const SHAPE_BOUNDARIES: usize = 24;

/// Lexemes of a token that the walk over the token table follows. Unit: lexemes. Longer ones are left to the trie walk.
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
    /// The automaton that is not deterministic yet, in which repetitions with a count are written out. Unit: bytes.
    pub nfa_bytes: usize,
    /// States of the deterministic one before it is minimal. Unit: states.
    pub states: usize,
    /// Steps of making it deterministic: for each of its states, the bytes that the set of states takes which it stands for,
    /// times the classes of bytes that it is left by. Unit: steps, of about five nanoseconds each.
    pub work: usize,
}
