//! BNF rules with a number for every dot, and the tables that Earley needs of dots and symbols.
//!
//! Nullable symbols follow Aycock & Horspool 2002: a dot before a nullable symbol also stands after it, so an empty
//! derivation is never completed.

use crate::error::Error;
use crate::grammar::file_start::First;
use crate::grammar::rule::{Rule, nullable};
use crate::grammar::whole_file::unfold;
use crate::ids::{DotId, SymbolId};
use crate::limits;
use crate::spec::LanguageSpec;
use rustc_hash::FxHashMap;

/// Marker for "no symbol after the dot" in [`Rules::next`].
pub(crate) const END_OF_RULE: SymbolId = SymbolId(u16::MAX);

/// Reduced rules: every symbol is reachable and productive.
#[derive(Debug)]
pub struct Rules {
    /// The start nonterminal.
    pub start: SymbolId,
    /// The nonterminals that a whole file is, behind a first lexeme if the language has such lexemes: `start` without.
    pub files: Vec<SymbolId>,
    /// The INDENT and DEDENT lexemes of a language with layout.
    pub indent_dedent: Option<(SymbolId, SymbolId)>,
    names: Vec<String>,
    lexeme_count: usize,
    rules: Vec<Rule>,
    base: Vec<u32>,
    next: Vec<SymbolId>,
    rule_of: Vec<u32>,
    /// Per dot: the nonterminal of its rule.
    lhs_of: Vec<SymbolId>,
    nullable: Vec<bool>,
    /// Per symbol: the dots of predicted items that have it next (at position 0, or after nullable symbols only).
    initial: Vec<Vec<DotId>>,
    /// Per nonterminal: the symbols that its predicted items have next.
    first: Vec<Vec<SymbolId>>,
    /// Per symbol: every dot that has it next.
    occurrences: Vec<Vec<DotId>>,
}

/// Names of all symbols, lexemes first, and the symbol of each name.
struct Symbols<'a> {
    spec: &'a LanguageSpec,
    names: Vec<String>,
    ids: FxHashMap<String, SymbolId>,
}

impl<'a> Symbols<'a> {
    fn of(spec: &'a LanguageSpec) -> Result<Self, Error> {
        let mut names: Vec<String> = spec.lexemes.iter().map(|lexeme| lexeme.name.clone()).collect();
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
        let symbols = Self { spec, names, ids };
        symbols.check_count()?;
        Ok(symbols)
    }

    fn check_count(&self) -> Result<(), Error> {
        let count = self.names.len();
        if count > limits::SYMBOLS { Err(Error::limit("symbols", count, limits::SYMBOLS)) } else { Ok(()) }
    }

    fn find(&self, name: &str) -> Result<SymbolId, Error> {
        let undefined = || Error::language(format!("language {}: {name} is used and never defined", self.spec.name));
        self.ids.get(name).copied().ok_or_else(undefined)
    }
}

