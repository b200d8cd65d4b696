//! Short completions that are found soon, for landing plans.
//!
//! The search is that of [`crate::planning::shortest`] with fewer steps, and its costs count tokens. By bytes, all
//! names of one letter are different, and so are all columns of a line. Here a symbol of several letters is one step
//! (`x` for any name), a line begins only at columns with a meaning, and no backslash joins lines. No comment is begun:
//! it would swallow the rest of the cursor's line, which leaves a program, but not the user's. Blanks of an indentation
//! cost nothing, since tokenizers have many of them in one token. States with as many open brackets as R closes come
//! first. So results are short, but need not be shortest.

use crate::diagnostics::inside::{Inside, inside};
use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::error::Error;
use crate::ids::{SetId, SymbolId};
use crate::language::free::{Cost, INFINITE};
use crate::language::spelling::BracketKind;
use crate::lexing::layout::Column;
use crate::lexing::lexer::DEAD;
use crate::lexing::roles::Role;
use crate::limits;
use crate::planning::right_text::is_word;
use crate::planning::search::{self, Step};
use crate::planning::shared::{SharedSearch, TriedWords, WORD};
use crate::planning::shortest::Bytes;
use std::cmp::Ordering;
use std::sync::Arc;

/// Expected cost of each bracket too many or too few. Unit: tokens.
const BRACKET: Cost = 2;

/// Cap on the bound where a line begins: its blanks, which the engine's bound counts, are free. Unit: tokens.
const AT_LINE: Cost = 2;

/// Cap on the bound elsewhere, where the engine's bound counts those blanks and the letters of keywords. Unit: tokens.
const FAR: Cost = 6;

/// A short further middle from any of the branches; `None` if these steps lead to none.
///
/// # Errors
/// More than `most` states were looked at.
pub(crate) fn short_completion(
    engine: &mut Engine,
    branches: &[Branch],
    most: usize,
    known: &mut SharedSearch,
) -> Result<Option<Vec<u8>>, Error> {
    let (mut text, begun) = close_brackets(engine, branches);
    let least = begun.iter().map(|branch| engine.bound(branch)).min().unwrap_or(INFINITE);
    let rest = if most >= limits::LATER_EXPANSIONS && least >= limits::MANY_BYTES && least != INFINITE {
        // Where so much has to follow, all steps by words look equally good; by bytes, the bound leads straight to it.
        search::search(engine, &begun, &mut Bytes::new(engine), limits::straight_expansions(least))?
    } else {
        search::search(engine, &begun, &mut ShortSteps::new(engine, &begun, Goal::Completion, known), most)?
    };
    Ok(rest.map(|rest| {
        text.extend(rest);
        text
    }))
}

/// Close brackets, if many are open, one after the other down to those that R closes. A search would try everything
/// that may come between them.
fn close_brackets(engine: &mut Engine, branches: &[Branch]) -> (Vec<u8>, Vec<Branch>) {
    let needed = engine.right.first_depth().unwrap_or(0) as usize;
    let open = |engine: &Engine, branches: &[Branch]| {
        branches.iter().map(|branch| depth(engine, branch)).min().unwrap_or(0).saturating_sub(needed)
    };
    let (mut text, mut before, mut after) = (Vec::new(), branches.to_vec(), Vec::new());
    if open(engine, &before) < limits::MANY_BRACKETS {
        return (text, before);
    }
    let spelling = engine.language.spelling.clone();
    let values = [Some(&b""[..]), spelling.placeholder.as_deref()];
    let closers = |value: &[u8]| spelling.closers().map(|closer| [value, closer].concat()).collect::<Vec<_>>();
    let closers: Vec<Vec<u8>> = values.into_iter().flatten().flat_map(closers).collect();
    while open(engine, &before) > 0 {
        let closer = closers.iter().find(|closer| {
            engine.advance_all(&before, closer, &mut after);
            !after.is_empty() && open(engine, &after) < open(engine, &before)
        });
        let Some(closer) = closer else { break };
        text.extend_from_slice(closer);
        std::mem::swap(&mut before, &mut after);
    }
    (text, before)
}

