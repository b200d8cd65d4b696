//! The BNF grammar with everything Earley asks of it precomputed.
//!
//! Nullable symbols follow Aycock & Horspool 2002: a dot before a nullable symbol also stands after it, so an empty
//! derivation is never completed.

use crate::chart::predict::SharedPredictions;
use crate::error::Error;
use crate::ids::{DotId, ModeId, SymbolId};
use crate::spec::LanguageSpec;
use rustc_hash::FxHashMap;

/// What stands for "no symbol after the dot" in [`Grammar::next`].
pub(crate) const END_OF_RULE: SymbolId = SymbolId(u16::MAX);

/// One BNF rule after pruning.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The nonterminal.
    pub lhs: SymbolId,
    /// Its expansion.
    pub rhs: Vec<SymbolId>,
    /// Positions of the block's INDENT and DEDENT in `rhs`.
    pub block: Option<(usize, usize)>,
}

/// A reduced grammar: every symbol is reachable and productive.
#[derive(Debug)]
pub struct Grammar {
    /// The start nonterminal.
    pub start: SymbolId,
    /// The INDENT and DEDENT lexemes of a language with layout.
    pub indent_dedent: Option<(SymbolId, SymbolId)>,
    names: Vec<String>,
    lexeme_count: usize,
    rules: Vec<Rule>,
    base: Vec<u32>,
    next: Vec<SymbolId>,
    rule_of: Vec<u32>,
    nullable: Vec<bool>,
    /// Per symbol: dots of predicted items (at position 0, or after nullable symbols only) that have it next.
    initial: Vec<Vec<DotId>>,
    /// Per symbol: every dot that has it next.
    occurrences: Vec<Vec<DotId>>,
    /// Per nonterminal: bitset of the nonterminals predicted with it.
    closure: Vec<u64>,
    closure_words: usize,
    /// Per lexeme: bitset of the lexemes that can come next, those of the layout stage passed over.
    adjacent: Vec<u64>,
    /// Per dot: bitset of the lexemes that the rest of its rule can begin with.
    first: Vec<u64>,
    predictions: SharedPredictions,
    modes: Modes,
}

/// What the lexer's modes are to the grammar. Masks have a bit for each mode.
#[derive(Debug, Default)]
struct Modes {
    /// The mode of each lexeme.
    of: Vec<ModeId>,
    any: bool,
    /// The modes in which lexemes of no mode are read.
    code: u64,
    /// Per dot: the modes of the lexemes that can come next.
    after: Vec<u64>,
    /// Per lexeme: the same right after it.
    after_lexeme: Vec<u64>,
    /// Per dot: whether its rule can be, or be part of, what a rule with another mode's lexemes holds.
    nested: Vec<bool>,
}

impl Grammar {
    /// Compiles and reduces a definition's rules. `producible` says which lexemes some text can be lexed as.
    ///
    /// # Errors
    /// Unknown symbols, an empty language, or a block whose INDENT and DEDENT are not paired in one rule.
    pub fn compile(spec: &LanguageSpec, producible: &[bool], mode_of: Vec<ModeId>) -> Result<Self, Error> {
        let mut names: Vec<String> = spec.lexemes.iter().map(|lexeme| lexeme.name.clone()).collect();
        let lexeme_count = names.len();
        let mut ids: FxHashMap<String, SymbolId> = FxHashMap::default();
        for (index, name) in names.iter().enumerate() {
            if ids.insert(name.clone(), SymbolId::from_index(index)).is_some() {
                return Err(Error::language(format!("language {}: lexeme {name} is defined twice", spec.name)));
            }
        }
        for rule in &spec.rules {
            if !ids.contains_key(&rule.lhs) {
                ids.insert(rule.lhs.clone(), SymbolId::from_index(names.len()));
                names.push(rule.lhs.clone());
            }
        }
        let symbol = |name: &String| {
            ids.get(name)
                .copied()
                .ok_or_else(|| Error::language(format!("language {}: {name} is used and never defined", spec.name)))
        };
        let start = symbol(&spec.start)?;
        let mut rules = Vec::new();
        for rule in &spec.rules {
            let lhs = symbol(&rule.lhs)?;
            if lhs.index() < lexeme_count {
                return Err(Error::language(format!("language {}: {} is both lexeme and rule", spec.name, rule.lhs)));
            }
            let rhs = rule.rhs.iter().map(symbol).collect::<Result<Vec<_>, _>>()?;
            if rhs != [lhs] {
                rules.push(Rule { lhs, rhs, block: None });
            }
        }
        let rules = reduce(rules, start, lexeme_count, names.len(), producible);
        if !rules.iter().any(|rule| rule.lhs == start) {
            return Err(Error::language(format!("language {}: no text at all derives from {}", spec.name, spec.start)));
        }
        let mut grammar = Self::index(start, names, lexeme_count, rules);
        grammar.derive_modes(spec, mode_of)?;
        if let Some(layout) = &spec.layout {
            grammar.pair_blocks(symbol(&layout.indent)?, symbol(&layout.dedent)?, spec)?;
        }
        grammar.derive_adjacent();
        Ok(grammar)
    }

