//! Open constructs at a place of the text, for people, and where each begins.
//!
//! A set of the left chart stands for a parse stack wherever it comes up, so it has no position. But it cannot come up
//! again inside a construct that began at it, since sets are younger than the origins of their items. So a construct
//! with origin s began where s was current for the last time.
//!
//! A construct is reported if it is open in every parse. The items of a set with the least origin are open in every
//! parse. Constructs that began later may have ended already, since those items have passed them. From the least origin
//! the search goes on with the items that lead to it. Nothing is open where the file may end.

use crate::bits;
use crate::chart::left::{FIRST_SET, Item};
use crate::engine::branch::Branch;
use crate::engine::parser::Parser;
use crate::ids::{DotId, LexemeId, ModeId, SetId, SymbolId};
use crate::language::compiled::Language;
use crate::lexing::roles::Role;
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};

/// Last offset at which each set was current: the first byte after the symbol that led to it.
#[derive(Debug, Default)]
pub(crate) struct LastSeen(FxHashMap<SetId, usize>);

impl LastSeen {
    /// Record the sets that branches reach with the byte at an offset.
    pub(crate) fn see(&mut self, before: &[Branch], after: &[Branch], offset: usize) {
        for branch in after {
            if before.iter().all(|old| old.set != branch.set) {
                self.0.insert(branch.set, offset);
            }
        }
    }

    fn of(&self, set: SetId) -> usize {
        self.0.get(&set).copied().unwrap_or(0)
    }
}

/// Name of an item for people.
#[derive(Debug)]
struct ItemName {
    /// Its place among the language's constructs; a smaller one says more.
    rank: usize,
    /// A name at its open bracket: the bracket's place in the rule, and the name, unless it is the bracket's text.
    bracket: Option<(usize, Option<String>)>,
    /// A name at its first symbol.
    whole: Option<String>,
}

/// The constructs around a branch, innermost first, with the offset at which each begins.
pub(crate) fn open_constructs(
    parser: &mut Parser,
    branch: &Branch,
    last_seen: &mut LastSeen,
    text: &[u8],
) -> Vec<(String, usize)> {
    let language = parser.language().clone();
    let lexer = &language.lexer;
    let mut set = branch.set;
    let accept = lexer.accept(branch.state);
    if accept.0 != 0
        && !lexer.extends(branch.state)
        && let Some(ended) = parser.end_symbol(branch, accept)
        && ended.set != set
    {
        set = ended.set;
        last_seen.0.insert(set, text.len());
    }
    if parser.set(set).accepts {
        return Vec::new();
    }
    let grammar = &language.grammar;
    let mut found = Vec::new();
    let mut items: Vec<Item> = parser.set(set).items.to_vec();
    while let Some(origin) = items.iter().map(|item| item.origin).min() {
        poll();
        items.retain(|item| item.origin == origin);
        let rank = |item: &Item| item_name(&language, item.dot).map(|named| named.rank);
        let best = items.iter().filter_map(rank).min();
        if best.is_some() {
            items.retain(|item| rank(item) == best);
            let begin = first_symbol(&language, text, last_seen.of(origin));
            if let Some(named) = item_name(&language, items[0].dot) {
                if let Some(bracket) = named.bracket {
                    let end = bracket_end(parser, set, items[0], bracket.0).map(|set| last_seen.of(set));
                    found.push(at_bracket(&language, items[0].dot, text, (begin, end), bracket));
                }
                found.extend(named.whole.map(|name| (name, begin)));
            }
        }
        if origin == FIRST_SET {
            break;
        }
        let leads = |item: &&Item| {
            let next = grammar.next(item.dot);
            !grammar.is_lexeme(next)
                && items.iter().any(|inner| {
                    bits::contains(grammar.closure(next), grammar.nonterminal_index(grammar.lhs(inner.dot)))
                })
        };
        let around: Vec<Item> = parser.set(origin).items.iter().filter(leads).copied().collect();
        items = around;
        set = origin;
    }
    found
}

