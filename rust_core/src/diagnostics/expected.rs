//! Lexemes that may come next, and open rules, for people.

use crate::chart::left::{FIRST_SET, NO_SET, Read};
use crate::chart::texts::WILD;
use crate::engine::branch::{Branch, InLine};
use crate::engine::parser::Parser;
use crate::engine::verdicts::Engine;
use crate::ids::SetId;
use crate::language::free::INFINITE;
use crate::lexing::layout::Column;
use crate::lexing::roles::Role;

/// Lexemes that may be read next, for people; after the symbol in progress, if it can end here.
pub(crate) fn expected(engine: &mut Engine, branch: &Branch) -> Vec<String> {
    let language = engine.language.clone();
    let accept = language.lexer.accept(branch.state);
    let ended = if accept.0 == 0 { None } else { engine.parser.end_symbol(branch, accept) };
    let branch = &ended.unwrap_or(*branch);
    let mut names = Vec::new();
    let line = matches!(branch.line, InLine::Start { .. });
    for accept in language.lexer.accept_sets() {
        let role = language.accept_role(accept);
        if role.is_ignored() || line && role == Role::Newline {
            continue;
        }
        let mut befores = vec![branch.set];
        if line {
            befores.extend(sets_after_layout(&mut engine.parser, branch));
        }
        for before in befores {
            let after = engine.parser.scan(before, Read::Accepted(accept, WILD));
            if after != NO_SET {
                let reachability = engine.reachability(after);
                if reachability.free.iter().any(|&cost| cost != INFINITE)
                    || reachability.targets.iter().any(|&word| word != 0)
                {
                    names.extend(language.unmarked(accept).iter().flat_map(|&lexeme| language.shown(lexeme)));
                }
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Sets after the layout symbols of a line at some column: the columns of the open blocks, and one right of them.
fn sets_after_layout(parser: &mut Parser, branch: &Branch) -> Vec<SetId> {
    let mut columns = parser.columns_of(branch.indentation);
    let top = parser.top(branch.indentation);
    columns.push(Column::ZERO);
    columns.push(top.after(b' '));
    columns.into_iter().filter_map(|column| parser.begin_line(branch, column)).map(|begun| begun.set).collect()
}

/// Nonterminals of L that are open at a branch, innermost first. Lists that Lark made of `*` and `+` (their names begin
/// with `__`) are left out.
pub(crate) fn open_rules(engine: &Engine, branch: &Branch) -> Vec<String> {
    let grammar = &engine.language.grammar;
    let mut found: Vec<String> = Vec::new();
    let mut set = branch.set;
    while set != FIRST_SET {
        let items = &engine.parser.set(set).items;
        let Some(item) = items.iter().filter(|item| item.origin < set).max_by_key(|item| item.origin) else {
            break;
        };
        let name = grammar.title(grammar.lhs(item.dot));
        if !name.starts_with("__") {
            found.push(name.to_string());
        }
        set = item.origin;
    }
    found
}
