//! The least fixpoint of a grammar's rules over (min, +).

use crate::grammar::compiled::Grammar;
use crate::language::terminals::{Cost, INFINITE};
use crate::stop::poll;

/// Closes `relation[symbol * count² + from * count + to]`, known of lexemes, over the rules; returns
/// `prefix[dot * count² + from * count + to]`, the relation of the symbols before each dot.
pub(super) fn close(relation: &mut [Cost], grammar: &Grammar, count: usize) -> Vec<Cost> {
    let square = count * count;
    let identity: Vec<Cost> =
        (0..square).map(|index| if index / count == index % count { 0 } else { INFINITE }).collect();
    let mut prefix = vec![INFINITE; grammar.dot_count() * square];
    let mut product = identity.clone();
    // A rule is looked at again where a symbol of its has changed since.
    let mut steps = 1usize;
    let mut changed_at = vec![1usize; grammar.symbol_count()];
    let mut looked_at = vec![0usize; grammar.rules().len()];
    loop {
        let mut changed = false;
        for (index, rule) in grammar.rules().iter().enumerate() {
            let looked = std::mem::replace(&mut looked_at[index], steps);
            if looked != 0 && rule.rhs.iter().all(|symbol| changed_at[symbol.index()] <= looked) {
                continue;
            }
            poll();
            product.copy_from_slice(&identity);
            let first = grammar.dot(index, 0).index();
            prefix[first * square..(first + 1) * square].copy_from_slice(&product);
            for (position, symbol) in rule.rhs.iter().enumerate() {
                let after = &mut prefix[(first + position + 1) * square..(first + position + 2) * square];
                multiply(&product, &relation[symbol.index() * square..(symbol.index() + 1) * square], after, count);
                product.copy_from_slice(after);
            }
            let target = &mut relation[rule.lhs.index() * square..(rule.lhs.index() + 1) * square];
            for (old, &new) in target.iter_mut().zip(&product) {
                if new < *old {
                    *old = new;
                    changed = true;
                    changed_at[rule.lhs.index()] = steps + 1;
                }
            }
            steps += 1;
        }
        if !changed {
            return prefix;
        }
    }
}

fn multiply(left: &[Cost], right: &[Cost], product: &mut [Cost], count: usize) {
    product.fill(INFINITE);
    for from in 0..count {
        let row = &mut product[from * count..(from + 1) * count];
        for via in 0..count {
            let first = left[from * count + via];
            if first != INFINITE {
                for (cell, &cost) in row.iter_mut().zip(&right[via * count..(via + 1) * count]) {
                    *cell = (*cell).min(first.saturating_add(cost));
                }
            }
        }
    }
}
