//! Comment or string around the cursor.

use crate::bits::numbers as bits;
use crate::engine::branch::{Branch, InLine};
use crate::engine::parser::Parser;
use crate::ids::AcceptId;
use crate::language::definition::CommentEnd;

/// Kind of non-code text around the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// A comment.
    Comment,
    /// A string literal, or the literal text of one that holds code, but not that code.
    String,
}

/// The kind that all viable branches agree on.
pub(crate) fn inside_all(parser: &mut Parser, branches: &[Branch]) -> Option<Inside> {
    let possible: Vec<&Branch> = branches.iter().filter(|branch| parser.can_go_on(branch)).collect();
    let mut found = possible.into_iter().map(|branch| inside(parser, branch));
    let first = found.next()??;
    found.all(|other| other == Some(first)).then_some(first)
}

/// The kind at the end of a branch, in every continuation of the symbol in progress.
pub(crate) fn inside(parser: &mut Parser, branch: &Branch) -> Option<Inside> {
    let language = parser.language().clone();
    let lexer = &language.lexer;
    if lexer.is_start(branch.state) {
        return inside_between(parser, branch);
    }
    // The symbol may end here, as a closing quote does, or go on; both count.
    let mut found = Vec::new();
    let accept = lexer.accept(branch.state);
    let live: Vec<AcceptId> = bits(parser.live_later(branch.state)).map(AcceptId::from_index).collect();
    if accept.0 != 0 && parser.can_read(branch, accept) {
        found.push(match language.comment(accept) {
            Some(CommentEnd::Line) => Some(Inside::Comment),
            // A comment that is a symbol, and may go on: no text ends it.
            Some(CommentEnd::Text) if live.contains(&accept) => Some(Inside::Comment),
            _ => parser.end_symbol(branch, accept).and_then(|ended| inside_between(parser, &ended)),
        });
    }
    for accept in live {
        if parser.can_read(branch, accept) {
            found.push(match language.comment(accept) {
                Some(_) => Some(Inside::Comment),
                None => language.is_string(accept).then_some(Inside::String),
            });
        }
    }
    let first = *found.first()?;
    first.filter(|_| found.iter().all(|other| *other == first))
}

/// The kind at the end of a branch between two symbols: the text of a literal that holds code, or code.
fn inside_between(parser: &Parser, branch: &Branch) -> Option<Inside> {
    let text = parser.modes_of(branch.set) & parser.language().grammar.code_modes() == 0;
    (branch.line == InLine::Middle && text).then_some(Inside::String)
}
