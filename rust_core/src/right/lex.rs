//! R as symbols: the match at each position, the brackets that R closes from there on, and the places after it.
//!
//! Lexing from a byte position is deterministic, so each position is lexed once, from whichever node.

use crate::bits;
use crate::chart::left::{FIRST_SET, LeftChart, NO_SET, Read};
use crate::chart::predict::Predictions;
use crate::chart::texts::PLAIN;
use crate::ids::{AcceptId, DotId, LexemeId, ModeId, SetId, SymbolId};
use crate::language::compiled::Language;
use crate::language::marks::Slots;
use crate::lexing::layout::Column;
use crate::lexing::roles::Role;
use crate::limits;
use crate::right::matches::Matches;
use crate::right::places::{Place, Top};
use crate::stop::poll;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// R lexed as code that no other mode encloses. Formatted strings that R itself opens are passed over whole. Where
/// several modes can be in force at once, R is read by position and mode alone, and nothing is lexed ahead.
#[derive(Debug)]
pub(super) struct Lexed {
    language: Arc<Language>,
    text: Vec<u8>,
    matches: Matches,
    /// Per position: the match there.
    accepts: Vec<AcceptId>,
    /// Per position: where it ends, 0 where nothing is matched or no call has been.
    ends: Vec<u32>,
    /// Unmatched closing brackets from a position on; [`NO_DEPTH`] where lexing or bracketing fails before the end.
    depth: Vec<u32>,
    visited: Vec<bool>,
    /// Ends of literals that lexemes of other modes begin, by position, with the most brackets open at once in them;
    /// `None` if a literal does not end.
    passed: FxHashMap<u32, Option<(u32, u32)>>,
    /// The slots of texts that bind or match.
    pub(super) slots: Slots,
    /// Charts of such literals, by the lexeme that begins them.
    charts: FxHashMap<LexemeId, LeftChart>,
}

/// Lexing or bracketing fails before the end.
const NO_DEPTH: u32 = u32::MAX;

/// End of a scan of blank lines from a line's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineStart {
    /// The first symbol, or the end of R.
    pub position: u32,
    /// Its column, if the line began in R; at the end of the file column 0.
    pub column: Option<Column>,
}

/// A literal that holds code, as far as it has been read.
struct Passing {
    start: usize,
    begin: LexemeId,
    set: SetId,
    at: usize,
    /// Open brackets, and the most open at once.
    open: u32,
    most: u32,
}

/// Result of reading a lexeme of such a literal.
enum LiteralStep {
    /// The literal goes on.
    On,
    /// An inner literal has to be read first: its position, lexeme and lexeme's end.
    Inner(usize, AcceptId, u32),
    /// The literal has ended, or cannot end.
    All(Option<(u32, u32)>),
}

/// Piece of text that [`Lexed::scan_indentation`] passes.
enum Blank {
    Bytes(usize, usize),
    Newline,
    Join,
}

impl Lexed {
    pub(super) fn new(language: &Arc<Language>, text: &[u8]) -> Self {
        let mut lexed = Self {
            language: language.clone(),
            text: text.to_vec(),
            matches: Matches::default(),
            accepts: vec![AcceptId::default(); text.len() + 1],
            ends: vec![0; text.len() + 1],
            depth: vec![NO_DEPTH; text.len() + 1],
            visited: vec![false; text.len() + 1],
            passed: FxHashMap::default(),
            slots: Slots::default(),
            charts: FxHashMap::default(),
        };
        lexed.visited[text.len()] = true;
        lexed.depth[text.len()] = 0;
        lexed
    }

    pub(super) fn language(&self) -> &Language {
        &self.language
    }

    /// R.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The match at a position as code, and its end.
    pub(super) fn symbol(&self, position: u32) -> Option<(AcceptId, u32)> {
        let end = self.ends[position as usize];
        (end != 0).then(|| (self.accepts[position as usize], end))
    }

    /// Number of open brackets at a position that R closes; `None` if R cannot be lexed from there to its end.
    pub(super) fn depth(&self, position: u32) -> Option<u32> {
        Some(self.depth[position as usize]).filter(|&depth| depth != NO_DEPTH)
    }

    /// End of the literal with code that begins at a position.
    pub(super) fn passed(&self, position: u32) -> Option<u32> {
        self.passed.get(&position).copied().flatten().map(|(end, _)| end)
    }

