//! Lexer, layout stage and parser stepped together, one byte at a time.
//!
//! Several branches live only while a symbol may have ended or may still go on. The parser does not know R: it drops
//! branches that cannot be parsed, and keeps those that cannot be completed.

use crate::bits::{self, BitSet, contains};
use crate::chart::left::{Checkpoint, Expects, FIRST_SET, Indents, LeftChart, NO_SET, Read, Set};
use crate::chart::next::{Next, Nexts};
use crate::chart::predict::Predictions;
use crate::chart::texts::{BEGUN, PLAIN, Texts};
use crate::engine::branch::{BracketSide, Branch, InLine, Opens};
use crate::ids::{AcceptId, GuardId, IndentationId, ModeId, NextId, SetId, ShapeId, StateId, TextId};
use crate::language::ahead::Ahead;
use crate::language::compiled::Language;
use crate::language::marks::Slots;
use crate::lexing::branch::{self, Cut, Reader};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::layout::{Column, Columns, Indentations};
use crate::lexing::lexer::{DEAD, Lexer};
use crate::lexing::product::live_beside;
use crate::lexing::roles::{LineByte, Role, line_bytes};
use crate::limits;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::sync::Arc;

/// The left chart, and the tables that branches over it refer to.
#[derive(Debug)]
pub(crate) struct Parser {
    pub(super) language: Arc<Language>,
    pub(super) left: LeftChart,
    pub(super) predictions: Predictions,
    columns: Columns,
    indentations: Indentations,
    guards: Guards,
    line_bytes: Vec<LineByte>,
    nexts: Nexts,
    /// Accept sets that a symbol in progress with guards can still become.
    guarded_live: FxHashMap<(StateId, GuardId), BitSet>,
    /// Accept sets that a symbol in progress can become after at least one more byte.
    live_later: FxHashMap<StateId, Box<[u64]>>,
    /// Brackets and blocks that the middle must not close.
    pub(super) least: Least,
    /// Text assumed for symbols that begin from here on.
    reads: Reads,
    /// Marks that have been compared since `reads` was set.
    asked: Expects,
}

/// Text assumed for a symbol that may bind or match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The symbol's own text.
    Text,
    /// One text for all: one that equals nothing, or one that equals everything.
    Always(TextId),
}

/// Brackets and blocks that must stay open, 0 without a floor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Least {
    /// Brackets.
    pub brackets: u32,
    /// Blocks.
    pub blocks: u32,
}

impl Parser {
    /// A parser before the first symbol. `predictions` are those of R's chart.
    pub(super) fn new(language: &Arc<Language>, mut predictions: Predictions, slots: Slots) -> Self {
        Self {
            left: LeftChart::new(language, &mut predictions, slots),
            reads: Reads::Text,
            asked: Expects::default(),
            predictions,
            columns: Columns::default(),
            indentations: Indentations::default(),
            guards: Guards::default(),
            line_bytes: line_bytes(&language.lexer, |accept| language.accept_role(accept)),
            nexts: Nexts::default(),
            guarded_live: FxHashMap::default(),
            live_later: FxHashMap::default(),
            least: Least::default(),
            language: language.clone(),
        }
    }

    /// The branches before any text, one for each mode in force. Where some lexemes stand at the first byte of a file
    /// alone, one of them is in progress.
    #[must_use]
    pub(crate) fn first_branches(&self) -> Vec<Branch> {
        let lexer = &self.language.lexer;
        let modes = bits::ones(self.modes_of(FIRST_SET)).map(ModeId::from_index);
        let starts = match lexer.file_start() {
            Some(start) => vec![start],
            None => modes.map(|mode| lexer.start_of(mode)).collect(),
        };
        let first = |state| Branch {
            set: FIRST_SET,
            state,
            guards: NO_GUARDS,
            line: if self.language.layout.is_some() {
                InLine::Start { column: Column::ZERO, kept: None }
            } else {
                InLine::Middle
            },
            depth: 0,
            indentation: IndentationId::default(),
            joined: false,
            at: ShapeId::default(),
            text: PLAIN,
        };
        starts.into_iter().map(first).collect()
    }

    /// The language.
    pub(crate) fn language(&self) -> &Arc<Language> {
        &self.language
    }

    /// The left chart's size, to go back to.
    #[must_use]
    pub(crate) fn mark(&self) -> Checkpoint {
        self.left.mark()
    }

