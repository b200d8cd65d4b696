//! Check for lexemes of modes with code that R cannot distinguish, in languages with layout. Definitions with such
//! lexemes are refused.
//!
//! Left of the cursor, the parser's set determines the mode in force. R is read without one: in mode 0 outside of
//! literals, and inside of them in all modes with code at once. Each such mode contributes its own lexemes, mode 0 the
//! shared ones. The two readings agree for a lexeme X of a mode M with code under two conditions:
//!
//! 1. X stands only inside of literals (behind a lexeme of a mode without code that opens a bracket).
//! 2. The two readings read every other lexeme alike that can come where X can. They differ for one of another mode,
//!    and for a shared one that matches some text in only one of mode 0 and M.
//!
//! Two lexemes are taken to meet at one place if they can have the same innermost open bracket there, after the same
//! lexeme that closes the same bracket. This holds for all lexemes that do meet, so no definition with different
//! readings is accepted. A definition is also refused if only a text further left keeps the two lexemes apart.

use crate::bits::{self, BitRows, BitSet};
use crate::error::Error;
use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, DotId, LexemeId, ModeId, SymbolId};
use crate::lexing::lexer::Lexer;
use crate::lexing::roles::Role;
use crate::lexing::two_modes::TwoModes;
use crate::spec::LanguageSpec;
use rustc_hash::{FxHashMap, FxHashSet};

/// The innermost open bracket of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Bracket {
    /// None.
    Top,
    /// One that this lexeme opens.
    Open(SymbolId),
    /// Any bracket that was open before a rule closed one.
    Any,
}

/// Surroundings of a place: the innermost open bracket, and the presence of a literal around it.
type Surroundings = (Bracket, bool);

const ANYWHERE: Surroundings = (Bracket::Any, false);

/// The places of each lexeme.
struct Places {
    /// Surroundings of each lexeme.
    of: FxHashMap<SymbolId, FxHashSet<Surroundings>>,
    /// Followers of each lexeme, by the bracket that it closes and the innermost one that is open behind it.
    followers: FxHashMap<Behind, BitSet>,
}

/// A place behind a lexeme: the lexeme, the bracket that it closes, and the innermost one that is open behind it.
type Behind = (SymbolId, Option<Bracket>, Bracket);

/// An occurrence of a lexeme in a rule: the brackets that it closes, and those that are open behind it.
type Occurrence = (FxHashSet<Option<Bracket>>, FxHashSet<Bracket>);

/// Check that R is read as L is.
///
/// # Errors
/// A lexeme of a mode with code that R cannot distinguish.
pub(super) fn check(spec: &LanguageSpec, lexer: &Lexer, grammar: &Grammar, roles: &[Role]) -> Result<(), Error> {
    let own = |mode: ModeId| {
        let lexemes = (0..grammar.lexeme_count()).map(SymbolId::from_index);
        lexemes.filter(move |&lexeme| grammar.mode_of(lexeme) == mode && !grammar.occurrences(lexeme).is_empty())
    };
    let modes = (1..=spec.modes.len()).map(ModeId::from_index);
    let modes: Vec<ModeId> = modes.filter(|&mode| grammar.reads_code(mode) && own(mode).next().is_some()).collect();
    if modes.is_empty() {
        return Ok(());
    }
    let places = Places::find(grammar, roles);
    let wrong = |mode: ModeId, what: String| {
        let name = &spec.modes[mode.index() - 1].name;
        Err(Error::language(format!("language {}: mode {name}: {what}", spec.name)))
    };
    for mode in modes {
        for lexeme in own(mode) {
            let named = grammar.name(lexeme);
            if places.of[&lexeme].iter().any(|&(_, inside)| !inside) {
                let why = "right of the cursor, lexemes of a mode with code are read inside of literals alone";
                return wrong(mode, format!("lexeme {named} can stand outside of a literal; {why}"));
            }
            for other in doubtful(lexer, grammar, roles, mode, lexeme) {
                if other.is_none_or(|other| places.meet(lexeme, other)) {
                    let other = other.map_or("an ignored lexeme", |other| grammar.name(other));
                    let why = "right of the cursor it cannot be told which is read";
                    return wrong(mode, format!("lexeme {named} and {other} can come at the same place; {why}"));
                }
            }
        }
    }
    Ok(())
}