    fn longest(&self, mode: ModeId, position: usize) -> Option<(usize, AcceptId)> {
        self.matches.longest(&self.language.lexer, mode, &self.text, position)
    }

    /// The match at a position in a mode, and its end.
    pub(super) fn symbol_in(&self, mode: ModeId, position: u32) -> Option<(AcceptId, u32)> {
        let (length, accept) = self.longest(mode, position as usize)?;
        Some((accept, position + u32::try_from(length).expect("R fits u32")))
    }

    /// The symbol at a place of text; `None` elsewhere, and where no parse goes on. Lexemes of text are never
    /// ambiguous.
    pub(super) fn text_at(&self, place: Place) -> Option<SymbolId> {
        let Place::Text { position, mode } = place else { return None };
        let (accept, _) = self.symbol_in(mode, position)?;
        Some(SymbolId::from(self.language.lexer.lexemes(accept)[0]))
    }

    /// Return whether a position is the end of R.
    pub(super) fn is_end(&self, position: u32) -> bool {
        position as usize == self.text.len()
    }

    /// Lex from a position to the end, or to where an earlier call has been.
    pub(super) fn lex(&mut self, predictions: &mut Predictions, start: u32) {
        let language = self.language.clone();
        let mut path: Vec<u32> = Vec::new();
        let mut at = start as usize;
        while !std::mem::replace(&mut self.visited[at], true) {
            poll();
            let Some((length, accept)) = self.longest(ModeId(0), at) else { break };
            let end = u32::try_from(at + length).expect("R fits u32");
            self.accepts[at] = accept;
            self.ends[at] = end;
            if language.grammar.leads_away(SymbolId::from(language.lexer.lexemes(accept)[0])) {
                self.pass(predictions, at, accept, end);
            }
            let Some(next) = self.end(at, end) else { break };
            path.push(u32::try_from(at).expect("R fits u32"));
            at = next as usize;
        }
        for begin in path.into_iter().rev() {
            let next = std::mem::replace(&mut at, begin as usize);
            let after = self.depth[next];
            if after == NO_DEPTH {
                continue;
            }
            let depth = match (language.layout.is_some(), language.accept_role(self.accepts[at])) {
                (true, Role::Open) => after.checked_sub(1),
                (true, Role::Close) => (after < language.limits.brackets).then_some(after + 1),
                _ => {
                    let inside = self.passed.get(&begin).copied().flatten();
                    let most = after.saturating_add(inside.map_or(0, |(_, open)| open));
                    (most <= language.limits.brackets).then_some(after)
                }
            };
            self.depth[at] = depth.unwrap_or(NO_DEPTH);
        }
    }

    /// Return the offset at which lexing as code goes on after the symbol at a position.
    fn end(&self, at: usize, end: u32) -> Option<u32> {
        let at = u32::try_from(at).expect("R fits u32");
        self.passed.get(&at).map_or(Some(end), |passed| passed.map(|(end, _)| end))
    }

    /// Find the end of the rule that a lexeme begins, and the most brackets open in between. It is parsed, since the
    /// parser decides the modes inside. Inner literals come first: where one does not end, neither does the outer one.
    /// So no literal is read to R's end for each one that is open there.
    fn pass(&mut self, predictions: &mut Predictions, at: usize, accept: AcceptId, end: u32) {
        if self.passed.contains_key(&u32::try_from(at).expect("R fits u32")) {
            return;
        }
        let mut passing = vec![self.begin_pass(predictions, at, accept, end)];
        while let Some(last) = passing.last_mut() {
            poll();
            match self.pass_on(predictions, last) {
                LiteralStep::On => {}
                LiteralStep::Inner(at, accept, end) => {
                    let inner = self.begin_pass(predictions, at, accept, end);
                    passing.push(inner);
                }
                LiteralStep::All(found) => {
                    self.passed.insert(u32::try_from(last.start).expect("R fits u32"), found);
                    passing.pop();
                }
            }
        }
    }

    fn begin_pass(&mut self, predictions: &mut Predictions, start: usize, accept: AcceptId, end: u32) -> Passing {
        let language = self.language.clone();
        let grammar = &language.grammar;
        let begin = language.lexer.lexemes(accept)[0];
        let symbol = SymbolId::from(begin);
        let chart = self.charts.entry(begin).or_insert_with(|| {
            let begun = grammar.initial(symbol).iter().map(|&dot| grammar.lhs(dot));
            LeftChart::rooted(&language, predictions, begun)
        });
        let set = chart.scan(&language, predictions, FIRST_SET, Read::Accepted(accept, PLAIN));
        Passing { start, begin, set, at: end as usize, open: 0, most: 0 }
    }

