//! The shortest completion: the least bytes of further middle that make a whole program, and such a middle.
//!
//! A* over branches, byte by byte. The bound is the colours' (min, +) distance: it prices every lexeme at its shortest
//! text, a block's indentation where R names its column, and no separators, so it never exceeds the truth and the first
//! whole branch taken off the queue is a shortest one.

use crate::engine::{Branch, Engine, Inside};
use crate::error::Error;
use crate::free::INFINITE;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a byte of a completion costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    /// One.
    Byte,
    /// One, but nothing for a blank of an indentation down to the deepest block, since tokenizers have many blanks in one token.
    /// What is found is short, but need not be shortest. It is found where the shortest is not: the bound knows few of the
    /// indentations that R asks for, and all that is shorter than those would be looked at. No comment is begun, which would
    /// swallow the rest of the cursor's line: a program still, but not the user's.
    Token,
}

/// A shortest further middle from any of the branches; `None` if there is none at all.
///
/// # Errors
/// More than `most` states were looked at.
pub fn shortest_completion(
    engine: &mut Engine,
    branches: &[Branch],
    price: Price,
    most: usize,
) -> Result<Option<Vec<u8>>, Error> {
    shortest(engine, branches, price, most, Engine::complete)
}

/// A short text to a new line's indentation, of which it may have a part; `None` if there is none at all.
///
/// # Errors
/// More than `most` states were looked at.
pub fn shortest_to_line(engine: &mut Engine, branches: &[Branch], most: usize) -> Result<Option<Vec<u8>>, Error> {
    shortest(engine, branches, Price::Token, most, |engine, branch| engine.is_indentation(branch))
}

fn shortest(
    engine: &mut Engine,
    branches: &[Branch],
    price: Price,
    most: usize,
    is_goal: impl Fn(&mut Engine, &Branch) -> bool,
) -> Result<Option<Vec<u8>>, Error> {
    let alphabet = alphabet(engine);
    let mut found: Vec<(Branch, Option<(usize, u8)>)> = Vec::new();
    let mut best: FxHashMap<Branch, u32> = FxHashMap::default();
    let mut queue = BinaryHeap::new();
    for &branch in branches {
        let bound = engine.bound(&branch);
        if bound != INFINITE && best.insert(branch, 0).is_none() {
            found.push((branch, None));
            queue.push((Reverse(bound), 0u32, Reverse(found.len() - 1)));
        }
    }
    let mut expansions = 0;
    let mut stepped = Vec::new();
    while let Some((_, cost, Reverse(index))) = queue.pop() {
        let branch = found[index].0;
        if best[&branch] < cost {
            continue;
        }
        if is_goal(engine, &branch) {
            return Ok(Some(spell(&found, index)));
        }
        expansions += 1;
        if expansions > most {
            return Err(Error::limit("states looked at for a shortest completion", expansions, most));
        }
        let in_comment = price == Price::Token && engine.inside(&branch) == Some(Inside::Comment);
        let free_blank = price == Price::Token && engine.is_indentation_above_deepest(&branch);
        for &byte in &alphabet {
            engine.advance(&[branch], byte, &mut stepped);
            let free = free_blank && byte == b' ';
            for &after in &stepped {
                let cost = cost + u32::from(!free);
                if best.get(&after).is_some_and(|&known| known <= cost) {
                    continue;
                }
                if price == Price::Token && !in_comment && engine.inside(&after) == Some(Inside::Comment) {
                    continue;
                }
                let bound = engine.bound(&after);
                if bound == INFINITE {
                    continue;
                }
                best.insert(after, cost);
                found.push((after, Some((index, byte))));
                queue.push((Reverse(cost.saturating_add(bound)), cost, Reverse(found.len() - 1)));
            }
        }
    }
    Ok(None)
}

fn spell(found: &[(Branch, Option<(usize, u8)>)], mut index: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((parent, byte)) = found[index].1 {
        bytes.push(byte);
        index = parent;
    }
    bytes.reverse();
    bytes
}

/// One byte for each class that the lexer tells apart, the most readable one; space and tab always, since columns tell
/// them apart where the lexer does not. (A form feed is never needed: a newline does the same.)
fn alphabet(engine: &Engine) -> Vec<u8> {
    let lexer = &engine.language.lexer;
    let mut chosen: FxHashMap<u8, u8> = FxHashMap::default();
    for byte in 0..=255u8 {
        let class = lexer.class_of(byte);
        let current = chosen.entry(class).or_insert(byte);
        if readability(byte) < readability(*current) {
            *current = byte;
        }
    }
    let mut bytes: Vec<u8> = chosen.into_values().collect();
    bytes.extend_from_slice(b" \t");
    bytes.sort_unstable_by_key(|&byte| (readability(byte), byte));
    bytes.dedup();
    bytes
}

fn readability(byte: u8) -> u8 {
    match byte {
        b'x' => 0,
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        b' ' | b'\n' => 3,
        b'!'..=b'~' => 4,
        _ => 5,
    }
}