    fn index(start: SymbolId, names: Vec<String>, lexeme_count: usize, rules: Vec<Rule>) -> Self {
        let symbols = names.len();
        let nullable = nullable(&rules, symbols);
        let mut base = Vec::new();
        let mut next = Vec::new();
        let mut rule_of = Vec::new();
        let mut initial = vec![Vec::new(); symbols];
        let mut occurrences = vec![Vec::new(); symbols];
        for (index, rule) in rules.iter().enumerate() {
            base.push(u32::try_from(next.len()).expect("dot count fits u32"));
            let mut predicted = true;
            for &symbol in &rule.rhs {
                let dot = DotId::from_index(next.len());
                if predicted {
                    initial[symbol.index()].push(dot);
                }
                occurrences[symbol.index()].push(dot);
                predicted &= nullable[symbol.index()];
                next.push(symbol);
                rule_of.push(u32::try_from(index).expect("rule count fits u32"));
            }
            next.push(END_OF_RULE);
            rule_of.push(u32::try_from(index).expect("rule count fits u32"));
        }
        let nonterminals = symbols - lexeme_count;
        let mut grammar = Self {
            start,
            indent_dedent: None,
            names,
            lexeme_count,
            rules,
            base,
            next,
            rule_of,
            nullable,
            initial,
            occurrences,
            closure: Vec::new(),
            closure_words: nonterminals.div_ceil(64),
            adjacent: Vec::new(),
            first: Vec::new(),
            predictions: SharedPredictions::default(),
            modes: Modes::default(),
        };
        grammar.derive_closure(nonterminals);
        grammar
    }

    fn derive_closure(&mut self, nonterminals: usize) {
        let words = self.closure_words;
        let mut direct: Vec<Vec<usize>> = vec![Vec::new(); nonterminals];
        for (symbol, dots) in self.initial.iter().enumerate().skip(self.lexeme_count) {
            for &dot in dots {
                direct[self.lhs(dot).index() - self.lexeme_count].push(symbol - self.lexeme_count);
            }
        }
        self.closure = vec![0; nonterminals * words];
        for nonterminal in 0..nonterminals {
            let mut stack = vec![nonterminal];
            while let Some(at) = stack.pop() {
                let word = &mut self.closure[nonterminal * words + at / 64];
                if *word >> (at % 64) & 1 == 0 {
                    *word |= 1 << (at % 64);
                    stack.extend(&direct[at]);
                }
            }
        }
    }

