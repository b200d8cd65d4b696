//! All readings of the texts, byte by byte: symbols in progress, each with the nodes after which it began.

use crate::bits;
use crate::error::{Error, ErrorKind};
use crate::holes::chart::{Chart, Line, Place};
use crate::ids::{AcceptId, GuardId, ModeId, NodeId, StateId, SymbolId};
use crate::language::compiled::Language;
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::layout::is_blank;
use crate::lexing::lexer::DEAD;
use crate::lexing::roles::{LineByte, Role, line_bytes};
use crate::limits;
use crate::stop::poll;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Place of a reading in a logical line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum InLine {
    /// The line has no symbol yet: the column of the next byte, and the one that a backslash-newline has fixed.
    Start { column: u32, kept: Option<u32> },
    /// The line has a symbol (always so in a language without layout).
    Middle,
}

/// State of the lexer and of the layout stage, whatever the parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cut {
    /// The symbol in progress; a start state between symbols.
    pub(super) state: StateId,
    /// Ended symbols that must not match again.
    pub(super) guards: GuardId,
    pub(super) line: InLine,
    /// True if brackets are open.
    pub(super) inside: bool,
    /// True after a backslash-newline: the file must not end here.
    pub(super) joined: bool,
    /// The mode in which the symbol is read.
    pub(super) mode: ModeId,
}

/// Readings that are alike, with their nodes.
pub(super) type Cuts = FxHashMap<Cut, Vec<NodeId>>;

/// A line's first symbol: its column, the reading after its first byte, and the nodes before the line.
type Begun = (u32, Cut, Vec<NodeId>);

/// A symbol that has ended, with the node after it or, for an ignored one, before it.
struct Ended {
    cut: Cut,
    node: NodeId,
    ignored: bool,
}

/// All readings of the texts so far.
pub(super) struct Reading {
    pub(super) language: Arc<Language>,
    pub(super) chart: Chart,
    pub(super) guards: Guards,
    pub(super) line_bytes: Vec<LineByte>,
    pub(super) cuts: Cuts,
    /// Bytes and holes passed.
    position: u32,
    /// Most brackets open at once in each text.
    deepest: Vec<u32>,
    /// Columns at which blocks open in the texts.
    columns: Vec<u32>,
}

impl Reading {
    /// The reading before some texts.
    ///
    /// # Errors
    /// A language or texts for which open holes are not decided.
    pub(super) fn begin(language: &Arc<Language>, texts: &[&[u8]]) -> Result<Self, Error> {
        let widest = if language.layout.is_some() { widest(texts)? } else { 0 };
        let mut reading = Self {
            language: language.clone(),
            chart: Chart::new(language, widest + 1)?,
            guards: Guards::default(),
            line_bytes: line_bytes(&language.lexer, |accept| language.accept_role(accept)),
            cuts: Cuts::default(),
            position: 0,
            deepest: Vec::new(),
            columns: Vec::new(),
        };
        let line = match language.layout {
            Some(_) => InLine::Start { column: 0, kept: None },
            None => InLine::Middle,
        };
        let lexer = &language.lexer;
        let modes = bits::ones(reading.chart.get(NodeId(0)).modes).map(ModeId::from_index);
        let starts: Vec<(ModeId, StateId)> = match lexer.file_start() {
            Some(start) => vec![(ModeId(0), start)],
            None => modes.map(|mode| (mode, lexer.start_of(mode))).collect(),
        };
        for (mode, state) in starts {
            let cut = Cut { state, guards: NO_GUARDS, line, inside: false, joined: false, mode };
            reading.cuts.insert(cut, vec![NodeId(0)]);
        }
        Ok(reading)
    }

    /// Read the texts, with any text between each and the next, and return whether the whole can be a program.
    ///
    /// # Errors
    /// Texts for which open holes are not decided, or that pass a limit.
    pub(super) fn read(mut self, texts: &[&[u8]]) -> Result<bool, Error> {
        for (index, text) in texts.iter().enumerate() {
            if index > 0 {
                self.cross(u32::try_from(index - 1).expect("few holes"));
                self.position += 1;
            }
            self.deepest.push(1);
            for &byte in *text {
                if self.cuts.is_empty() {
                    return Ok(false);
                }
                self.step(byte)?;
                self.position += 1;
            }
        }
        let possible = self.may_end();
        self.check_depths(texts.len())?;
        Ok(possible)
    }