/// Lexemes that L and R read differently where a lexeme of a mode can come. `None` is an ignored lexeme, which may come
/// anywhere.
fn doubtful(lexer: &Lexer, grammar: &Grammar, roles: &[Role], mode: ModeId, lexeme: SymbolId) -> Vec<Option<SymbolId>> {
    let lexemes = (0..grammar.lexeme_count()).map(SymbolId::from_index);
    let others = lexemes.filter(|&other| ![ModeId(0), mode].contains(&grammar.mode_of(other)));
    let mut found: Vec<Option<SymbolId>> =
        others.filter(|&one| !grammar.occurrences(one).is_empty()).map(Some).collect();
    let mut add = |id: LexemeId| {
        let symbol = SymbolId::from(id);
        let ignored = roles[id.index()].is_ignored() || roles[id.index()] == Role::Newline;
        if symbol != lexeme {
            found.push((!ignored).then_some(symbol));
        }
    };
    for (plain, in_mode) in differing(lexer, mode) {
        // The mode does not read the plain match; R reads it all the same.
        lexer.lexemes(plain).iter().copied().for_each(&mut add);
        // The mode reads a shared lexeme that R does not see.
        let shared = |id: &&LexemeId| grammar.mode_of(SymbolId::from(**id)) == ModeId(0);
        lexer.lexemes(in_mode).iter().filter(shared).copied().for_each(&mut add);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Pairs of longest matches of one text in mode 0 and in another mode, where they differ; 0 is no match.
fn differing(lexer: &Lexer, mode: ModeId) -> FxHashSet<(AcceptId, AcceptId)> {
    let bytes = lexer.representatives();
    let start = TwoModes::start(lexer, mode);
    let mut seen: FxHashSet<TwoModes> = std::iter::once(start).collect();
    let mut waiting = vec![start];
    let mut found = FxHashSet::default();
    while let Some(at) = waiting.pop() {
        if !at.matches_alike() {
            found.insert((at.last_plain, at.last_in_mode));
        } else if at.goes_on_alike() {
            continue;
        }
        let next = bytes.iter().filter_map(|&byte| at.after(lexer, byte));
        waiting.extend(next.filter(|&next| seen.insert(next)));
    }
    found
}

impl Places {
    /// Walk through the rules from the start, with the surroundings of each.
    fn find(grammar: &Grammar, roles: &[Role]) -> Self {
        let mut of: FxHashMap<SymbolId, FxHashSet<Surroundings>> = FxHashMap::default();
        let mut occurrences: FxHashMap<DotId, Occurrence> = FxHashMap::default();
        let mut rules: FxHashMap<SymbolId, Vec<usize>> = FxHashMap::default();
        for (index, rule) in grammar.rules().iter().enumerate() {
            rules.entry(rule.lhs).or_default().push(index);
        }
        let start = (grammar.start, (Bracket::Top, false));
        let mut seen: FxHashSet<(SymbolId, Surroundings)> = std::iter::once(start).collect();
        let mut waiting = vec![start];
        while let Some((symbol, around)) = waiting.pop() {
            for &rule in rules.get(&symbol).into_iter().flatten() {
                let mut open = vec![around];
                for (position, &next) in grammar.rules()[rule].rhs.iter().enumerate() {
                    let here = open.last().copied().unwrap_or(ANYWHERE);
                    if !grammar.is_lexeme(next) {
                        if seen.insert((next, here)) {
                            waiting.push((next, here));
                        }
                        continue;
                    }
                    of.entry(next).or_default().insert(here);
                    let mut closed = None;
                    match roles[next.index()] {
                        Role::Open => {
                            let literal = !grammar.reads_code(grammar.mode_of(next));
                            open.push((Bracket::Open(next), here.1 || literal));
                        }
                        Role::Close => closed = Some(open.pop().unwrap_or(ANYWHERE).0),
                        _ => {}
                    }
                    let occurrence = occurrences.entry(grammar.dot(rule, position)).or_default();
                    occurrence.0.insert(closed);
                    occurrence.1.insert(open.last().copied().unwrap_or(ANYWHERE).0);
                }
            }
        }
        Self { of, followers: followers(grammar, &occurrences) }
    }

    /// Return whether two lexemes can come at one place.
    fn meet(&self, one: SymbolId, other: SymbolId) -> bool {
        let brackets = |symbol: SymbolId| self.of.get(&symbol).into_iter().flatten().map(|around| around.0);
        let shared = both(&brackets(one).collect(), &brackets(other).collect());
        let behind = |symbol: SymbolId| {
            let comes = move |followers: &BitSet| followers.contains(symbol.index());
            self.followers.iter().filter(move |(_, followers)| comes(followers)).map(|(&place, _)| place)
        };
        let alike =
            |one: Option<Bracket>, other: Option<Bracket>| one == other || [one, other].contains(&Some(Bracket::Any));
        behind(one).any(|(before, closed, open)| {
            shared.iter().any(|&bracket| alike(Some(bracket), Some(open)))
                && behind(other).any(|(lexeme, others_closed, others_open)| {
                    lexeme == before && alike(closed, others_closed) && alike(Some(open), Some(others_open))
                })
        })
    }
}

/// Return the followers of each lexeme, by its occurrences.
fn followers(grammar: &Grammar, occurrences: &FxHashMap<DotId, Occurrence>) -> FxHashMap<Behind, BitSet> {
    let last = last_occurrences(grammar);
    let mut followers = BitRows::new(grammar.dot_count(), grammar.lexeme_count());
    for (index, rule) in grammar.rules().iter().enumerate() {
        for (position, symbol) in rule.rhs.iter().enumerate() {
            let rest = grammar.first(grammar.dot(index, position + 1));
            if grammar.is_lexeme(*symbol) {
                bits::unite(followers.row_mut(grammar.dot(index, position).index()), rest);
            } else {
                for dot in bits::numbers(last.row(symbol.index())) {
                    bits::unite(followers.row_mut(dot), rest);
                }
            }
        }
    }
    let mut found: FxHashMap<Behind, BitSet> = FxHashMap::default();
    for (&dot, (closed, open)) in occurrences {
        for (&closed, &open) in closed.iter().flat_map(|closed| open.iter().map(move |open| (closed, open))) {
            let place = found.entry((grammar.next(dot), closed, open));
            let own = place.or_insert_with(|| BitSet::new(grammar.lexeme_count()));
            bits::unite(own.words_mut(), followers.row(dot.index()));
        }
    }
    found
}

/// Per nonterminal: the dots before the last lexemes of its texts.
fn last_occurrences(grammar: &Grammar) -> BitRows {
    let mut last = BitRows::new(grammar.symbol_count(), grammar.dot_count());
    let mut changed = true;
    while changed {
        changed = false;
        for (index, rule) in grammar.rules().iter().enumerate() {
            for (position, &symbol) in rule.rhs.iter().enumerate().rev() {
                if grammar.is_lexeme(symbol) {
                    let dot = grammar.dot(index, position).index();
                    changed |= !bits::contains(last.row(rule.lhs.index()), dot);
                    bits::insert(last.row_mut(rule.lhs.index()), dot);
                    break;
                }
                let own = last.row(symbol.index()).to_vec();
                changed |= bits::grow(last.row_mut(rule.lhs.index()), &own);
                if !grammar.nullable(symbol) {
                    break;
                }
            }
        }
    }
    last
}

/// Brackets in both sets; `Any` matches all.
fn both(one: &FxHashSet<Bracket>, other: &FxHashSet<Bracket>) -> FxHashSet<Bracket> {
    let any = |set: &FxHashSet<Bracket>| set.contains(&Bracket::Any);
    let in_both = |bracket: &&Bracket| (one.contains(*bracket) || any(one)) && (other.contains(*bracket) || any(other));
    one.union(other).filter(in_both).copied().collect()
}
