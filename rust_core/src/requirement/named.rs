//! Steps over the rest of a rule that has bound a text and must match it itself, such as an element with its end tag.
//!
//! A name is to such a rule as a column is to the rule of a block. The left item knows it. Of R's edges over the matching
//! text, only those with this text are taken. So R may match any number of different texts.

use crate::chart::left::{Indents, Item};
use crate::chart::texts::{NOTHING, Texts, WILD};
use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, RequirementId};
use crate::language::free::Cost;
use crate::lexing::layout::NO_COLUMN;
use crate::requirement::requirements::{Context, Depth, NO_FLOOR, Named, Requirements, UNSATISFIABLE};

impl Requirements {
    /// Carry a requirement backwards over the symbols from a dot of an item's rule to its end.
    pub(super) fn step_item(
        &mut self,
        context: Context<'_>,
        requirement: RequirementId,
        item: &Item,
        (dot, floor): (DotId, Depth),
        indents: Indents,
    ) -> RequirementId {
        let matching = context.language.marks.as_ref().and_then(|marks| marks.matches_own(dot));
        match matching.filter(|_| ![NOTHING, WILD].contains(&item.name) && requirement != UNSATISFIABLE) {
            Some(matching) => self.step_named(context, (requirement, dot, floor, item.name), matching, indents),
            None => self.step(context, requirement, (dot, floor), item.column, indents),
        }
    }

    /// Carry a requirement over symbols of which the one after `matching` has the bound text.
    fn step_named(&mut self, context: Context<'_>, named: Named, matching: DotId, indents: Indents) -> RequirementId {
        if let Some(&known) = self.named.get(&named) {
            return known;
        }
        let (requirement, dot, floor, name) = named;
        let over = (Grammar::advance(matching), floor);
        let mut stepped = self.step(context, requirement, over, NO_COLUMN, indents);
        let text = Texts::is_known(name).then(|| context.left.texts.bytes(name));
        for at in (dot.index()..=matching.index()).rev().map(DotId::from_index) {
            let symbol = context.language.grammar.next(at);
            let floor = context.floor_from(at, floor);
            let below = floor != NO_FLOOR && context.is_below(Grammar::advance(at), floor);
            let mut before = match &text {
                _ if below => self.before_in_right(context, symbol, stepped, 0),
                Some(text) if at == matching => {
                    let source = (self.get(stepped), self.projection(stepped));
                    self.before_of(context, symbol, source, Vec::new(), (0, text.len() as Cost))
                }
                _ => self.before(context, symbol, stepped, 0),
            };
            if at == matching {
                before.nodes.retain(|&node| context.right.text_at(node, symbol) == text.as_deref() && text.is_some());
            }
            stepped = self.intern(before);
        }
        self.named.insert(named, stepped);
        stepped
    }
}