    /// Forget the sets made since a mark, and return how many are left. No branch made since may be used again.
    pub(super) fn truncate(&mut self, mark: Checkpoint) -> usize {
        self.left.truncate(mark);
        self.nexts.truncate(self.left.len());
        self.left.len()
    }

    /// The number of sets.
    #[must_use]
    pub(crate) fn set_count(&self) -> usize {
        self.left.len()
    }

    /// A set of the left chart.
    #[inline]
    pub(crate) fn set(&self, id: SetId) -> &Set {
        self.left.set(id)
    }

    /// The modes in force at a set, as a mask.
    #[inline]
    pub(crate) fn modes_of(&self, set: SetId) -> u64 {
        self.left.set(set).modes
    }

    /// The modes in force at a set after an ignored lexeme, as a mask. It is a lexeme of code.
    #[inline]
    pub(crate) fn modes_after_ignored(&self, set: SetId) -> u64 {
        let modes = self.modes_of(set);
        if self.language.grammar.unites_modes() { modes & self.language.grammar.code_modes() } else { modes }
    }

    /// The modes in force at a branch between two symbols, as a mask.
    pub(crate) fn modes_between(&self, branch: &Branch) -> u64 {
        let lexer = &self.language.lexer;
        let modes = bits::ones(self.modes_of(branch.set));
        modes
            .filter(|&mode| lexer.start_of(ModeId::from_index(mode)) == branch.state)
            .fold(0, |mask, mode| mask | 1 << mode)
    }

    /// Call `each` with a branch between two symbols, in each of some modes.
    #[inline]
    fn in_modes(&mut self, branch: Branch, modes: u64, mut each: impl FnMut(&mut Self, Branch, ())) {
        let mut rest = modes;
        while rest != 0 {
            let state = self.language.lexer.start_of(first_mode(rest));
            rest &= rest - 1;
            each(self, branch.with_state(state), ());
        }
    }

    pub(crate) fn scan(&mut self, set: SetId, read: Read) -> SetId {
        self.left.scan(&self.language, &mut self.predictions, set, read)
    }

    /// The left chart, the predictions of both charts and the columns of L's blocks.
    pub(super) fn charts(&self) -> (&LeftChart, &Predictions, &Columns) {
        (&self.left, &self.predictions, &self.columns)
    }

    /// Step every branch by one byte, and drop those that cannot be parsed. Viability is not checked.
    pub(crate) fn step_all(&mut self, branches: &[Branch], byte: u8, out: &mut Vec<Branch>) {
        out.clear();
        for branch in branches {
            branch::step(self, *branch, byte, out);
        }
        if self.language.marks.is_some() {
            self.read_texts(byte, out);
        }
        if out.len() > 1 {
            out.sort_unstable();
            out.dedup();
        }
    }

    /// The branch after a byte that only continues its symbol: nothing ends, nothing forks. `None` where the general
    /// step is needed.
    #[inline]
    #[must_use]
    pub(crate) fn continued(&self, branch: &Branch, byte: u8) -> Option<Branch> {
        let lexer = &self.language.lexer;
        if branch.guards != NO_GUARDS || lexer.is_start(branch.state) || Texts::is_known(branch.text) {
            return None;
        }
        let state = lexer.step(branch.state, byte);
        if state == DEAD || lexer.accepts(branch.state) && !lexer.accepts(state) {
            return None;
        }
        Some(Branch { state, joined: false, ..*branch })
    }

    /// Kinds of marks that can be read at a set.
    #[inline(always)]
    pub(crate) fn expects(&self, set: SetId) -> Expects {
        self.left.set(set).expects
    }

    /// Return whether the text of a symbol in progress matters: it may bind or match where it began.
    #[inline]
    pub(crate) fn asks_text(&mut self, set: SetId, state: StateId) -> bool {
        let Some(marks) = &self.language.marks else { return false };
        let asks = self.left.set(set).expects.any() && marks.are_live(state);
        if asks {
            self.note_asked(set);
        }
        asks
    }

    /// Set the text assumed for symbols from here on.
    pub(crate) fn set_reads(&mut self, reads: Reads) {
        (self.reads, self.asked) = (reads, Expects::default());
    }

    /// Marks that have been compared since then.
    pub(crate) fn asked(&self) -> Expects {
        self.asked
    }

    /// Record that a text has been compared at a set.
    pub(crate) fn note_asked(&mut self, set: SetId) {
        let expects = self.expects(set);
        self.asked.binds |= expects.binds;
        self.asked.matches |= expects.matches;
    }

