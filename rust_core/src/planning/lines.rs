//! Completions of a middle by whole lines, where R needs blocks that are not open.
//!
//! A line may have closed the blocks that R continues, such as a `def` at column 0 in the midst of a method. Then lines
//! are added that open them again, one for each column to which R returns. A search by words does not find those soon,
//! since its bound is capped. Here they are put together from the language's `block_lines` and tried.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::language::spelling::{BlockLine, Spelling};
use crate::limits;
use crate::planning::shared::SharedSearch;
use crate::planning::{right_text, short};
use std::sync::Arc;

/// End of the cursor's own line. A comment that swallows the rest of R's first line is the last resort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Statement,
    Searched,
    Comment,
}

/// The kinds in the order in which they are tried. The number of lines is divided by each kind's factor: a search costs
/// hundreds of states each.
const LAST_LINES: [(Last, usize); 3] = [(Last::Statement, 1), (Last::Searched, 20), (Last::Comment, 1)];

/// A text that completes some branches, if lines of some kind do. `most` limits the lines of each kind.
pub(crate) fn complete_by_lines(
    engine: &mut Engine,
    branches: &[Branch],
    most: usize,
    known: &mut SharedSearch,
) -> Option<Vec<u8>> {
    engine.language.layout?;
    if engine.language.shaped.as_ref().is_some_and(|shaped| !shaped.takes(b'\n')) {
        return None; // a shape of one line
    }
    let (text, begun) = begin_line(engine, branches, known)?;
    let place = (begun, most);
    if !known.lines.contains_key(&place) {
        let lines = lines_from(engine, &place.0, most, known);
        known.lines.insert(place.clone(), lines);
    }
    Some([&text[..], known.lines[&place].as_ref()?].concat())
}

/// A completion by lines of branches at the beginning of a line.
fn lines_from(engine: &mut Engine, branches: &[Branch], most: usize, known: &mut SharedSearch) -> Option<Vec<u8>> {
    let spelling = engine.language.spelling.clone();
    let returns = right_text::returns(&spelling, engine.right.text()).into_iter();
    let targets = returns.map(|(column, word)| (column.wide as usize, word)).collect();
    let first = right_text::first_word(engine.right.text()).into();
    let mut text = Vec::new();
    let mut scaffold = Scaffold { engine, known, spelling, targets, first, left: 0, last: Last::Searched };
    LAST_LINES
        .iter()
        .any(|&(last, fewer)| {
            (scaffold.last, scaffold.left) = (last, limits::SCAFFOLD_LINES.min(most) / fewer);
            scaffold.search(branches, None, limits::SCAFFOLD_DEPTH, &mut text)
        })
        .then_some(text)
}

/// The branches at the beginning of a new line, and the text that leads there.
fn begin_line(engine: &mut Engine, branches: &[Branch], known: &mut SharedSearch) -> Option<(Vec<u8>, Vec<Branch>)> {
    let mut text = if branches.iter().any(|branch| engine.parser.is_indentation(branch)) {
        b"\n".to_vec() // whatever part of this line's indentation is written
    } else {
        short::short_to_line(engine, branches, limits::SCAFFOLD_EXPANSIONS, known).ok()??
    };
    while text.last().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        text.pop();
    }
    let mut after = Vec::new();
    engine.advance_all(branches, &text, &mut after);
    (!after.is_empty()).then_some((text, after))
}

struct Scaffold<'a> {
    engine: &'a mut Engine,
    known: &'a mut SharedSearch,
    spelling: Arc<Spelling>,
    /// Columns to which R returns, the deepest first, and the first word there.
    targets: Vec<(usize, Box<[u8]>)>,
    /// First word of R, on the cursor's own line.
    first: Box<[u8]>,
    /// Lines left to try.
    left: usize,
    last: Last,
}