    /// Read the next lexeme of a literal.
    fn pass_on(&mut self, predictions: &mut Predictions, passing: &mut Passing) -> LiteralStep {
        let Some(chart) = self.charts.get(&passing.begin) else { return LiteralStep::All(None) };
        if passing.set == NO_SET {
            return LiteralStep::All(None);
        }
        if chart.set(passing.set).items.is_empty() {
            return LiteralStep::All(Some((u32::try_from(passing.at).expect("R fits u32"), passing.most)));
        }
        let language = self.language.clone();
        let Some((length, accept)) = self.longest(first_mode(chart.set(passing.set).modes), passing.at) else {
            return LiteralStep::All(None);
        };
        if language.grammar.leads_away(SymbolId::from(language.lexer.lexemes(accept)[0]))
            && self.longest(ModeId(0), passing.at) == Some((length, accept))
        {
            let known = self.passed.get(&u32::try_from(passing.at).expect("R fits u32")).copied();
            match known {
                None => {
                    let end = u32::try_from(passing.at + length).expect("R fits u32");
                    return LiteralStep::Inner(passing.at, accept, end);
                }
                Some(None) if self.begins_the_same(predictions, passing, accept) => return LiteralStep::All(None),
                Some(_) => {}
            }
        }
        passing.at += length;
        let role = language.accept_role(accept);
        match role {
            Role::Open => passing.open += 1,
            Role::Close => passing.open = passing.open.saturating_sub(1),
            _ => {}
        }
        passing.most = passing.most.max(passing.open);
        if passing.most > language.limits.brackets {
            return LiteralStep::All(None); // no file contains it, so the literals around it need not be read
        }
        if let (false, Some(chart)) = (role.is_ignored() || role == Role::Newline, self.charts.get_mut(&passing.begin))
        {
            passing.set = chart.scan(&self.language, predictions, passing.set, Read::Accepted(accept, PLAIN));
        }
        LiteralStep::On
    }

    /// Return whether a lexeme begins the same in a literal as by itself; then both are read alike. Where only some of
    /// the rules that begin with it can stand there, the parser may direct the lexer into other modes.
    fn begins_the_same(&mut self, predictions: &mut Predictions, passing: &Passing, accept: AcceptId) -> bool {
        let language = &self.language;
        let begin = language.lexer.lexemes(accept)[0];
        let mut dots_in = |begin: LexemeId, set: SetId| -> Option<Vec<DotId>> {
            let chart = self.charts.get_mut(&begin)?;
            let set = chart.scan(language, predictions, set, Read::Accepted(accept, PLAIN));
            (set != NO_SET).then(|| chart.set(set).items.iter().map(|item| item.dot).collect())
        };
        dots_in(passing.begin, passing.set) == dots_in(begin, FIRST_SET)
    }

    /// Scan blank lines, comments and blanks. If `begun`, a line begins at `position` itself. Otherwise the cursor cuts
    /// its indentation there, and the column is unknown up to the first newline. `None` if R cannot be lexed there.
    #[must_use]
    pub(super) fn line_start(&self, position: u32, begun: bool) -> Option<LineStart> {
        let mut column = begun.then_some(Column::ZERO);
        let mut kept: Option<Column> = None;
        self.scan_indentation(position, &mut |event| match event {
            Blank::Bytes(from, to) => {
                if let Some(column) = &mut column {
                    *column = column.after_all(&self.text[from..to]);
                }
            }
            Blank::Newline => {
                column = Some(Column::ZERO);
                kept = None;
            }
            Blank::Join => kept = kept.or(column.and_then(Column::kept)),
        })
        .map(|position| self.line_start_at(position, column.map(|column| kept.unwrap_or(column))))
        .filter(|start| start.column.is_none_or(|column| column.wide <= limits::RIGHT_COLUMN))
    }

    fn line_start_at(&self, position: u32, column: Option<Column>) -> LineStart {
        let at_end = position as usize == self.text.len();
        LineStart { position, column: if at_end { Some(Column::ZERO) } else { column } }
    }