/// Name an item for people. `None` if it has no name, or has read nothing that other rules have not read as well.
fn item_name(language: &Language, dot: DotId) -> Option<ItemName> {
    let grammar = &language.grammar;
    let read: Vec<SymbolId> =
        grammar.rule(dot).rhs[..grammar.position(dot)].iter().map(|&symbol| language.carried(symbol)).collect();
    let role = |symbol: SymbolId| {
        if grammar.is_lexeme(symbol) { language.role(LexemeId(symbol.0)) } else { Role::Symbol }
    };
    // Lists that Lark made out of `+` begin with two underscores: they have read what they repeat.
    let committed = read.len() > 1
        || read.iter().any(|&symbol| grammar.is_lexeme(symbol) || grammar.name(symbol).starts_with("__"));
    if !committed {
        return None;
    }
    let bracket = read.iter().enumerate().fold(None, |open, (position, &symbol)| match role(symbol) {
        Role::Open => Some(position),
        Role::Close => None,
        _ => open,
    });
    let mut found = ItemName { rank: usize::MAX, bracket: None, whole: None };
    let mut named = None;
    for (rank, construct) in language.constructs(grammar.lhs(dot)) {
        let of_bracket = construct.lexeme.is_some_and(|lexeme| role(lexeme) == Role::Open);
        let place = match construct.lexeme {
            Some(lexeme) if of_bracket => bracket.is_some_and(|open| read[open] == lexeme),
            Some(lexeme) => read.contains(&lexeme),
            None => true,
        };
        let cell = if of_bracket { &mut named } else { &mut found.whole };
        if place && cell.is_none() {
            *cell = Some(construct.name.clone());
            found.rank = found.rank.min(rank);
        }
    }
    match (bracket, named, found.whole.is_some()) {
        (Some(position), named, true) => found.bracket = Some((position, named)),
        (Some(_), Some(named), false) => found.whole = Some(named),
        (Some(position), None, false) => found.bracket = Some((position, None)),
        (None, _, true) => {}
        (None, _, false) => return None,
    }
    Some(found)
}

/// The set right after the open bracket of an item.
fn bracket_end(parser: &Parser, set: SetId, item: Item, position: usize) -> Option<SetId> {
    let grammar = &parser.language().grammar;
    let back = grammar.position(item.dot) - position - 1;
    let wanted = DotId::from_index(item.dot.index() - back);
    let mut seen: FxHashSet<SetId> = FxHashSet::default();
    let mut stack = vec![set];
    while let Some(at) = stack.pop() {
        if !seen.insert(at) {
            continue;
        }
        let items = &parser.set(at).items;
        if items.iter().any(|other| (other.dot, other.origin) == (wanted, item.origin)) {
            return Some(at);
        }
        stack.extend(items.iter().map(|item| item.origin).filter(|&origin| origin > item.origin));
    }
    None
}

/// Name and offset of a bracket, or the construct's beginning if the bracket's place is unknown.
fn at_bracket(
    language: &Language,
    dot: DotId,
    text: &[u8],
    (begin, end): (usize, Option<usize>),
    (position, name): (usize, Option<String>),
) -> (String, usize) {
    let lexeme = language.carried(language.grammar.rule(dot).rhs[position]);
    // Of a text that ends with a bracket, the bracket.
    let literal = language.literal(lexeme);
    let length = literal.map_or(1, str::len);
    let offset = end.map_or(begin, |end| end - length);
    let bracket = || String::from_utf8_lossy(text.get(offset..offset + length).unwrap_or_default()).into_owned();
    (name.or_else(|| literal.map(str::to_string)).unwrap_or_else(bracket), offset)
}

/// Offset of the first symbol at or after `from`. Blanks, comments and line breaks are passed over.
fn first_symbol(language: &Language, text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some((length, accept)) = language.lexer.longest_match(ModeId(0), &text[at..]) {
        let role = language.accept_role(accept);
        if !role.is_ignored() && role != Role::Newline {
            break;
        }
        at += length;
    }
    at
}