/// A short text to a new line's indentation, or to a part of it; `None` if these steps lead to none.
///
/// # Errors
/// More than `most` states were looked at.
pub(crate) fn short_to_line(
    engine: &mut Engine,
    branches: &[Branch],
    most: usize,
    known: &mut SharedSearch,
) -> Result<Option<Vec<u8>>, Error> {
    let mut steps = ShortSteps::new(engine, branches, Goal::Line, known);
    search::search(engine, branches, &mut steps, most)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Completion,
    Line,
}

struct ShortSteps<'a> {
    goal: Goal,
    words: Arc<TriedWords>,
    known: &'a mut SharedSearch,
    /// The sets in which the symbols in progress at the cursor began.
    begun: Vec<SetId>,
    /// Brackets that are open at the cursor.
    depth: usize,
    /// By place: branches looked at since a bracket was opened or closed there, or a line began.
    looked: Vec<usize>,
    stepped: Vec<Branch>,
}

impl<'a> ShortSteps<'a> {
    fn new(engine: &Engine, branches: &[Branch], goal: Goal, known: &'a mut SharedSearch) -> Self {
        Self {
            goal,
            words: known.words.get_or_insert_with(|| Arc::new(TriedWords::new(engine))).clone(),
            known,
            begun: Vec::from_iter(branches.iter().map(|branch| branch.set)),
            depth: branches.iter().map(|branch| depth(engine, branch)).min().unwrap_or(0),
            looked: vec![0],
            stepped: Vec::new(),
        }
    }

    /// Brackets that have to be open at the goal, the outermost first; `None` if unknown.
    fn needed(&self) -> Option<&[BracketKind]> {
        match self.goal {
            Goal::Line => Some(&[]),
            Goal::Completion => self.words.needed.as_deref(),
        }
    }

    /// Add the words that begin at a branch. Words with a common beginning share its steps.
    fn each_word(&mut self, engine: &mut Engine, branch: &Branch, out: &mut Vec<Step>) {
        let language = engine.language.clone();
        let lexer = &language.lexer;
        let words = self.words.clone();
        let in_line = engine.parser.is_indentation(branch);
        let at_start = lexer.is_start(branch.state);
        let begins = |byte: u8| at_start || lexer.step(branch.state, byte) == DEAD;
        let mut before: &[u8] = &[];
        let mut reached: Vec<Vec<Branch>> = vec![vec![*branch]];
        for (text, word) in words.texts.iter().enumerate().skip(words.bytes) {
            let spaced = word[0] == b' ' && (in_line || word.get(1).is_none_or(|&byte| begins(byte)));
            if !begins(word[0]) || spaced {
                continue; // would go on with the symbol in progress, or needs no blank
            }
            let same = before.iter().zip(&**word).take_while(|(one, other)| one == other).count();
            before = word;
            if same >= reached.len() {
                continue; // not viable as far as the one before
            }
            reached.truncate(same + 1);
            for &byte in &word[same..] {
                engine.advance(&reached[reached.len() - 1], byte, &mut self.stepped);
                if self.stepped.is_empty() {
                    break;
                }
                reached.push(self.stepped.clone());
            }
            if reached.len() <= word.len() {
                continue;
            }
            let cost = words.costs[text - words.bytes];
            for &after in &reached[word.len()] {
                // A keyword that fits nowhere may still begin a longer name, but `x` is a name already.
                if words.cut.contains(word) || !lexer.accepts(after.state) || engine.parser.may_end(&after) {
                    out.push(Step { text, after, cost });
                }
            }
        }
    }

    /// Number of brackets to close and open until exactly those are open that R closes; `None` if unknown.
    fn wrong(&self, note: &Brackets) -> Option<usize> {
        let needed = self.needed()?;
        // Brackets of L count as the kinds that R closes.
        let kept = self.depth.saturating_sub(note.closed);
        let same = match needed.get(kept..) {
            None => needed.len(),
            Some(rest) => kept + rest.iter().zip(&note.opened).take_while(|(one, other)| one == other).count(),
        };
        Some(needed.len() + kept + note.opened.len() - 2 * same)
    }