    /// The column of R's first symbol when the middle ends in an indentation of `before`. A backslash-newline among the
    /// blanks keeps its column, as in CPython's tokenizer; `joined` is a column already kept.
    #[must_use]
    pub(super) fn column_through(&self, from: u32, before: Column, joined: Option<Column>) -> Option<(u32, Column)> {
        let mut column = before;
        let mut kept = joined;
        let position = self.scan_indentation(from, &mut |event| match event {
            Blank::Bytes(from, to) => column = column.after_all(&self.text[from..to]),
            Blank::Newline => {
                column = Column::ZERO;
                kept = None;
            }
            Blank::Join => kept = kept.or(column.kept()),
        })?;
        let at_end = position as usize == self.text.len();
        let column = if at_end { Column::ZERO } else { kept.unwrap_or(column) };
        (column.wide <= limits::RIGHT_COLUMN).then_some((position, column))
    }

    /// Walk over everything that can stand before a line's first symbol, and return the symbol's position.
    fn scan_indentation(&self, position: u32, see: &mut dyn FnMut(Blank)) -> Option<u32> {
        let mut at = position;
        let mut newline_last = true;
        loop {
            if self.depth(at)? > 0 {
                return None;
            }
            let Some((accept, end)) = self.symbol(at) else {
                return (at as usize == self.text.len() && newline_last).then_some(at);
            };
            newline_last = true;
            match self.language.accept_role(accept) {
                Role::Blank => see(Blank::Bytes(at as usize, end as usize)),
                Role::Newline => see(Blank::Newline),
                Role::Comment => {}
                Role::Join => {
                    see(Blank::Join);
                    newline_last = false;
                }
                _ => return Some(at),
            }
            at = end;
        }
    }

    pub(super) fn middle_position(&self, position: u32) -> Option<u32> {
        let mut at = position;
        loop {
            let depth = self.depth(at)?;
            let Some((accept, end)) = self.symbol(at) else {
                return Some(at);
            };
            match self.language.accept_role(accept) {
                Role::Blank | Role::Comment => {}
                Role::Join if end as usize == self.text.len() => return None,
                Role::Join => {}
                Role::Newline if depth > 0 => {}
                _ => return Some(at),
            }
            at = end;
        }
    }

    /// The first symbol at or after a position, in a line that already has one. `None` if R cannot go on there.
    pub(super) fn middle_place(&self, position: u32) -> Option<Place> {
        self.middle_position(position).map(|position| self.middle_at(position, Top::Unknown))
    }

    /// The place of a symbol at a position, in a line as far as it is known.
    pub(super) fn middle_at(&self, position: u32, line: Top) -> Place {
        let layout = self.language.layout.is_some();
        if self.is_end(position) && !layout {
            return Place::End;
        }
        Place::Middle { position, line: if layout { line } else { Top::Unknown } }
    }

    /// The place of a line's first symbol, with the line's column on top of the stack.
    pub(super) fn line_begin(&self, position: u32, column: Column) -> Place {
        if self.is_end(position) { Place::End } else { Place::Middle { position, line: Top::Exact(column) } }
    }

    /// The places of code at a position, in a line that already has a symbol.
    pub(super) fn code_places(&self, position: u32) -> Vec<Place> {
        if self.language.grammar.unites_modes() {
            return vec![self.code_place(position)];
        }
        let nested = self.language.grammar.has_modes().then(|| self.nested_place(position)).flatten();
        self.middle_place(position).into_iter().chain(nested).collect()
    }

    /// The place of code at a position where several modes can be in force at once.
    pub(super) fn code_place(&self, position: u32) -> Place {
        let place = self.nested_place(position).and_then(Place::position);
        place.map_or(Place::End, |position| Place::Code { position })
    }

    /// The text of a lexeme at a position, and the position; `None` if another is read there.
    pub(super) fn text_of(&self, symbol: SymbolId, position: u32) -> Option<(usize, &[u8])> {
        let (accept, end) = self.symbol_in(self.language.grammar.mode_of(symbol), position)?;
        let own = self.language.lexer.lexemes(accept).iter().any(|&lexeme| SymbolId::from(lexeme) == symbol);
        own.then(|| (position as usize, &self.text[position as usize..end as usize]))
    }