    /// Fail where the language's limits on open brackets and blocks may matter: they are not counted through holes.
    fn check_depths(&mut self, texts: usize) -> Result<(), Error> {
        let limits = self.language.limits;
        let brackets: u32 = self.deepest.iter().sum();
        if brackets >= limits.brackets {
            return Err(Error::limit("brackets open around open holes", brackets as usize, limits.brackets as usize));
        }
        self.columns.sort_unstable();
        self.columns.dedup();
        let blocks = self.columns.len() + texts;
        if blocks >= limits.blocks as usize {
            return Err(Error::limit("blocks open around open holes", blocks, limits.blocks as usize));
        }
        Ok(())
    }

    /// Read one byte.
    fn step(&mut self, byte: u8) -> Result<(), Error> {
        let language = self.language.clone();
        let lexer = &language.lexer;
        let mut next = Cuts::default();
        let mut ended = Vec::new();
        let mut lines = Vec::new();
        for (cut, nodes) in std::mem::take(&mut self.cuts) {
            poll();
            let Some(guards) = self.guards.step(lexer, cut.guards, byte) else { continue };
            let cut = Cut { guards, ..cut };
            if cut.line != InLine::Middle && lexer.is_start(cut.state) {
                self.indentation(byte, cut, nodes, (&mut next, &mut lines))?;
                continue;
            }
            let target = lexer.step(cut.state, byte);
            if lexer.accepts(cut.state) && !lexer.accepts(target) {
                let guards = self.guards.with(lexer, guards, target);
                self.end(Cut { guards, ..cut }, lexer.accept(cut.state), &nodes, &mut ended);
            }
            if target != DEAD {
                add(&mut next, Cut { state: target, joined: false, ..cut }, nodes);
            }
        }
        for (cut, nodes) in self.begun(ended) {
            if cut.line != InLine::Middle {
                self.indentation(byte, cut, nodes, (&mut next, &mut lines))?;
                continue;
            }
            let state = lexer.step(cut.state, byte);
            if state != DEAD {
                add(&mut next, Cut { state, joined: false, ..cut }, nodes);
            }
        }
        for (column, cut, nodes) in lines {
            let nodes = self.begin_line(column, cut.guards, &nodes);
            add(&mut next, cut, nodes);
        }
        self.cuts = next;
        self.chart.check_size()
    }

    /// End the symbol in progress as an accept set, at the present place.
    fn end(&mut self, cut: Cut, accept: AcceptId, nodes: &[NodeId], ended: &mut Vec<Ended>) {
        let language = self.language.clone();
        let role = language.accept_role(accept);
        let pass = |cut: Cut, ended: &mut Vec<Ended>| {
            ended.extend(nodes.iter().map(|&node| Ended { cut, node, ignored: true }));
        };
        if !self.is_own(cut.mode, accept) {
            return;
        }
        match role {
            Role::Blank | Role::Comment => pass(cut, ended),
            Role::Join => {
                let line = match cut.line {
                    InLine::Start { column, kept } => {
                        InLine::Start { column, kept: kept.or((column > 0).then_some(column)) }
                    }
                    InLine::Middle => InLine::Middle,
                };
                pass(Cut { line, joined: true, ..cut }, ended);
            }
            Role::Newline if cut.inside => pass(cut, ended),
            _ => {
                let line = role == Role::Newline;
                let place = (Place::After { position: self.position, line }, cut.guards);
                let mut touched = Vec::new();
                for &node in nodes {
                    for symbol in self.own_lexemes(cut.mode, accept) {
                        self.chart.read(node, symbol, place, &mut touched);
                    }
                }
                let line = if line { InLine::Start { column: 0, kept: None } } else { cut.line };
                touched.sort_unstable();
                touched.dedup();
                for node in touched {
                    let inside = self.chart.is_inside(node);
                    ended.push(Ended { cut: Cut { line, inside, joined: false, ..cut }, node, ignored: false });
                }
            }
        }
    }