    /// Record that a text may have been compared with the bound one.
    pub(crate) fn note_match(&mut self) {
        self.asked.matches = true;
    }

    /// The text assumed for all symbols, or [`PLAIN`] if each keeps its own.
    pub(crate) fn assumed_text(&self) -> TextId {
        match self.reads {
            Reads::Always(text) => text,
            Reads::Text => PLAIN,
        }
    }

    /// Texts that bind and match.
    pub(crate) fn texts(&mut self) -> &mut Texts {
        &mut self.left.texts
    }

    /// The bytes of the texts that are kept.
    pub(crate) fn bytes_of_texts(&self) -> impl Iterator<Item = u8> + '_ {
        self.left.texts.bytes_met()
    }

    /// Return whether the next byte may belong to a text that binds or matches: of the symbol in progress, or of one
    /// that begins.
    pub(crate) fn may_read_text(&mut self, branch: &Branch) -> bool {
        if self.language.marks.is_none() || self.expects(branch.set).any() {
            return self.language.marks.is_some();
        }
        let lexer = &self.language.lexer;
        lexer.accepts(branch.state)
            && self.end_symbol(branch, lexer.accept(branch.state)).is_some_and(|ended| self.expects(ended.set).any())
    }

    /// Texts that are bound or that R asks for, as many as are worth trying.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        self.left.texts.names()
    }

    /// Number of texts kept.
    pub(crate) fn text_count(&self) -> usize {
        self.left.texts.len()
    }

    /// Texts that may have to come again at a set, and, where one may be bound, those that R asks for.
    pub(crate) fn wanted_texts(&mut self, set: SetId) -> Vec<TextId> {
        let mut found = self.left.all_bound(&self.language, &self.predictions, set);
        if self.expects(set).binds {
            found.extend_from_slice(self.left.texts.named());
        }
        found
    }

    /// Return whether a text is the only one that may have to come next at a set, and binds nothing there.
    pub(crate) fn wants_only(&mut self, set: SetId, text: TextId) -> bool {
        let Self { language, left, predictions, .. } = self;
        let mut matching = language.marks.iter().flat_map(|marks| marks.matching());
        !left.set(set).expects.binds
            && matching.all(|lexeme| left.bound(language, predictions, set, lexeme).iter().all(|&bound| bound == text))
    }

    /// All texts that are bound in the stack of a set.
    pub(crate) fn bound_around(&self, set: SetId) -> Vec<TextId> {
        self.left.bound_around(set)
    }

    /// Add a byte to the texts of the symbols in progress that may bind or match.
    fn read_texts(&mut self, byte: u8, branches: &mut [Branch]) {
        for branch in branches {
            if branch.text == PLAIN {
                continue;
            }
            let start = self.language.lexer.is_start(branch.state);
            if start || !self.asks_text(branch.set, branch.state) {
                branch.text = PLAIN;
                continue;
            }
            branch.text = match self.reads {
                Reads::Always(text) => text,
                Reads::Text => {
                    let text = self.left.texts.push(branch.text, byte);
                    // A text that begins none of the wanted texts is like any other.
                    if self.expects(branch.set).binds || self.begins_wanted(branch.set, text) { text } else { PLAIN }
                }
            };
        }
    }

    fn begins_wanted(&mut self, set: SetId, text: TextId) -> bool {
        let wanted = self.wanted_texts(set);
        wanted.into_iter().any(|wanted| self.left.texts.begins(&self.language.lexer, wanted, text))
    }

    /// Read the layout symbols before a line's first symbol at a column.
    pub(crate) fn begin_line(&mut self, branch: &Branch, column: Column) -> Option<Branch> {
        let mut begun = Branch { line: InLine::Middle, ..*branch };
        loop {
            let top = self.indentations.top(begun.indentation);
            // CPython's rule: a line right of the top opens one block, any other line closes blocks down to its own
            // column. So an INDENT is possible only before any DEDENT; a column between two open blocks is refused.
            match column.compare(top) {
                Some(Ordering::Equal) => return Some(begun),
                Some(Ordering::Greater) if begun.indentation == branch.indentation => {
                    if self.indentations.depth(begun.indentation) >= self.language.limits.blocks {
                        return None;
                    }
                    let id = self.columns.intern(column);
                    let indents = Indents { own: column.least_bytes(), deeper: column.least_bytes_right_of(true) };
                    self.left.price(id, indents);
                    begun.set = self.scan(begun.set, Read::Indent(id));
                    begun.indentation = self.indentations.push(begun.indentation, column);
                    return (begun.set != NO_SET).then_some(begun);
                }
                // Only the wide column pops, as in CPython's tokenizer; the last comparison looks at both.
                _ if column.wide < top.wide => {
                    if self.indentations.depth(begun.indentation) <= self.least.blocks && self.least.blocks > 0 {
                        return None;
                    }
                    begun.set = self.scan(begun.set, Read::Dedent);
                    begun.indentation = self.indentations.parent(begun.indentation)?;
                    if begun.set == NO_SET {
                        return None;
                    }
                }
                _ => return None,
            }
        }
    }

    /// A branch after the symbol in progress has ended as `accept`, with unchanged guards, in one of the modes in force.
    pub(crate) fn end_symbol(&mut self, branch: &Branch, accept: AcceptId) -> Option<Branch> {
        let mut found = None;
        branch::end_symbol(self, *branch, accept, |_, ended, ()| found = Some(ended));
        found
    }

    /// Call `each` with the branches after a symbol that the lexer hands on, unless the parser refuses it.
    #[inline]
    fn pass_on(&mut self, branch: Branch, accept: AcceptId, each: impl FnMut(&mut Self, Branch, ())) {
        let set = self.scan(branch.set, Read::Accepted(accept, branch.text));
        if set != NO_SET {
            let modes = self.modes_of(set);
            self.in_modes(Branch { set, text: PLAIN, ..branch }, modes, each);
        }
    }

    /// Return whether a symbol in progress can still become one that may come here, or that is ignored. The parser
    /// refuses a symbol only at its end; this finds the byte from which refusal was certain.
    #[must_use]
    pub(crate) fn can_go_on(&self, branch: &Branch) -> bool {
        let lexer = &self.language.lexer;
        lexer.is_start(branch.state) || lexer.live(branch.state).any(|accept| self.can_read(branch, accept))
    }

    /// Return whether the symbol in progress of a branch may end as an accept set, as far as grammar and brackets
    /// decide it.
    pub(crate) fn can_read(&self, branch: &Branch, accept: AcceptId) -> bool {
        match self.language.accept_role(accept) {
            Role::Blank | Role::Comment | Role::Join => true,
            Role::Newline if branch.depth > 0 => true,
            Role::Open if branch.depth >= self.language.limits.brackets => false,
            _ => self.left.can_scan(&self.language, &self.predictions, branch.set, accept),
        }
    }

    /// Return whether the symbol in progress may end here.
    pub(crate) fn may_end(&mut self, branch: &Branch) -> bool {
        let accept = self.language.lexer.accept(branch.state);
        self.end_symbol(branch, accept).is_some()
    }

    /// Return whether a branch is in an indentation.
    pub(crate) fn is_indentation(&self, branch: &Branch) -> bool {
        self.indentation(branch).is_some()
    }

    /// The column of the next byte, in an indentation.
    pub(crate) fn indentation(&self, branch: &Branch) -> Option<Column> {
        match branch.line {
            InLine::Start { column, .. } if self.language.lexer.is_start(branch.state) => Some(column),
            InLine::Start { .. } | InLine::Middle => None,
        }
    }

    /// Call `each` with the columns of the open blocks, innermost first.
    pub(crate) fn for_each_block(&self, indentation: IndentationId, mut each: impl FnMut(Column)) {
        let mut at = indentation;
        while let Some(parent) = self.indentations.parent(at) {
            each(self.indentations.top(at));
            at = parent;
        }
    }

    /// Number of open blocks.
    pub(crate) fn blocks(&self, indentation: IndentationId) -> u32 {
        self.indentations.depth(indentation)
    }

    /// The column of the innermost block.
    pub(crate) fn top(&self, indentation: IndentationId) -> Column {
        self.indentations.top(indentation)
    }

    /// The columns of the open blocks, innermost first, the module level left out.
    pub(crate) fn columns_of(&self, indentation: IndentationId) -> Vec<Column> {
        self.indentations.columns(indentation)
    }

    pub(crate) fn nesting(&self, branch: &Branch) -> BracketSide {
        if self.language.layout.is_some() && branch.depth == 0 { BracketSide::Outside } else { BracketSide::Inside }
    }

    /// Run `act` without the floor: brackets and blocks of L and R are not subject to it.
    pub(crate) fn without_floor<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let least = std::mem::take(&mut self.least);
        let done = act(self);
        self.least = least;
        done
    }

    /// Number of open blocks at the cursor: those at or left of its column where it stands in an indentation.
    pub(super) fn blocks_left_of(&self, branch: &Branch) -> u32 {
        let open = self.indentations.depth(branch.indentation);
        let lexer = &self.language.lexer;
        let ended = !lexer.is_start(branch.state) && lexer.accepts(branch.state);
        let newline = ended && self.language.accept_role(lexer.accept(branch.state)) == Role::Newline;
        let column = match branch.line {
            _ if newline && branch.depth == 0 => Some(Column::ZERO),
            InLine::Middle => None,
            InLine::Start { column, kept } => Some(kept.unwrap_or(column)),
        };
        match column {
            None => open,
            Some(column) => {
                let mut right = 0;
                self.for_each_block(branch.indentation, |block| right += u32::from(block.wide > column.wide));
                open - right
            }
        }
    }

    /// Return whether no bracket may be closed at a depth.
    #[inline]
    pub(crate) fn is_on_floor(&self, depth: u32) -> bool {
        self.least.brackets > 0 && depth <= self.least.brackets
    }

    #[inline]
    pub(crate) fn is_at_limit(&self, branch: &Branch) -> bool {
        let limits = self.language.limits;
        branch.depth >= limits.brackets || self.indentations.depth(branch.indentation) >= limits.blocks
    }

    /// The limit of the language that a branch has reached, for people.
    #[must_use]
    pub(crate) fn limit_reached(&self, branches: &[Branch]) -> Option<String> {
        let limits = self.language.limits;
        branches.iter().find(|branch| self.is_at_limit(branch)).map(|branch| {
            let (count, what) =
                if branch.depth >= limits.brackets { (limits.brackets, "brackets") } else { (limits.blocks, "blocks") };
            format!("{count} {what} are open, and no more may be")
        })
    }

    /// Return whether a block must open here and the limit on blocks forbids it.
    pub(super) fn needs_one_block_more(&self, branch: &Branch) -> bool {
        self.indentations.depth(branch.indentation) >= self.language.limits.blocks
            && self.opens_block(branch.set) == Opens::Always
    }

    /// Return whether the line that begins after a set is the first one of a block.
    pub(super) fn opens_block(&self, set: SetId) -> Opens {
        let Some((indent, _)) = self.language.grammar.indent_dedent else { return Opens::Never };
        let grammar = &self.language.grammar;
        let items = &self.left.set(set).items;
        if items.is_empty() {
            Opens::Maybe
        } else if items.iter().all(|item| grammar.next(item.dot) == indent) {
            Opens::Always
        } else if items.iter().any(|item| contains(grammar.first(item.dot), indent.index())) {
            Opens::Maybe
        } else {
            Opens::Never
        }
    }

    /// An interned set of guards.
    pub(crate) fn guards_of(&mut self, states: &[StateId]) -> GuardId {
        self.guards.intern(&self.language.lexer, states.to_vec())
    }

    /// The states of a set of guards.
    pub(crate) fn guard_states(&self, id: GuardId) -> &[StateId] {
        self.guards.states(id)
    }

    /// The interned guards.
    pub(super) fn guards_mut(&mut self) -> &mut Guards {
        &mut self.guards
    }

    /// Return whether the set of a branch, on an unconstrained stack, allows an accept set that its symbol in progress,
    /// with guards, can become.
    pub(super) fn takes_beside(&mut self, branch: &Branch, outside: bool) -> bool {
        let id = self.next_id(branch.set);
        let Self { language, guards, guarded_live, .. } = self;
        let find = || live_beside(&language.lexer, guards, branch.state, branch.guards);
        let live = guarded_live.entry((branch.state, branch.guards)).or_insert_with(find);
        self.nexts.get(id).takes(outside, live.words())
    }

    /// Accept sets that a symbol in progress can become after at least one more byte, as a mask.
    pub(crate) fn live_later(&mut self, state: StateId) -> &[u64] {
        let lexer = &self.language.lexer;
        self.live_later.entry(state).or_insert_with(|| live_later(lexer, state))
    }

    /// Symbols that may come after reading an accept set at a set of an unconstrained stack. `None` if the accept set
    /// cannot be read.
    pub(crate) fn ahead(&mut self, set: SetId, accept: AcceptId) -> Option<Ahead> {
        self.left.ahead(&self.language, &mut self.predictions, set, accept)
    }

    /// Symbols that a set of an unconstrained stack allows next.
    #[inline]
    pub(crate) fn next(&mut self, set: SetId) -> &Next {
        let id = self.next_id(set);
        self.nexts.get(id)
    }

    #[inline]
    fn next_id(&mut self, set: SetId) -> NextId {
        match self.nexts.known(set) {
            Some(known) => known,
            None => self.nexts.of(&self.language, &self.left, &self.predictions, set),
        }
    }
}