impl Rules {
    /// Read and reduce a definition's rules. `producible` marks the lexemes that some text can be lexed as.
    ///
    /// # Errors
    /// Unknown symbols, an empty language, or a block whose INDENT and DEDENT are not paired in one rule.
    pub fn compile(spec: &LanguageSpec, producible: &[bool]) -> Result<Self, Error> {
        let mut symbols = Symbols::of(spec)?;
        let lexeme_count = spec.lexemes.len();
        let mut start = symbols.find(&spec.start)?;
        let mut rules = Vec::new();
        for rule in &spec.rules {
            let lhs = symbols.find(&rule.lhs)?;
            if lhs.index() < lexeme_count {
                return Err(Error::language(format!("language {}: {} is both lexeme and rule", spec.name, rule.lhs)));
            }
            let rhs = rule.rhs.iter().map(|name| symbols.find(name)).collect::<Result<Vec<_>, _>>()?;
            if rhs != [lhs] {
                rules.push(Rule { lhs, rhs, block: None });
            }
        }
        let mut files = vec![start];
        if let Some(first) = first_lexemes(spec, &symbols)? {
            start = first.put_before(&mut rules, &mut symbols.names, start);
            symbols.check_count()?;
            files = rules.iter().filter(|rule| rule.lhs == start).filter_map(|rule| rule.rhs.get(1).copied()).collect();
            files.sort_unstable();
            files.dedup();
        }
        unfold(&mut rules, &files, lexeme_count);
        let rules = reduce(rules, start, lexeme_count, symbols.names.len(), producible);
        if !rules.iter().any(|rule| rule.lhs == start) {
            return Err(Error::language(format!("language {}: no text at all derives from {}", spec.name, spec.start)));
        }
        let layout = match &spec.layout {
            Some(layout) => Some((symbols.find(&layout.indent)?, symbols.find(&layout.dedent)?)),
            None => None,
        };
        let mut rules = Self::index(start, symbols.names, lexeme_count, rules);
        // A first lexeme that no text begins with has no file behind it.
        files.retain(|&file| rules.rules.iter().any(|rule| rule.lhs == file));
        rules.files = files;
        if let Some((indent, dedent)) = layout {
            rules.pair_blocks(indent, dedent, spec)?;
        }
        Ok(rules)
    }

    fn index(start: SymbolId, names: Vec<String>, lexeme_count: usize, rules: Vec<Rule>) -> Self {
        let symbols = names.len();
        let nullable = nullable(&rules, symbols);
        let mut base = Vec::new();
        let mut next = Vec::new();
        let mut rule_of = Vec::new();
        let mut lhs_of = Vec::new();
        let mut initial = vec![Vec::new(); symbols];
        let mut first = vec![Vec::new(); symbols - lexeme_count];
        let mut occurrences = vec![Vec::new(); symbols];
        for (index, rule) in rules.iter().enumerate() {
            base.push(u32::try_from(next.len()).expect("dot count fits u32"));
            let mut predicted = true;
            for &symbol in &rule.rhs {
                let dot = DotId::from_index(next.len());
                if predicted {
                    initial[symbol.index()].push(dot);
                    first[rule.lhs.index() - lexeme_count].push(symbol);
                }
                occurrences[symbol.index()].push(dot);
                predicted &= nullable[symbol.index()];
                next.push(symbol);
                rule_of.push(u32::try_from(index).expect("rule count fits u32"));
            }
            next.push(END_OF_RULE);
            rule_of.push(u32::try_from(index).expect("rule count fits u32"));
            lhs_of.resize(next.len(), rule.lhs);
        }
        for symbols in &mut first {
            symbols.sort_unstable();
            symbols.dedup();
        }
        Self {
            start,
            files: vec![start],
            indent_dedent: None,
            names,
            lexeme_count,
            rules,
            base,
            next,
            rule_of,
            lhs_of,
            nullable,
            initial,
            first,
            occurrences,
        }
    }