    /// Return whether some lexeme of an accept set is read in a mode. Mode 0 reads what all modes with code share.
    pub(super) fn is_own(&self, mode: ModeId, accept: AcceptId) -> bool {
        self.own_lexemes(mode, accept).next().is_some()
    }

    /// The lexemes of an accept set that are read in a mode.
    pub(super) fn own_lexemes(&self, mode: ModeId, accept: AcceptId) -> impl Iterator<Item = SymbolId> + use<> {
        let language = self.language.clone();
        let lexemes: Vec<SymbolId> = language.lexer.lexemes(accept).iter().map(|&id| SymbolId::from(id)).collect();
        lexemes.into_iter().filter(move |&symbol| language.grammar.mode_of(symbol) == mode)
    }

    /// Close the nodes after symbols that have ended, and return the readings from there on, between two symbols.
    fn begun(&mut self, ended: Vec<Ended>) -> Cuts {
        let mut closed: Vec<NodeId> = ended.iter().filter(|ended| !ended.ignored).map(|ended| ended.node).collect();
        closed.sort_unstable();
        closed.dedup();
        for &node in &closed {
            self.chart.close(node);
            let depth = self.chart.key(node).depth;
            if self.chart.get(node).is_alive()
                && let Some(deepest) = self.deepest.last_mut()
            {
                *deepest = (*deepest).max(depth + 1);
            }
        }
        let language = self.language.clone();
        let grammar = &language.grammar;
        let mut found = Cuts::default();
        for Ended { cut, node, ignored } in ended {
            let own = self.chart.get(node);
            if !own.is_alive() {
                continue;
            }
            // Text of another mode does not go on after a lexeme of code that is not passed on.
            let modes = match ignored {
                false => own.modes,
                true if grammar.unites_modes() || grammar.reads_code(cut.mode) => own.modes & grammar.code_modes(),
                true => own.modes & (1 << cut.mode.index()),
            };
            for mode in bits::ones(modes).filter(|&mode| mode < language.mode_count()).map(ModeId::from_index) {
                let cut = Cut { state: language.lexer.start_of(mode), mode, ..cut };
                add(&mut found, cut, vec![node]);
            }
        }
        found
    }

    /// Read a byte in an indentation. `lines` gets the columns at which a symbol begins a line.
    fn indentation(
        &mut self,
        byte: u8,
        cut: Cut,
        nodes: Vec<NodeId>,
        (next, lines): (&mut Cuts, &mut Vec<Begun>),
    ) -> Result<(), Error> {
        let InLine::Start { column, kept } = cut.line else { return Ok(()) };
        let lexer = &self.language.lexer;
        let cut = Cut { joined: false, mode: ModeId(0), state: lexer.start(), ..cut };
        match self.line_bytes[byte as usize] {
            LineByte::Blank if byte != b' ' => {
                let message = "two open holes: not decided where a tab or a form feed may indent a line";
                return Err(Error::new(ErrorKind::State, message));
            }
            LineByte::Blank => {
                let column = (column + 1).min(self.chart.above);
                add(next, Cut { line: InLine::Start { column, kept }, ..cut }, nodes);
            }
            LineByte::Newline => add(next, Cut { line: InLine::Start { column: 0, kept: None }, ..cut }, nodes),
            LineByte::Trivia => {
                let state = lexer.step(lexer.start(), byte);
                if state != DEAD {
                    add(next, Cut { state, ..cut }, nodes);
                }
            }
            LineByte::Symbol => {
                let state = lexer.step(lexer.start(), byte);
                if state != DEAD {
                    let cut = Cut { state, line: InLine::Middle, ..cut };
                    lines.push((kept.unwrap_or(column), cut, nodes));
                }
            }
        }
        Ok(())
    }