/// The parser reads a symbol as soon as it has ended, so that a branch which cannot be parsed is dropped at once.
impl Reader for Parser {
    type Branch = Branch;
    type Read = ();

    const NOTHING: () = ();

    #[inline(always)]
    fn lexer(&self) -> &Lexer {
        &self.language.lexer
    }

    #[inline(always)]
    fn role(&self, accept: AcceptId) -> Role {
        self.language.accept_role(accept)
    }

    #[inline(always)]
    fn line_byte(&self, byte: u8) -> LineByte {
        self.line_bytes[byte as usize]
    }

    #[inline]
    fn step_guards(&mut self, guards: GuardId, byte: u8) -> Option<GuardId> {
        self.guards.step(&self.language.lexer, guards, byte)
    }

    #[inline]
    fn add_guard(&mut self, guards: GuardId, state: StateId) -> GuardId {
        self.guards.with(&self.language.lexer, guards, state)
    }

    #[inline]
    fn pass_over(&mut self, branch: Branch, each: impl FnMut(&mut Self, Branch, ())) {
        let modes = self.modes_after_ignored(branch.set);
        self.in_modes(branch, modes, each);
    }

    fn indent(&mut self, branch: Branch, byte: u8) -> Option<Branch> {
        let InLine::Start { column, kept } = branch.line else { return Some(branch) };
        let column = column.after(byte);
        (column.wide <= limits::COLUMN).then_some(Branch { line: InLine::Start { column, kept }, ..branch })
    }