    /// The kind of the bracket that a step opens: the symbol in progress after it, or the end of its text.
    fn opened_by(&self, engine: &Engine, step: &Step) -> BracketKind {
        let language = &engine.language;
        let accept = language.lexer.accept(step.after.state);
        let symbol = (accept.0 != 0).then(|| SymbolId::from(language.lexer.lexemes(accept)[0]));
        let literal = symbol.and_then(|symbol| language.literal(symbol)).map(str::as_bytes);
        language.spelling.opened_by(literal.unwrap_or(&self.words.texts[step.text]))
    }

    /// Find the steps from a branch. They depend on this search only by whether it began in the branch's set.
    fn find(&mut self, engine: &mut Engine, branch: &Branch, out: &mut Vec<Step>) {
        let language = engine.language.clone();
        let lexer = &language.lexer;
        let words = self.words.clone();
        let at_start = lexer.is_start(branch.state);
        let in_comment = inside(&mut engine.parser, branch) == Some(Inside::Comment);
        let at_boundary = at_start || lexer.accepts(branch.state);
        let may_end = lexer.accepts(branch.state) && !self.begun.contains(&branch.set);
        let line = engine.parser.indentation(branch).map(|column| self.line(engine, branch, column));
        for (text, bytes) in words.texts[..words.bytes].iter().enumerate() {
            let byte = bytes[0];
            let mut cost = if at_boundary && language.spelling.is_operator(byte) { WORD } else { 1 };
            let state = lexer.step(branch.state, byte);
            let moves = engine.moves_in_shape(branch, byte);
            if let Some(line) = &line {
                match byte {
                    b'\n' => {}
                    b' ' => cost = u32::from(!line.is_free),
                    b'\t' if line.tabs => cost = u32::from(!line.is_free),
                    b'\t' | b'\r' => continue,
                    _ if language.spelling.joins(byte) => continue,
                    _ if is_word(byte) || !line.is_place => continue,
                    _ => cost += u32::from(line.is_odd),
                }
            } else if at_start || state == DEAD {
                if is_word(byte) && !moves
                    || language.layout.is_some() && (matches!(byte, b'\t' | b'\r') || language.spelling.joins(byte))
                {
                    continue;
                }
            } else if !moves && (state == branch.state && !branch.joined || may_end || byte >= 0xc0) {
                continue; // no change, or one that a whole word or another letter makes as well
            }
            engine.advance(&[*branch], byte, &mut self.stepped);
            for &after in &self.stepped {
                if in_comment || inside(&mut engine.parser, &after) != Some(Inside::Comment) {
                    out.push(Step { text, after, cost });
                }
            }
        }
        if line.as_ref().is_none_or(|line| line.is_place) {
            let others = out.len();
            self.each_word(engine, branch, out);
            let odd = u32::from(line.is_some_and(|line| line.is_odd));
            out[others..].iter_mut().for_each(|step| step.cost += odd);
        }
        // The first of equally good steps is taken.
        out.sort_by_key(|step| {
            let text = words.texts[step.text].trim_ascii_start();
            (step.cost, text.len(), text.first().map(|&byte| language.spelling.readability(byte)))
        });
    }

    fn line(&self, engine: &Engine, branch: &Branch, column: Column) -> Line {
        let mut blocks = vec![Column::ZERO];
        engine.parser.for_each_block(branch.indentation, |block| blocks.push(block));
        let deepest = blocks.iter().map(|block| block.wide).max().unwrap_or(0);
        let tabs = self.words.tabs || !column.is_spaces() || blocks.iter().any(|block| !block.is_spaces());
        let new = [deepest + engine.language.spelling.step, deepest / 8 * 8 + 8];
        let new = &new[..1 + usize::from(tabs)];
        let known = || blocks.iter().chain(&self.words.returns).map(|place| place.wide);
        let places = || known().chain(new.iter().copied());
        Line {
            is_place: places().any(|place| place == column.wide),
            is_free: places().any(|place| place > column.wide),
            is_odd: known().all(|place| place != column.wide) && known().any(|place| place > deepest),
            tabs,
        }
    }
}