    /// Read the layout symbols before a line's first symbol at a column, and return the nodes after them.
    fn begin_line(&mut self, column: u32, guards: GuardId, nodes: &[NodeId]) -> Vec<NodeId> {
        let above = self.chart.above;
        let line = Line { position: self.position, column, guards };
        let mut found: Vec<NodeId> = nodes.iter().copied().filter(|&id| self.chart.key(id).top == column).collect();
        let mut opened = Vec::new();
        for &node in nodes {
            let top = self.chart.key(node).top;
            if top < column || top == above && column == above {
                self.chart.indent(node, line, &mut opened);
            }
        }
        if !opened.is_empty() {
            self.columns.push(column);
        }
        // More closed blocks come later: each DEDENT leads to a column further left.
        let mut closed: Vec<NodeId> = Vec::new();
        for top in (column..=above).rev() {
            let mut touched = Vec::new();
            if top > column || top == above {
                let here: Vec<NodeId> = nodes.iter().copied().filter(|&id| self.chart.key(id).top == top).collect();
                here.into_iter().for_each(|node| self.chart.dedent(node, line, &mut touched));
            }
            closed.extend(touched);
            closed.sort_unstable();
            closed.dedup();
            // The node at this column gets all its items from blocks further right, which have been closed by now.
            let here: Vec<NodeId> = closed.iter().copied().filter(|&id| self.chart.key(id).top == top).collect();
            for node in here {
                self.chart.close(node);
                if top > column {
                    self.chart.dedent(node, line, &mut closed);
                } else {
                    found.push(node);
                }
            }
        }
        opened.sort_unstable();
        opened.dedup();
        for &node in &opened {
            self.chart.close(node);
        }
        found.extend(opened);
        found.retain(|&id| self.chart.get(id).is_alive());
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Return whether the file may end at the end of the last text.
    fn may_end(&mut self) -> bool {
        let language = self.language.clone();
        let lexer = &language.lexer;
        let mut ended = Vec::new();
        for (cut, nodes) in std::mem::take(&mut self.cuts) {
            if lexer.is_start(cut.state) {
                ended.extend(nodes.into_iter().map(|node| Ended { cut, node, ignored: true }));
            } else if lexer.accepts(cut.state) {
                self.end(cut, lexer.accept(cut.state), &nodes, &mut ended);
            }
        }
        for node in ended.iter().filter(|ended| !ended.ignored).map(|ended| ended.node).collect::<Vec<_>>() {
            self.chart.close(node);
        }
        ended.retain(|ended| !ended.cut.joined);
        let Some(layout) = language.layout else {
            return ended.iter().any(|ended| self.chart.get(ended.node).accepts);
        };
        // The end of the file ends its last line, and closes all blocks.
        let mut lines = Vec::new();
        for Ended { cut, node, .. } in ended {
            match cut.line {
                InLine::Start { .. } => lines.push(node),
                InLine::Middle if cut.inside => {}
                InLine::Middle => {
                    let place = (Place::After { position: self.position, line: true }, NO_GUARDS);
                    self.chart.read(node, SymbolId::from(layout.newline), place, &mut lines);
                }
            }
        }
        lines.sort_unstable();
        lines.dedup();
        for &node in &lines {
            if matches!(self.chart.key(node).place, Place::After { position, .. } if position == self.position) {
                self.chart.close(node);
            }
        }
        let ends = self.begin_line(0, NO_GUARDS, &lines);
        ends.into_iter().any(|node| self.chart.get(node).accepts)
    }
}

/// Add readings.
pub(super) fn add(cuts: &mut Cuts, cut: Cut, nodes: Vec<NodeId>) {
    if nodes.is_empty() {
        return;
    }
    match cuts.entry(cut) {
        std::collections::hash_map::Entry::Vacant(entry) => {
            entry.insert(nodes);
        }
        std::collections::hash_map::Entry::Occupied(mut entry) => {
            let own = entry.get_mut();
            own.extend(nodes);
            own.sort_unstable();
            own.dedup();
        }
    }
}

/// The most blanks at the beginning of a line or of a text.
fn widest(texts: &[&[u8]]) -> Result<u32, Error> {
    let lines = texts.iter().flat_map(|text| text.split(|&byte| byte == b'\n' || byte == b'\r'));
    let blanks = lines.map(|line| line.iter().take_while(|&&byte| is_blank(byte)).count()).max().unwrap_or(0);
    if blanks > limits::HOLE_COLUMNS {
        return Err(Error::limit("columns of an indentation around open holes", blanks, limits::HOLE_COLUMNS));
    }
    Ok(u32::try_from(blanks).expect("few columns"))
}