    fn derive_modes(&mut self, spec: &LanguageSpec, of: Vec<ModeId>) -> Result<(), Error> {
        let code = 1 | spec.modes.iter().enumerate().filter(|(_, mode)| mode.code).map(|(at, _)| 2 << at).sum::<u64>();
        let of_lexeme = |symbol: SymbolId| 1u64 << of[symbol.index()].index();
        let mut first = vec![0u64; self.names.len()];
        for (index, mask) in first.iter_mut().enumerate().take(self.lexeme_count) {
            *mask = of_lexeme(SymbolId::from_index(index));
        }
        let mut follow = vec![0u64; self.names.len()];
        follow[self.start.index()] = 1;
        let mut after = vec![0u64; self.next.len()];
        loop {
            let mut changed = false;
            for (index, rule) in self.rules.iter().enumerate() {
                let mut behind = follow[rule.lhs.index()];
                for position in (0..=rule.rhs.len()).rev() {
                    let dot = (self.base[index] as usize) + position;
                    if position < rule.rhs.len() {
                        let symbol = rule.rhs[position];
                        if follow[symbol.index()] | behind != follow[symbol.index()] {
                            follow[symbol.index()] |= behind;
                            changed = true;
                        }
                        let own = first[symbol.index()];
                        behind = if self.nullable[symbol.index()] { behind | own } else { own };
                    }
                    after[dot] = behind;
                }
                let begins = rule.rhs.iter().try_fold(0u64, |mask, symbol| {
                    let mask = mask | first[symbol.index()];
                    if self.nullable[symbol.index()] { Ok(mask) } else { Err(mask) }
                });
                let (Ok(begins) | Err(begins)) = begins;
                if first[rule.lhs.index()] | begins != first[rule.lhs.index()] {
                    first[rule.lhs.index()] |= begins;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let mut after_lexeme = vec![0u64; self.lexeme_count];
        for (lexeme, mask) in after_lexeme.iter_mut().enumerate() {
            for &dot in &self.occurrences[lexeme] {
                *mask |= after[dot.index() + 1];
            }
        }
        let mut within = vec![false; self.names.len()];
        let mut stack: Vec<SymbolId> = Vec::new();
        for rule in &self.rules {
            if rule.rhs.iter().any(|symbol| self.is_lexeme(*symbol) && of_lexeme(*symbol) & code == 0) {
                stack.push(rule.lhs);
            }
        }
        while let Some(symbol) = stack.pop() {
            if !std::mem::replace(&mut within[symbol.index()], true) {
                for rule in self.rules.iter().filter(|rule| rule.lhs == symbol) {
                    stack.extend(rule.rhs.iter().filter(|symbol| !self.is_lexeme(**symbol)));
                }
            }
        }
        let nested = self.rule_of.iter().map(|&rule| within[self.rules[rule as usize].lhs.index()]).collect();
        // Where such a lexeme leads back to code, the line goes on that the rule began in (see `right`).
        let opens = |symbol: SymbolId| spec.modes.iter().any(|mode| mode.open.contains(&self.names[symbol.index()]));
        for (index, rule) in self.rules.iter().enumerate() {
            for (position, &symbol) in rule.rhs.iter().enumerate() {
                let text = self.is_lexeme(symbol) && of_lexeme(symbol) & code == 0;
                let back = after[self.base[index] as usize + position + 1] & code != 0;
                let begun = self.is_lexeme(rule.rhs[0]) && of_lexeme(rule.rhs[0]) & code != 0;
                if text && back && !opens(symbol) && !begun {
                    return Err(Error::language(format!(
                        "language {}: the rule of {} that ends a mode with {} must begin with the lexeme that leads into it",
                        spec.name,
                        self.names[rule.lhs.index()],
                        self.names[symbol.index()]
                    )));
                }
            }
        }
        self.modes = Modes { any: !spec.modes.is_empty(), of, code, after, after_lexeme, nested };
        Ok(())
    }

    /// Which lexemes can stand next to each other in some text of the language.
    fn derive_adjacent(&mut self) {
        let words = self.lexeme_count.div_ceil(64);
        let symbols = self.names.len();
        let mut first = vec![0u64; symbols * words];
        for lexeme in 0..self.lexeme_count {
            first[lexeme * words + lexeme / 64] |= 1 << (lexeme % 64);
        }
        let mut last = first.clone();
        let join = |into: &mut [u64], from: &[u64]| {
            into.iter_mut().zip(from).fold(false, |changed, (word, &more)| {
                let old = std::mem::replace(word, *word | more);
                changed | (old != *word)
            })
        };
        let mut changed = true;
        while changed {
            changed = false;
            for rule in &self.rules {
                let target = rule.lhs.index() * words..(rule.lhs.index() + 1) * words;
                for (table, backwards) in [(&mut first, false), (&mut last, true)] {
                    let mut own = vec![0u64; words];
                    for place in 0..rule.rhs.len() {
                        let symbol = rule.rhs[if backwards { rule.rhs.len() - 1 - place } else { place }];
                        join(&mut own, &table[symbol.index() * words..(symbol.index() + 1) * words]);
                        if !self.nullable[symbol.index()] {
                            break;
                        }
                    }
                    changed |= join(&mut table[target.clone()], &own);
                }
            }
        }
        self.first = vec![0; self.next.len() * words];
        for dot in (0..self.next.len()).rev() {
            let symbol = self.next[dot];
            if symbol == END_OF_RULE {
                continue;
            }
            let mut own = first[symbol.index() * words..(symbol.index() + 1) * words].to_vec();
            if self.nullable[symbol.index()] {
                join(&mut own, &self.first[(dot + 1) * words..(dot + 2) * words]);
            }
            self.first[dot * words..(dot + 1) * words].copy_from_slice(&own);
        }
        self.adjacent = vec![0; self.lexeme_count * words];
        for rule in &self.rules {
            for (place, one) in rule.rhs.iter().enumerate() {
                for other in &rule.rhs[place + 1..] {
                    let next = &first[other.index() * words..(other.index() + 1) * words];
                    for lexeme in crate::bits::numbers(&last[one.index() * words..(one.index() + 1) * words]) {
                        join(&mut self.adjacent[lexeme * words..(lexeme + 1) * words], next);
                    }
                    if !self.nullable[other.index()] {
                        break;
                    }
                }
            }
        }
        let Some((indent, dedent)) = self.indent_dedent else { return };
        for _ in 0..self.lexeme_count {
            for lexeme in 0..self.lexeme_count {
                for layout in [indent.index(), dedent.index()] {
                    if self.adjacent[lexeme * words + layout / 64] >> (layout % 64) & 1 == 1 {
                        let next = self.adjacent[layout * words..(layout + 1) * words].to_vec();
                        join(&mut self.adjacent[lexeme * words..(lexeme + 1) * words], &next);
                    }
                }
            }
        }
    }

    /// What the sessions of this grammar have predicted.
    #[must_use]
    pub fn shared_predictions(&self) -> &SharedPredictions {
        &self.predictions
    }

    /// Bitset of the lexemes that the rest of a dot's rule can begin with.
    #[inline]
    #[must_use]
    pub fn first(&self, dot: DotId) -> &[u64] {
        let words = self.lexeme_count.div_ceil(64);
        &self.first[dot.index() * words..(dot.index() + 1) * words]
    }

    /// Whether a lexeme can come right after another, the layout stage's passed over.
    #[must_use]
    pub fn is_adjacent(&self, one: SymbolId, other: SymbolId) -> bool {
        let words = self.lexeme_count.div_ceil(64);
        self.adjacent[one.index() * words + other.index() / 64] >> (other.index() % 64) & 1 == 1
    }

    /// Checks and records where blocks open and close: the column of a block is a property of one rule.
    fn pair_blocks(&mut self, indent: SymbolId, dedent: SymbolId, spec: &LanguageSpec) -> Result<(), Error> {
        self.indent_dedent = Some((indent, dedent));
        for rule in &mut self.rules {
            let indents: Vec<usize> = positions(&rule.rhs, indent);
            let dedents: Vec<usize> = positions(&rule.rhs, dedent);
            match (indents.as_slice(), dedents.as_slice()) {
                ([], []) => {}
                (&[open], &[close])
                    if open < close && rule.rhs[..open].iter().all(|symbol| symbol.index() < self.lexeme_count) =>
                {
                    rule.block = Some((open, close));
                }
                _ => {
                    return Err(Error::language(format!(
                        "language {}: a rule of {} must hold one {} with only lexemes before it, and one {} after it",
                        spec.name,
                        self.names[rule.lhs.index()],
                        self.names[indent.index()],
                        self.names[dedent.index()]
                    )));
                }
            }
        }
        Ok(())
    }

    /// The symbol after a dot, [`END_OF_RULE`] at the end.
    #[inline(always)]
    #[must_use]
    pub fn next(&self, dot: DotId) -> SymbolId {
        self.next[dot.index()]
    }

    /// The rule a dot stands in.
    #[inline(always)]
    #[must_use]
    pub fn rule(&self, dot: DotId) -> &Rule {
        &self.rules[self.rule_of[dot.index()] as usize]
    }

    /// The nonterminal of a dot's rule.
    #[inline(always)]
    #[must_use]
    pub fn lhs(&self, dot: DotId) -> SymbolId {
        self.rules[self.rule_of[dot.index()] as usize].lhs
    }

    /// How many symbols stand before the dot.
    #[inline(always)]
    #[must_use]
    pub fn position(&self, dot: DotId) -> usize {
        (dot.0 - self.base[self.rule_of[dot.index()] as usize]) as usize
    }

    /// The dot at a position of a rule.
    #[must_use]
    pub fn dot(&self, rule: usize, position: usize) -> DotId {
        DotId(self.base[rule] + u32::try_from(position).expect("rule length fits u32"))
    }

    /// The dot one symbol further.
    #[inline(always)]
    #[must_use]
    pub fn advance(dot: DotId) -> DotId {
        DotId(dot.0 + 1)
    }

    /// Whether a symbol derives the empty sequence.
    #[inline(always)]
    #[must_use]
    pub fn nullable(&self, symbol: SymbolId) -> bool {
        self.nullable[symbol.index()]
    }

    /// Whether a symbol is a lexeme.
    #[inline(always)]
    #[must_use]
    pub fn is_lexeme(&self, symbol: SymbolId) -> bool {
        symbol.index() < self.lexeme_count
    }

    /// Dots of predicted items that have the symbol next.
    #[must_use]
    pub fn initial(&self, symbol: SymbolId) -> &[DotId] {
        &self.initial[symbol.index()]
    }

    /// Every dot that has the symbol next.
    #[must_use]
    pub fn occurrences(&self, symbol: SymbolId) -> &[DotId] {
        &self.occurrences[symbol.index()]
    }

    /// A nonterminal's place in bitsets over nonterminals.
    #[inline(always)]
    #[must_use]
    pub fn nonterminal_index(&self, symbol: SymbolId) -> usize {
        symbol.index() - self.lexeme_count
    }

    /// Bitset of the nonterminals predicted together with one.
    #[must_use]
    pub fn closure(&self, nonterminal: SymbolId) -> &[u64] {
        let index = self.nonterminal_index(nonterminal);
        &self.closure[index * self.closure_words..(index + 1) * self.closure_words]
    }

    /// Words of a bitset over nonterminals.
    #[must_use]
    pub fn closure_words(&self) -> usize {
        self.closure_words
    }

    /// The mode of a lexeme.
    #[inline(always)]
    #[must_use]
    pub fn mode_of(&self, lexeme: SymbolId) -> ModeId {
        self.modes.of[lexeme.index()]
    }

    /// Whether the lexer has modes at all.
    #[inline(always)]
    #[must_use]
    pub fn has_modes(&self) -> bool {
        self.modes.any
    }

    /// The modes in which lexemes of no mode are read, as a mask.
    #[inline(always)]
    #[must_use]
    pub fn code_modes(&self) -> u64 {
        self.modes.code
    }

    /// The modes of the lexemes that can come next after a dot, as a mask.
    #[inline(always)]
    #[must_use]
    pub fn modes_after(&self, dot: DotId) -> u64 {
        self.modes.after[dot.index()]
    }

    /// The modes of the lexemes that can come right after a lexeme, as a mask.
    #[inline(always)]
    #[must_use]
    pub fn modes_after_lexeme(&self, lexeme: SymbolId) -> u64 {
        self.modes.after_lexeme[lexeme.index()]
    }

    /// Whether what follows a lexeme is never code.
    #[must_use]
    pub fn leads_away(&self, lexeme: SymbolId) -> bool {
        let after = self.modes_after_lexeme(lexeme);
        after != 0 && after & self.modes.code == 0
    }

    /// Whether a dot stands right after its block's INDENT.
    #[must_use]
    pub fn is_after_indent(&self, dot: DotId) -> bool {
        self.rule(dot).block.is_some_and(|(open, _)| self.position(dot) == open + 1)
    }

    /// Whether a dot's rule can stand between lexemes of another mode (in a field of a formatted string).
    #[inline(always)]
    #[must_use]
    pub fn is_nested(&self, dot: DotId) -> bool {
        self.modes.nested[dot.index()]
    }

    /// A symbol's name.
    #[must_use]
    pub fn name(&self, symbol: SymbolId) -> &str {
        &self.names[symbol.index()]
    }

    /// A symbol's name without the arguments of the template that it was made from, for people.
    #[must_use]
    pub fn title(&self, symbol: SymbolId) -> &str {
        let name = self.name(symbol);
        name.split_once('{').map_or(name, |(title, _)| title)
    }

    /// The number of symbols, lexemes first.
    #[must_use]
    pub fn symbol_count(&self) -> usize {
        self.names.len()
    }

    /// The number of lexemes.
    #[must_use]
    pub fn lexeme_count(&self) -> usize {
        self.lexeme_count
    }

    /// The number of dots over all rules.
    #[must_use]
    pub fn dot_count(&self) -> usize {
        self.next.len()
    }

    /// All rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

fn positions(symbols: &[SymbolId], wanted: SymbolId) -> Vec<usize> {
    symbols.iter().enumerate().filter(|&(_, &symbol)| symbol == wanted).map(|(index, _)| index).collect()
}

/// Drops rules with a symbol that derives no text, then rules that the start never reaches, then repetitions.
fn reduce(
    mut rules: Vec<Rule>,
    start: SymbolId,
    lexeme_count: usize,
    symbol_count: usize,
    producible: &[bool],
) -> Vec<Rule> {
    let mut productive: Vec<bool> = (0..symbol_count).map(|index| index < lexeme_count && producible[index]).collect();
    while rules.iter().any(|rule| {
        !productive[rule.lhs.index()]
            && rule.rhs.iter().all(|symbol| productive[symbol.index()])
            && std::mem::replace(&mut productive[rule.lhs.index()], true) | true
    }) {}
    rules.retain(|rule| rule.rhs.iter().all(|symbol| productive[symbol.index()]));
    let mut reachable = vec![false; symbol_count];
    let mut stack = vec![start];
    while let Some(symbol) = stack.pop() {
        if !std::mem::replace(&mut reachable[symbol.index()], true) {
            for rule in rules.iter().filter(|rule| rule.lhs == symbol) {
                stack.extend(&rule.rhs);
            }
        }
    }
    rules.retain(|rule| reachable[rule.lhs.index()]);
    let mut seen = std::collections::HashSet::new();
    rules.retain(|rule| seen.insert((rule.lhs, rule.rhs.clone())));
    rules
}

fn nullable(rules: &[Rule], symbol_count: usize) -> Vec<bool> {
    let mut nullable = vec![false; symbol_count];
    loop {
        let mut changed = false;
        for rule in rules {
            if !nullable[rule.lhs.index()] && rule.rhs.iter().all(|symbol| nullable[symbol.index()]) {
                nullable[rule.lhs.index()] = true;
                changed = true;
            }
        }
        if !changed {
            return nullable;
        }
    }
}
