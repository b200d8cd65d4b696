//! Symbols that are read from a node of R, and the nodes to which they lead.

use crate::bits;
use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, ChunkId, DotId, ModeId, NodeId, OriginId, PartId, SymbolId};
use crate::language::free::Cost;
use crate::lexing::layout::Column;
use crate::lexing::roles::Role;
use crate::right::chart::{Chart, Charted};
use crate::right::lattice::Incoming;
use crate::right::lex::{LineStart, texts_after};
use crate::right::origins::{At, Base, Origin};
use crate::right::places::{Begun, ItemFilter, Place, Top};
use std::cmp::Ordering;

impl Chart<'_> {
    /// Follow the symbols that can be read from a node.
    pub(super) fn read_on(&mut self, id: NodeId) {
        let language = self.language;
        match self.charted.lattice.place(id) {
            Place::End => {}
            Place::Middle { position, line } => match self.lexed.symbol(position) {
                Some((accept, end)) if language.accept_role(accept) == Role::Newline => {
                    self.read_newline(id, line, end);
                }
                None => {
                    if language.layout.is_some() {
                        self.read_newline(id, line, position);
                    }
                }
                Some((accept, end)) => self.read_symbol(id, accept, end),
            },
            Place::Code { position } => {
                for mode in bits::ones(language.grammar.code_modes()).map(ModeId::from_index) {
                    if let Some((accept, end)) = self.lexed.symbol_in(mode, position) {
                        self.read_in(id, mode, accept, end);
                    }
                }
            }
            Place::Nested { position } => {
                let modes = (0..language.mode_count()).map(ModeId::from_index);
                for mode in modes.filter(|mode| language.grammar.reads_code(*mode)) {
                    let Some((accept, end)) = self.lexed.symbol_in(mode, position) else { continue };
                    let own = language.grammar.mode_of(SymbolId::from(language.lexer.lexemes(accept)[0]));
                    if own == mode {
                        self.read_symbol(id, accept, end);
                    }
                }
            }
            Place::Text { position, mode } => {
                let Some((accept, end)) = self.lexed.symbol_in(mode, position) else { return };
                if language.grammar.unites_modes() {
                    return self.read_in(id, mode, accept, end);
                }
                self.lexed.lex(self.predictions, end);
                self.read_symbol(id, accept, end);
            }
            Place::Line { position, column, top } => self.read_layout(id, (position, column), top),
        }
    }

    /// Read the lexemes of a match that are a mode's own, to wherever R can go on after them.
    fn read_in(&mut self, id: NodeId, mode: ModeId, accept: AcceptId, end: u32) {
        let language = self.language;
        let grammar = &language.grammar;
        let code = grammar.code_modes();
        let lexemes = language.lexer.lexemes(accept).iter().map(|&lexeme| SymbolId::from(lexeme));
        for symbol in lexemes.filter(|&symbol| grammar.mode_of(symbol) == mode) {
            let mark = language.marks.as_ref().and_then(|marks| marks.of_symbol(symbol));
            if mark.is_some_and(|mark| !self.takes_mark(id, symbol, mark, end)) {
                continue;
            }
            let after = grammar.modes_after_lexeme(symbol);
            if after & code != 0 {
                let target = self.lexed.code_place(end);
                self.read_to(id, symbol, target, ItemFilter::Modes(code));
            }
            for (target, mask) in texts_after(after & !code, end) {
                self.read_to(id, symbol, target, ItemFilter::Modes(mask));
            }
        }
    }

    /// Read a symbol in a line, to wherever R can go on after it.
    fn read_symbol(&mut self, id: NodeId, accept: AcceptId, end: u32) {
        let language = self.language;
        let grammar = &language.grammar;
        let code = grammar.code_modes();
        let in_line = matches!(self.charted.lattice.place(id), Place::Middle { .. });
        let role = language.accept_role(accept);
        for &lexeme in language.lexer.lexemes(accept) {
            let symbol = SymbolId::from(lexeme);
            if language.mark(lexeme).is_some_and(|mark| !self.takes_mark(id, symbol, mark, end)) {
                continue;
            }
            let after = grammar.modes_after_lexeme(symbol);
            if after & code != 0 {
                self.read_to_code(id, symbol, role, end);
            }
            // In a line that nothing encloses, a closing bracket is a bracket.
            if after & !code != 0 && !(role == Role::Close && in_line) {
                for (target, mask) in texts_after(after & !code, end) {
                    self.read_to(id, symbol, target, ItemFilter::Modes(mask));
                }
            }
        }
    }

    /// Read a symbol after which code goes on.
    fn read_to_code(&mut self, id: NodeId, symbol: SymbolId, role: Role, end: u32) {
        let grammar = &self.language.grammar;
        let goes_on = ItemFilter::Modes(grammar.code_modes());
        let middle = self.lexed.middle_position(end);
        let nested = if grammar.has_modes() { self.lexed.nested_place(end) } else { None };
        match self.charted.lattice.place(id) {
            Place::Middle { line, .. } => {
                if let Some(position) = middle {
                    let target = self.lexed.middle_at(position, line);
                    self.read_to(id, symbol, target, goes_on);
                }
            }
            Place::Text { .. } if role != Role::Open => {
                for line in self.lines_begun(id, symbol) {
                    let Some(position) = middle else { break };
                    let target = self.lexed.middle_at(position, line);
                    self.read_to(id, symbol, target, ItemFilter::EndsIn(line));
                }
                if let Some(target) = nested {
                    self.read_to(id, symbol, target, ItemFilter::EndsNested);
                }
            }
            _ => {
                if let Some(target) = nested {
                    self.read_to(id, symbol, target, goes_on);
                }
            }
        }
    }

    /// Lines that may go on after the end of a literal with code: those in which it stands; any, where it began in the
    /// middle.
    fn lines_begun(&self, id: NodeId, symbol: SymbolId) -> Vec<Top> {
        let grammar = &self.language.grammar;
        let ended = self.charted.waiting(grammar, id, symbol);
        let ended = ended.map(|(_, origin)| self.charted.begun_at(origin));
        let Charted { lattice, parts, .. } = &*self.charted;
        let free = lattice.parts(id).flat_map(|(part, _)| parts.get(part).waiting(grammar, symbol));
        let mut lines: Vec<Top> = ended
            .chain(free.map(|item| parts.begun_at(item.1)))
            .filter_map(|begun| match begun {
                Some(Begun::Line(line)) => Some(line),
                _ => None,
            })
            .collect();
        lines.push(Top::Unknown);
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    fn read_newline(&mut self, id: NodeId, line: Top, end: u32) {
        let newline = SymbolId::from(self.language.layout.expect("a language with layout").newline);
        let Some(LineStart { position, column: Some(column) }) = self.lexed.line_start(end, true) else { return };
        self.classes.see(column);
        let begin = self.lexed.line_begin(position, column);
        let targets = match line {
            Top::Exact(current) => match self.classes.compare(current, column) {
                Some(Ordering::Equal) => vec![begin],
                Some(_) => vec![Place::Line { position, column, top: line }],
                None => Vec::new(),
            },
            Top::Above | Top::AboveEntry(_) => vec![Place::Line { position, column, top: line }],
            Top::Unknown => self.classes.line_places(begin, position, column),
        };
        for target in targets {
            self.read_to(id, newline, target, ItemFilter::All);
        }
    }

    /// INDENT and DEDENT edges from before a line.
    fn read_layout(&mut self, id: NodeId, line: (u32, Column), top: Top) {
        let (position, column) = line;
        let (indent, dedent) = self.language.grammar.indent_dedent.expect("a language with layout");
        let begin = self.lexed.line_begin(position, column);
        match top {
            Top::Exact(exact) if self.classes.compare(exact, column) == Some(Ordering::Less) => {
                self.read_indent(id, indent, begin, (exact, column));
            }
            Top::Exact(exact) if self.classes.compare(exact, column) == Some(Ordering::Greater) => {
                self.read_dedent_in_right(id, dedent, line, exact);
                let cost = self.classes.further(exact);
                self.read_dedent_free(id, dedent, begin, cost);
                for below in self.classes.between(column, exact) {
                    let target = Place::Line { position, column, top: Top::Exact(below) };
                    self.read_dedent_free(id, dedent, target, cost);
                }
            }
            Top::Above => {
                self.dedents.insert((id, id));
                self.charted.lattice.connect(dedent, id, id);
                self.read_dedent_free(id, dedent, begin, 0);
            }
            Top::AboveEntry(_) => {
                self.read_dedent_free(id, dedent, begin, 0);
                let target = Place::Line { position, column, top: Top::Above };
                self.read_dedent_free(id, dedent, target, 0);
            }
            Top::Exact(_) | Top::Unknown => {}
        }
    }

    /// Read a symbol for the items that wait for it and pass a filter.
    fn read_to(&mut self, id: NodeId, symbol: SymbolId, target: Place, filter: ItemFilter) {
        let lattice = &self.charted.lattice;
        let key = (lattice.set_id(id), symbol, filter, lattice.place(id).begun());
        // For the end of a literal the origins of all waiting rules matter as well.
        let of_set = matches!(filter, ItemFilter::All | ItemFilter::Modes(_));
        let leads = match self.known.leads(key).filter(|_| of_set) {
            Some(leads) => leads,
            None => {
                let leads = self.leads(id, symbol, filter);
                if of_set {
                    self.known.keep_lead(key, leads);
                }
                leads
            }
        };
        if leads {
            let lattice = &mut self.charted.lattice;
            let target = lattice.intern(target);
            lattice.connect(symbol, id, target);
            lattice.pending(target).read.push(Incoming { symbol, from: id, filter });
        }
    }

    /// Return whether an item waits for a symbol at a node and passes a filter.
    fn leads(&mut self, id: NodeId, symbol: SymbolId, filter: ItemFilter) -> bool {
        let grammar = &self.language.grammar;
        let charted = &mut *self.charted;
        let (prediction, begun) = (charted.lattice.set(id).prediction, charted.lattice.place(id).begun());
        let reading = charted.links.reading(grammar, self.predictions, (prediction, symbol), filter, begun);
        if reading.is_whole || !reading.dots.is_empty() {
            return true;
        }
        if let Some(lone) = reading.lone {
            let (mut items, mut chunks) = (Vec::new(), Vec::new());
            charted.begin_lone(grammar, id, lone, &mut items, &mut chunks);
            if !items.is_empty() || !chunks.is_empty() {
                return true;
            }
        }
        let takes = |&(dot, origin): &(DotId, OriginId)| {
            filter.admits(grammar, Grammar::advance(dot), charted.begun_at(origin))
        };
        if charted.waiting(grammar, id, symbol).any(|item| takes(&item)) {
            return true;
        }
        let Charted { lattice, parts, .. } = charted;
        lattice.parts(id).any(|part| parts.moved(self.language, part, symbol, (filter, None)).is_some())
    }

    /// Read an INDENT in R: the block's columns go into the origins of its items.
    fn read_indent(&mut self, id: NodeId, indent: SymbolId, target: Place, block: (Column, Column)) {
        let grammar = &self.language.grammar;
        let charted = &mut *self.charted;
        let prediction = charted.lattice.set(id).prediction;
        let mut begun: Vec<(DotId, Base, Cost)> = charted
            .waiting(grammar, id, indent)
            .map(|(dot, origin)| (dot, charted.origins.get(origin).base, charted.origins.cost(origin)))
            .collect();
        for (part, offset) in charted.lattice.parts(id) {
            for &(dot, from, cost) in charted.parts.get(part).waiting(grammar, indent) {
                let from = charted.parts.free_state(from).expect("no list opens a block");
                begun.push((dot, Base::Free(from), cost.saturating_add(offset)));
            }
        }
        begun.extend(self.predictions.dots(grammar, prediction, indent).iter().map(|&dot| (dot, Base::Node(id), 0)));
        if begun.is_empty() {
            return;
        }
        let target = charted.lattice.intern(target);
        charted.lattice.connect(indent, id, target);
        for (dot, base, cost) in begun {
            let origin = charted.origins.intern(Origin { base, block: Some(block) }, cost);
            charted.lattice.pending(target).items.push((Grammar::advance(dot), origin));
        }
    }

    /// Close a block that was opened in R. Its two columns decide the target.
    fn read_dedent_in_right(&mut self, id: NodeId, dedent: SymbolId, line: (u32, Column), top: Column) {
        let grammar = &self.language.grammar;
        let (position, column) = line;
        let closing: Vec<(DotId, OriginId)> = self.charted.waiting(grammar, id, dedent).collect();
        for (dot, origin) in closing {
            let Some((below, own)) = self.charted.origins.get(origin).block else { continue };
            if own != top {
                continue;
            }
            let target = match self.classes.compare(below, column) {
                Some(Ordering::Equal) => self.lexed.line_begin(position, column),
                Some(Ordering::Greater) => Place::Line { position, column, top: Top::Exact(below) },
                _ => continue,
            };
            let target = self.charted.lattice.intern(target);
            if self.dedents.insert((id, target)) {
                self.charted.lattice.connect(dedent, id, target);
            }
            self.charted.lattice.pending(target).items.push((Grammar::advance(dot), origin));
        }
    }

    /// Close a block that was opened in the middle, whose columns are free, for a further cost in bytes of middle. The
    /// edge is kept for blocks of L as well.
    fn read_dedent_free(&mut self, id: NodeId, dedent: SymbolId, target: Place, further: Cost) {
        let Charted { lattice, parts, .. } = &mut *self.charted;
        let moved = |part: At<PartId>| parts.moved(self.language, part, dedent, (ItemFilter::All, None));
        let chunks = lattice.parts(id).filter_map(moved);
        let chunks: Vec<At<ChunkId>> = chunks.map(|(chunk, cost)| (chunk, cost.saturating_add(further))).collect();
        if chunks.is_empty() {
            return;
        }
        let target = self.charted.lattice.intern(target);
        if self.dedents.insert((id, target)) {
            self.charted.lattice.connect(dedent, id, target);
        }
        self.charted.lattice.pending(target).chunks.extend(chunks);
    }
}