    /// Check and record where blocks open and close: the column of a block is a property of one rule.
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
        self.lhs_of[dot.index()]
    }

    /// Number of symbols before the dot.
    #[inline(always)]
    #[must_use]
    pub fn position(&self, dot: DotId) -> usize {
        (dot.0 - self.base[self.rule_of[dot.index()] as usize]) as usize
    }

    /// The dot at a position of a rule.
    #[must_use]
    pub fn dot(&self, rule: usize, position: usize) -> DotId {
        DotId::from_index(self.base[rule] as usize + position)
    }

    /// Return whether a symbol derives the empty sequence.
    #[inline(always)]
    #[must_use]
    pub fn nullable(&self, symbol: SymbolId) -> bool {
        self.nullable[symbol.index()]
    }

    /// Return whether a symbol is a lexeme.
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

    /// The symbols that the predicted items of a nonterminal have next, by its place in bitsets.
    #[must_use]
    pub fn first_symbols(&self, nonterminal: usize) -> &[SymbolId] {
        &self.first[nonterminal]
    }

    /// Every dot that has the symbol next.
    #[must_use]
    pub fn occurrences(&self, symbol: SymbolId) -> &[DotId] {
        &self.occurrences[symbol.index()]
    }

    /// All dots that have a symbol next, by that symbol.
    pub fn dots_by_next(&self) -> impl Iterator<Item = DotId> {
        self.occurrences.iter().flatten().copied()
    }

    /// A nonterminal's place in bitsets over nonterminals.
    #[inline(always)]
    #[must_use]
    pub fn nonterminal_index(&self, symbol: SymbolId) -> usize {
        symbol.index() - self.lexeme_count
    }

    /// The nonterminal at a place in bitsets over nonterminals.
    #[inline(always)]
    #[must_use]
    pub fn nonterminal(&self, index: usize) -> SymbolId {
        SymbolId::from_index(index + self.lexeme_count)
    }

    /// Return whether a dot stands right after its block's INDENT.
    #[must_use]
    pub fn is_after_indent(&self, dot: DotId) -> bool {
        self.rule(dot).block.is_some_and(|(open, _)| self.position(dot) == open + 1)
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

/// Drop rules with a symbol that derives no text, then rules that the start never reaches, then repetitions.
fn reduce(
    mut rules: Vec<Rule>,
    start: SymbolId,
    lexeme_count: usize,
    symbol_count: usize,
    producible: &[bool],
) -> Vec<Rule> {
    let productive = productive(&rules, lexeme_count, symbol_count, producible);
    rules.retain(|rule| rule.rhs.iter().all(|symbol| productive[symbol.index()]));
    let mut of_symbol: Vec<Vec<usize>> = vec![Vec::new(); symbol_count];
    for (index, rule) in rules.iter().enumerate() {
        of_symbol[rule.lhs.index()].push(index);
    }
    let mut reachable = vec![false; symbol_count];
    let mut stack = vec![start];
    while let Some(symbol) = stack.pop() {
        if !std::mem::replace(&mut reachable[symbol.index()], true) {
            stack.extend(of_symbol[symbol.index()].iter().flat_map(|&rule| &rules[rule].rhs));
        }
    }
    rules.retain(|rule| reachable[rule.lhs.index()]);
    let mut seen = std::collections::HashSet::new();
    rules.retain(|rule| seen.insert((rule.lhs, rule.rhs.clone())));
    rules
}

/// Per symbol: whether it derives a text of lexemes that some text can be lexed as.
fn productive(rules: &[Rule], lexeme_count: usize, symbol_count: usize, producible: &[bool]) -> Vec<bool> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); symbol_count];
    for (index, rule) in rules.iter().enumerate() {
        for symbol in &rule.rhs {
            users[symbol.index()].push(index);
        }
    }
    // Symbols of each rule that are not yet known to be productive, each as often as it stands there.
    let mut missing: Vec<usize> = rules.iter().map(|rule| rule.rhs.len()).collect();
    let mut found = vec![false; symbol_count];
    let lexemes = (0..lexeme_count).filter(|&index| producible[index]);
    let empty = rules.iter().filter(|rule| rule.rhs.is_empty()).map(|rule| rule.lhs.index());
    let mut stack: Vec<usize> = lexemes.chain(empty).collect();
    while let Some(symbol) = stack.pop() {
        if std::mem::replace(&mut found[symbol], true) {
            continue;
        }
        for &rule in &users[symbol] {
            missing[rule] -= 1;
            if missing[rule] == 0 {
                stack.push(rules[rule].lhs.index());
            }
        }
    }
    found
}

/// The lexemes that stand at the first byte of a file, if the language has any.
fn first_lexemes(spec: &LanguageSpec, symbols: &Symbols<'_>) -> Result<Option<First>, Error> {
    let Some(start) = spec.file_start() else { return Ok(None) };
    let (ignored, read): (Vec<&String>, Vec<&String>) =
        spec.first_lexemes.iter().partition(|name| spec.ignore.contains(name));
    let find = |names: Vec<&String>| names.into_iter().map(|name| symbols.find(name)).collect::<Result<_, _>>();
    Ok(Some(First { start: SymbolId::from_index(start), read: find(read)?, ignored: find(ignored)? }))
}