impl search::Steps for ShortSteps<'_> {
    type Note = Brackets;

    fn admits(&mut self, note: &Brackets) -> bool {
        if note.place == 0 {
            return true;
        }
        let most = if self.wrong(note) == Some(0) { limits::MATCHED_EXPANSIONS } else { limits::BRACKET_EXPANSIONS };
        let looked = &mut self.looked[note.place];
        *looked += 1;
        *looked <= most
    }

    fn each(&mut self, engine: &mut Engine, branch: &Branch, _: usize, out: &mut Vec<Step>) -> Option<usize> {
        let place = (*branch, self.begun.contains(&branch.set));
        if let Some(steps) = self.known.steps.get(&place) {
            out.extend_from_slice(steps);
        } else {
            self.find(engine, branch, out);
            self.known.keep(place, out);
        }
        None // the bound may be more than the truth, so all steps count
    }

    fn text(&self, text: usize) -> &[u8] {
        &self.words.texts[text]
    }

    fn note(&mut self, engine: &Engine, (before, note): (&Branch, &Brackets), step: &Step) -> Brackets {
        let order = depth(engine, &step.after).cmp(&depth(engine, before));
        let mut note = note.clone();
        match order {
            Ordering::Greater => note.opened.push(self.opened_by(engine, step)),
            Ordering::Less if note.opened.pop().is_none() => note.closed += 1,
            Ordering::Less => {}
            Ordering::Equal if engine.parser.is_indentation(&step.after) && !engine.parser.is_indentation(before) => {}
            Ordering::Equal => return note,
        }
        note.place = self.looked.len();
        self.looked.push(0);
        note
    }

    fn bound(&self, engine: &mut Engine, branch: &Branch, note: &Brackets) -> Cost {
        match engine.expected(branch) {
            INFINITE => INFINITE,
            cost => {
                let most = if in_line(engine, branch) { AT_LINE } else { FAR };
                cost.min(most).max(BRACKET * self.wrong(note).unwrap_or(0) as Cost)
            }
        }
    }

    fn is_goal(&self, engine: &mut Engine, branch: &Branch) -> bool {
        match self.goal {
            Goal::Completion => engine.complete(branch),
            Goal::Line => engine.parser.is_indentation(branch),
        }
    }
}

/// Number of open brackets, including one in progress.
fn depth(engine: &Engine, branch: &Branch) -> usize {
    let depth = branch.depth as usize;
    let lexer = &engine.language.lexer;
    if lexer.is_start(branch.state) || !lexer.accepts(branch.state) {
        return depth;
    }
    match engine.language.accept_role(lexer.accept(branch.state)) {
        Role::Open => depth + 1,
        Role::Close => depth.saturating_sub(1),
        _ => depth,
    }
}

/// Return whether a line has begun, or is about to.
fn in_line(engine: &Engine, branch: &Branch) -> bool {
    let lexer = &engine.language.lexer;
    let accept = lexer.accept(branch.state);
    engine.parser.is_indentation(branch)
        || !lexer.is_start(branch.state)
            && lexer.accepts(branch.state)
            && engine.language.accept_role(accept) == Role::Newline
            && branch.depth == 0
}

/// Brackets opened and closed on the path to a branch.
#[derive(Debug, Clone, Default)]
struct Brackets {
    /// Number of closed brackets that were open at the cursor.
    closed: usize,
    /// Brackets opened since.
    opened: Vec<BracketKind>,
    /// Index of the counter for the place where the last one was opened or closed, or a line began.
    place: usize,
}

/// Text that may follow in an indentation.
struct Line {
    /// A statement may begin here.
    is_place: bool,
    /// One may begin further right.
    is_free: bool,
    /// True if a block would be indented by the language's step, though R fixes its columns.
    is_odd: bool,
    tabs: bool,
}