    /// The place of code inside another mode. Blanks, comments and line breaks are passed over. `None` at the end of R.
    pub(super) fn nested_place(&self, position: u32) -> Option<Place> {
        let mut at = position as usize;
        while at < self.text.len() {
            match self.longest(ModeId(0), at) {
                Some((length, accept))
                    if self.language.accept_role(accept).is_ignored()
                        || self.language.accept_role(accept) == Role::Newline =>
                {
                    at += length;
                }
                _ => return Some(Place::Nested { position: u32::try_from(at).expect("R fits u32") }),
            }
        }
        None
    }

    /// The column of the line after the logical line at a position.
    pub(super) fn following_column(&self, position: u32) -> Option<Column> {
        let mut at = self.middle_position(position)?;
        loop {
            let Some((accept, end)) = self.symbol(at) else {
                return Some(Column::ZERO);
            };
            if self.language.accept_role(accept) == Role::Newline {
                return self.line_start(end, true)?.column;
            }
            at = self.middle_position(self.end(at as usize, end)?)?;
        }
    }

    /// The places at which R can go on after a lexeme that the cursor cuts, or that follows the cursor in a mode of its
    /// own. Each has its modes as a mask.
    pub(super) fn places_after(&self, lexeme: SymbolId, role: Role, end: u32) -> Vec<(Place, u64)> {
        let grammar = &self.language.grammar;
        let code = grammar.code_modes();
        let after = grammar.modes_after_lexeme(lexeme);
        let from_text = !grammar.reads_code(grammar.mode_of(lexeme));
        let mut places = Vec::new();
        if after & code != 0 {
            places = self.code_places(end);
            if from_text && role == Role::Open && !grammar.unites_modes() {
                places.retain(|place| matches!(place, Place::Nested { .. }));
            }
        }
        let mut found: Vec<(Place, u64)> = places.into_iter().map(|place| (place, code)).collect();
        found.extend(texts_after(after & !code, end));
        found
    }

    /// Number of brackets closed from a position on that were opened before it; `None` if the text is not code to its
    /// end.
    pub(super) fn unopened(&self, position: u32) -> Option<u32> {
        let (mut at, mut open, mut unopened) = (position, 0u32, 0);
        while !self.is_end(at) {
            let (accept, end) = self.symbol(at)?;
            match self.language.accept_role(accept) {
                Role::Open => open += 1,
                Role::Close if open == 0 => unopened += 1,
                Role::Close => open -= 1,
                _ => {}
            }
            at = self.end(at as usize, end)?;
        }
        Some(unopened)
    }

    /// The closing brackets of R that nothing in R opens, with their positions, in order; `None` if R does not begin
    /// with a symbol.
    #[must_use]
    pub(super) fn closers(&self) -> Option<Vec<(usize, &[u8])>> {
        let mut found = Vec::new();
        let mut lowest = self.depth(0)?;
        let mut at = 0;
        while let Some((accept, end)) = self.symbol(at) {
            let end = self.end(at as usize, end).unwrap_or(end);
            if self.language.accept_role(accept) == Role::Close
                && let Some(after) = self.depth(end)
                && after < lowest
            {
                lowest = after;
                found.push((at as usize, &self.text[at as usize..end as usize]));
            }
            at = end;
        }
        Some(found)
    }

    /// End of the code from a position: where no lexeme matches, or at a bracket that R never closes; the position
    /// itself if neither comes. No node stands before such a place, because brackets are counted from the end of R.
    pub(super) fn reach_of_symbols(&self, start: u32) -> u32 {
        let mut path = Vec::new();
        let mut at = start;
        while let Some((_, end)) = self.symbol(at) {
            path.push(at);
            match self.end(at as usize, end) {
                Some(next) => at = next,
                None => break,
            }
        }
        let failed = if self.depth(at).is_none() {
            Some(at)
        } else {
            path.into_iter().rev().find(|&at| self.depth(at).is_none())
        };
        failed.unwrap_or(start)
    }
}

/// The mode in force in a language with layout.
fn first_mode(modes: u64) -> ModeId {
    ModeId::from_index(modes.trailing_zeros() as usize)
}

/// The places of the text modes in a mask.
pub(super) fn texts_after(modes: u64, end: u32) -> impl Iterator<Item = (Place, u64)> {
    bits::ones(modes).map(move |mode| (Place::Text { position: end, mode: ModeId::from_index(mode) }, 1 << mode))
}