impl Scaffold<'_> {
    /// Search on from the beginning of a line, and append a completion to `text`. `header` is the column of the
    /// previous line, if it opened a block.
    fn search(&mut self, branches: &[Branch], header: Option<usize>, depth: usize, text: &mut Vec<u8>) -> bool {
        let open = self.open_columns(branches);
        let begun = text.len();
        let mut columns: Vec<(usize, bool)> = Vec::new();
        for column in self.columns(&open, header) {
            let mut takes_statement = false;
            for last in self.last_texts() {
                indent(text, column, &last);
                let after = self.follow(branches, &text[begun..]);
                if after.iter().any(|branch| self.engine.complete(branch)) {
                    return true;
                }
                if self.last == Last::Searched && last.is_empty() {
                    let most = limits::SCAFFOLD_EXPANSIONS / 3;
                    let found = short::short_completion(self.engine, &after, most, self.known);
                    if let Ok(Some(found)) = found {
                        text.extend_from_slice(&found);
                        return true;
                    }
                }
                takes_statement |= !last.is_empty() && !after.is_empty();
                text.truncate(begun);
            }
            columns.push((column, takes_statement));
        }
        if depth == 0 {
            return false;
        }
        for (column, takes_statement) in columns {
            for (line, opens) in self.lines_at(column, &open, takes_statement) {
                indent(text, column, &line);
                text.push(b'\n');
                let after = self.follow(branches, &text[begun..]);
                if !after.is_empty() && self.search(&after, opens.then_some(column), depth - 1, text) {
                    return true;
                }
                text.truncate(begun);
            }
        }
        false
    }

    fn follow(&mut self, branches: &[Branch], text: &[u8]) -> Vec<Branch> {
        let mut after = Vec::new();
        if self.left > 0 {
            self.left -= 1;
            self.engine.advance_all(branches, text, &mut after);
        }
        after
    }

    /// Texts to try at the end of the cursor's own line.
    fn last_texts(&self) -> Vec<Vec<u8>> {
        let comment = match self.last {
            Last::Statement | Last::Searched => b"",
            Last::Comment => match self.spelling.line_comments.first() {
                Some(prefix) => &**prefix,
                None => return Vec::new(),
            },
        };
        let statements = [Some(&b""[..]), self.spelling.placeholder.as_deref()];
        statements.into_iter().flatten().map(|statement| [statement, comment].concat()).collect()
    }

    /// The columns of the open blocks, the deepest first.
    fn open_columns(&self, branches: &[Branch]) -> Vec<usize> {
        let mut columns = Vec::new();
        if let Some(branch) = branches.first() {
            self.engine.parser.for_each_block(branch.indentation, |column| columns.push(column.wide as usize));
        }
        columns.push(0);
        columns.sort_unstable_by(|one, other| other.cmp(one));
        columns.dedup();
        columns
    }

    /// Columns at which a line may begin: in a new block at the next column to which R returns or at any, or in an open
    /// block.
    fn columns(&self, open: &[usize], header: Option<usize>) -> Vec<usize> {
        let above = header.unwrap_or(open[0]);
        let mut columns = Vec::from_iter(self.target_after(above));
        columns.push(above + self.spelling.step as usize);
        columns.dedup();
        if header.is_none() {
            columns.extend(open);
        }
        columns
    }

    fn target_after(&self, column: usize) -> Option<usize> {
        self.targets.iter().rev().map(|target| target.0).find(|&target| target > column)
    }

    /// Lines to try at a column, and whether they open a block: those that R needs, or those that are due.
    fn lines_at(&self, column: usize, open: &[usize], takes_statement: bool) -> Vec<(Vec<u8>, bool)> {
        let in_new_block = column > open[0];
        let word = self.targets.iter().find(|target| target.0 == column).map(|target| &*target.1);
        let next = self.targets.iter().rev().find(|target| target.0 > column);
        let names = |words: &[String], word: &[u8]| words.iter().any(|one| one.as_bytes() == word);
        let asked = |line: &&BlockLine| {
            line.opens
                && (!in_new_block && names(&line.before, &self.first)
                    || word.is_some_and(|word| names(&line.before, word))
                    || next.is_some_and(|next| names(&line.holds, &next.1)))
        };
        let lines = &self.spelling.block_lines;
        let mut chosen: Vec<&BlockLine> = Vec::new();
        if !takes_statement || in_new_block {
            chosen.extend(lines.iter().filter(|line| !line.opens));
        }
        let begun = chosen.len();
        chosen.extend(lines.iter().filter(asked));
        if chosen.len() == begun && next.is_some_and(|next| !open.contains(&next.0)) {
            chosen.extend(lines.iter().find(|line| line.opens));
        }
        chosen.into_iter().map(|line| (line.text.clone().into_bytes(), line.opens)).collect()
    }
}

fn indent(text: &mut Vec<u8>, column: usize, line: &[u8]) {
    text.resize(text.len() + column, b' ');
    text.extend_from_slice(line);
}
