//! Extent to which R can be read from L's symbols in progress, and where R breaks.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::ids::{SetId, SymbolId};
use crate::language::compiled::Language;
use crate::right::queries::CursorContext;
use rustc_hash::FxHashSet;

/// Offset at which R stops being the end of a program, for people: the first byte of the symbol that no parse of R gets
/// past. R is read from where L's symbol in progress ends in it, and from its first byte if that symbol may be over.
#[must_use]
pub(crate) fn right_reach(engine: &Engine, branches: &[Branch]) -> usize {
    let lexer = &engine.language.lexer;
    let mut furthest = None;
    for branch in branches {
        let begun = begins_text(&engine.language, branch);
        let held = begun || is_held_by_text(engine, branch.set);
        let mut read = |start: u32, text: bool| {
            let around = CursorContext { code: !held || text, text: held };
            furthest = furthest.max(Some(engine.right.reach(start, around)));
        };
        if lexer.is_start(branch.state) || lexer.accepts(branch.state) {
            read(0, false);
        }
        if let Some((end, accept)) = engine.right.lookahead.end(branch.state) {
            read(end, engine.language.is_string(accept));
        }
    }
    // L's symbol in progress may not end in R; then the middle has to end it.
    let code = CursorContext { code: true, text: false };
    furthest.unwrap_or_else(|| engine.right.reach(0, code)) as usize
}

/// Return whether the symbol in progress may end as one that leads into the text of a literal that holds code.
fn begins_text(language: &Language, branch: &Branch) -> bool {
    let accept = language.lexer.accept(branch.state);
    let mut lexemes = language.lexer.lexemes(accept).iter();
    accept.0 != 0 && lexemes.any(|&lexeme| language.grammar.leads_away(SymbolId::from(lexeme)))
}

/// Return whether an open rule of a stack belongs to a literal that holds code: it contains lexemes of modes that read
/// no code.
fn is_held_by_text(engine: &Engine, set: SetId) -> bool {
    let grammar = &engine.language.grammar;
    let text = |symbol: &SymbolId| grammar.is_lexeme(*symbol) && !grammar.reads_code(grammar.mode_of(*symbol));
    let mut seen: FxHashSet<SetId> = FxHashSet::default();
    let mut stack = vec![set];
    while let Some(at) = stack.pop() {
        if seen.insert(at) {
            let items = &engine.parser.set(at).items;
            if grammar.has_modes() && items.iter().any(|item| grammar.rule(item.dot).rhs.iter().any(text)) {
                return true;
            }
            stack.extend(items.iter().map(|item| item.origin));
        }
    }
    false
}