    fn join(&mut self, branch: Branch) -> Option<Branch> {
        let line = match branch.line {
            InLine::Start { column, kept } => InLine::Start { column, kept: kept.or(column.kept()) },
            InLine::Middle => InLine::Middle,
        };
        Some(Branch { line, joined: true, ..branch })
    }

    #[inline]
    fn end_line(&mut self, branch: Branch, accept: AcceptId, each: impl FnMut(&mut Self, Branch, ())) {
        if branch.depth > 0 {
            self.pass_over(branch, each);
        } else {
            self.pass_on(branch.at_line_start(), accept, each);
        }
    }

    #[inline]
    fn read(&mut self, branch: Branch, accept: AcceptId, role: Role, each: impl FnMut(&mut Self, Branch, ())) {
        let depth = match role {
            Role::Open if branch.depth >= self.language.limits.brackets => return,
            Role::Open => branch.depth + 1,
            Role::Close if self.is_on_floor(branch.depth) => return,
            Role::Close => branch.depth.saturating_sub(1),
            _ => branch.depth,
        };
        self.pass_on(Branch { depth, ..branch }, accept, each);
    }

    #[inline(always)]
    fn reach(&mut self, branch: Branch, (): (), out: &mut Vec<Branch>) {
        out.push(Branch { joined: false, ..branch });
    }

    #[inline(always)]
    fn begin_symbol(&mut self, branch: Branch, (): (), out: &mut Vec<Branch>) {
        self.reach(Branch { text: BEGUN, ..branch }, (), out);
    }

    fn begin_line(&mut self, branch: Branch, state: StateId, (): (), out: &mut Vec<Branch>) {
        let InLine::Start { column, kept } = branch.line else { return };
        if let Some(begun) = Parser::begin_line(self, &branch, kept.unwrap_or(column)) {
            self.reach(begun.with_state(state), (), out);
        }
    }
}

/// The first mode of a mask that has some.
#[inline(always)]
fn first_mode(modes: u64) -> ModeId {
    ModeId::from_index(modes.trailing_zeros() as usize)
}

/// Accept sets that a symbol in progress can become after at least one more byte.
fn live_later(lexer: &Lexer, state: StateId) -> Box<[u64]> {
    let mut live = vec![0u64; lexer.live_mask(state).len()];
    for byte in lexer.representatives() {
        let target = lexer.step(state, byte);
        if target != DEAD {
            live.iter_mut().zip(lexer.live_mask(target)).for_each(|(word, more)| *word |= more);
        }
    }
    live.into()
}
