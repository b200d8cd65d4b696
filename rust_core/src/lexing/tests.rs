//! The lexing half by itself: automata, longest matches, guards, columns, and the step with a reader that records the
//! symbols it reads.

use crate::ids::{AcceptId, GuardId, ModeId, StateId};
use crate::lexing::automaton::Automaton;
use crate::lexing::branch::{self, Cut, Reader};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::layout::{Column, Columns, Indentations, NO_COLUMN};
use crate::lexing::lexer::{DEAD, Lexer, LexerTable, NEVER};
use crate::lexing::lookahead::Lookahead;
use crate::lexing::product::live_beside;
use crate::lexing::roles::{LineByte, Role, line_bytes};
use crate::spec::LanguageSpec;
use crate::test_languages::{Random, Twin, blocks, define, strings, sums, texts, words};
use std::cmp::Ordering;
use std::collections::BTreeSet;

fn lexer(spec: &LanguageSpec) -> Lexer {
    Lexer::new(LexerTable::compile(spec).expect("a lexer"), spec.lexemes.len())
}

/// Lexemes that overlap: a soft keyword, a hard one, and patterns of different priorities.
fn overlapping() -> LanguageSpec {
    let lexemes = ["NAME /[ab]+/", "SOFT ab", "HARD ba", "PAIR /bb/", "DOTS /c(cc)*/", "END c", "_BLANK / +/"];
    let mut spec = define(&lexemes, &["s -> NAME SOFT HARD PAIR DOTS END"]);
    spec.soft_keywords = vec!["SOFT".into()];
    spec.lexemes[3].priority = 1;
    spec
}

/// Automata in which bytes above the second do as the third does.
fn random_automaton(random: &mut Random) -> (Vec<[u32; 256]>, Vec<u16>) {
    let states = 2 + random.below(9);
    let mut rows = vec![[0; 256]];
    let mut labels = vec![0];
    for _ in 1..states {
        let targets: [usize; 3] = std::array::from_fn(|_| random.below(states));
        rows.push(std::array::from_fn(|byte| u32::try_from(targets[byte.min(2)]).expect("few states")));
        labels.push(u16::try_from(random.below(3)).expect("few labels"));
    }
    (rows, labels)
}

#[test]
fn minimal_automata_accept_the_same_texts_with_distinct_states() {
    let mut random = Random::new(1);
    let texts = texts(&[0, 1, 2], 5);
    for _ in 0..40 {
        let (rows, labels) = random_automaton(&mut random);
        let mut automaton = Automaton::default();
        rows.iter().zip(&labels).skip(1).for_each(|(&row, &label)| automaton.push(row, label));
        let minimal = automaton.minimise();
        let step = |state: u32, byte: u8| {
            let class = usize::from(minimal.class_of[usize::from(byte)]);
            minimal.next[state as usize * minimal.class_count + class]
        };
        for first in 0..rows.len() {
            for text in &texts {
                let before = text.iter().fold(first as u32, |state, &byte| rows[state as usize][usize::from(byte)]);
                let after = text.iter().fold(minimal.state_of[first], |state, &byte| step(state, byte));
                assert_eq!(labels[before as usize], minimal.labels[after as usize], "{first} {text:?}");
            }
        }
        // Pairs that some text tells apart, by texts of growing length (no longer than there are pairs of states).
        let count = u32::try_from(minimal.labels.len()).expect("few states");
        let label = |state: u32| minimal.labels[state as usize];
        let mut apart: BTreeSet<(u32, u32)> = BTreeSet::new();
        loop {
            let pairs = (0..count).flat_map(|one| (0..count).map(move |other| (one, other)));
            let differ = |&(one, other): &(u32, u32)| {
                label(one) != label(other) || (0..3).any(|byte| apart.contains(&(step(one, byte), step(other, byte))))
            };
            let found: BTreeSet<(u32, u32)> = pairs.filter(differ).collect();
            if found == apart {
                break;
            }
            apart = found;
        }
        assert_eq!(apart.len(), (count * (count - 1)) as usize, "two states accept the same texts");
    }
}

#[test]
fn a_state_accepts_the_best_matching_pattern() {
    for spec in [overlapping(), sums(), words()] {
        let lexer = lexer(&spec);
        let twin = Twin::new(spec);
        for text in texts(b"abc +(", 4).iter().filter(|text| !text.is_empty()) {
            let state = text.iter().fold(lexer.start(), |state, &byte| lexer.step(state, byte));
            assert_eq!(lexer.lexemes(lexer.accept(state)), twin.winners(text), "{:?}", String::from_utf8_lossy(text));
            let longest = (1..=text.len()).rev().find(|&end| !twin.winners(&text[..end]).is_empty());
            assert_eq!(lexer.longest_match(ModeId(0), text).map(|found| found.0), longest);
        }
    }
}

#[test]
fn soft_keywords_keep_the_next_best_lexeme() {
    let spec = overlapping();
    let lexer = lexer(&spec);
    let names = |text: &[u8]| {
        let accept = lexer.longest_match(ModeId(0), text).expect("a match").1;
        lexer.lexemes(accept).iter().map(|lexeme| spec.lexemes[lexeme.index()].name.as_str()).collect::<Vec<&str>>()
    };
    assert_eq!(names(b"ab"), ["NAME", "SOFT"]);
    assert_eq!(names(b"ba"), ["HARD"]);
    assert_eq!(names(b"bb"), ["PAIR"], "the larger priority");
    assert_eq!(names(b"c"), ["END"], "a literal before a pattern");
    assert_eq!(names(b"cc"), ["END"], "two are no dots");
    assert_eq!(names(b"ccc"), ["DOTS"]);
    assert_eq!(names(b"abb"), ["NAME"]);
}

#[test]
fn tables_of_states_agree_with_walked_texts() {
    let lexer = lexer(&overlapping());
    let texts = texts(b"abc ", 5);
    for state in (1..lexer.state_count()).map(StateId::from_index) {
        let mut nearest = vec![NEVER; lexer.accept_set_count()];
        for text in &texts {
            let end = text.iter().fold(state, |state, &byte| lexer.step(state, byte));
            let cell = &mut nearest[lexer.accept(end).index()];
            *cell = (*cell).min(u16::try_from(text.len()).expect("short"));
        }
        for accept in lexer.accept_sets() {
            assert_eq!(lexer.to_accept(state, accept), nearest[accept.index()], "{state:?} {accept:?}");
            assert_eq!(lexer.live(state).any(|live| live == accept), nearest[accept.index()] != NEVER);
        }
        let further = texts.iter().filter(|text| !text.is_empty());
        let mut ends = further.map(|text| text.iter().fold(state, |state, &byte| lexer.step(state, byte)));
        assert_eq!(lexer.extends(state), ends.any(|end| lexer.accepts(end)), "{state:?}");
    }
}

#[test]
fn each_mode_reads_its_own_lexemes() {
    let spec = strings();
    let lexer = lexer(&spec);
    let first = |mode: u8, text: &[u8]| {
        lexer.longest_match(ModeId(mode), text).map(|(_, accept)| lexer.lexemes(accept)[0].index())
    };
    let name = |at: Option<usize>| at.map(|at| spec.lexemes[at].name.as_str());
    assert_eq!(name(first(0, b"ab>")), Some("NAME"));
    assert_eq!(name(first(1, b"ab>")), Some("TEXT"));
    assert_eq!((name(first(0, b">")), name(first(1, b">"))), (None, Some("END")));
    assert_eq!((name(first(0, b"}")), name(first(1, b"}"))), (Some("CLOSE"), None));
}

#[test]
fn definitions_that_cannot_be_lexed_are_refused() {
    let refused =
        |lexemes: &[&str]| LexerTable::compile(&define(lexemes, &["s -> A"])).expect_err("refused").to_string();
    assert!(refused(&["A /a*/"]).contains("lexeme A matches the empty text"), "{}", refused(&["A /a*/"]));
    assert!(refused(&["A /a(/"]).contains("lexeme A"), "{}", refused(&["A /a(/"]));
    assert!(refused(&["A"]).contains("no lexeme has a pattern"));
    let mut spec = strings();
    let end = spec.lexemes.iter_mut().find(|lexeme| lexeme.name == "END").expect("of a mode");
    (end.literal, end.pattern) = (None, Some(r"[\<]".into()));
    let why = LexerTable::compile(&spec).expect_err("refused").to_string();
    assert!(why.contains("lexeme END:"), "{why}");
}

#[test]
fn guards_reject_a_text_where_one_accepts() {
    let lexer = lexer(&overlapping());
    let states: Vec<StateId> = (1..lexer.state_count()).map(StateId::from_index).collect();
    let mut random = Random::new(2);
    let mut guards = Guards::default();
    for _ in 0..500 {
        let mut alone: Vec<StateId> = (0..random.below(4)).map(|_| states[random.below(states.len())]).collect();
        let mut id = alone.iter().fold(NO_GUARDS, |id, &state| guards.with(&lexer, id, state));
        for _ in 0..5 {
            let byte = b"abc "[random.below(4)];
            alone.iter_mut().for_each(|state| *state = lexer.step(*state, byte));
            let stepped = guards.step(&lexer, id, byte);
            assert_eq!(stepped.is_none(), alone.iter().any(|&state| lexer.accepts(state)), "{alone:?}");
            let Some(next) = stepped else { break };
            let live: BTreeSet<StateId> = alone.iter().copied().filter(|&state| lexer.extends(state)).collect();
            assert_eq!(guards.states(next), live.into_iter().collect::<Vec<StateId>>());
            id = next;
        }
    }
    let count = guards.len();
    assert_eq!(guards.with(&lexer, NO_GUARDS, DEAD), NO_GUARDS, "what never accepts guards nothing");
    assert_eq!(guards.len(), count);
}

#[test]
fn a_guard_keeps_what_it_does_not_forbid() {
    // After `a`, ended where `aba` goes on: `b` and `a` may follow, not both.
    let spec = words();
    let lexer = lexer(&spec);
    let mut guards = Guards::default();
    let a = lexer.step(lexer.start(), b'a');
    let id = guards.with(&lexer, NO_GUARDS, lexer.step(a, b'b'));
    let b = lexer.step(lexer.start(), b'b');
    let live = |guards: &mut Guards, state| {
        let live = live_beside(&lexer, guards, state, id);
        lexer.accept_sets().filter(|accept| live.contains(accept.index())).collect::<Vec<AcceptId>>()
    };
    assert_eq!(live(&mut guards, b), [lexer.accept(b)]);
    assert_eq!(live(&mut guards, a).len(), 2, "a `b` ends the guard, so that `aba` may follow");
    assert_eq!(guards.step(&lexer, id, b'a'), None);
    assert_eq!(guards.step(&lexer, id, b'b'), Some(NO_GUARDS));
}

#[test]
fn lookahead_is_the_longest_match_of_each_state() {
    let lexer = lexer(&overlapping());
    for right in texts(b"abc ", 4) {
        let lookahead = Lookahead::run(&lexer, &right);
        for state in (1..lexer.state_count()).map(StateId::from_index) {
            let after = |end: usize| right[..end].iter().fold(state, |state, &byte| lexer.step(state, byte));
            let longest = (1..=right.len()).rev().find(|&end| lexer.accepts(after(end)));
            let wanted = longest.map(|end| (u32::try_from(end).expect("short"), lexer.accept(after(end))));
            assert_eq!(lookahead.end(state), wanted, "{state:?} {right:?}");
            assert_eq!(lexer.longest_from(state, &right).map(|(end, accept)| (end as u32, accept)), wanted);
        }
    }
}

#[test]
fn columns_are_exactly_the_pairs_that_blanks_can_make() {
    let blanks = texts(b" \t", 10);
    let made: BTreeSet<Column> = blanks.iter().map(|blanks| Column::ZERO.after_all(blanks)).collect();
    let column = |text: &[u8]| Column::ZERO.after_all(text);
    assert_eq!(column(b"\t "), Column { wide: 9, narrow: 2 });
    assert_eq!(column(b" \t"), Column { wide: 8, narrow: 2 });
    assert_eq!(column(b"  \x0c "), Column { wide: 1, narrow: 1 });
    for wide in 0..=10 {
        for narrow in 0..=10 {
            let column = Column { wide, narrow };
            assert_eq!(column.is_possible(), made.contains(&column), "{column:?}");
        }
    }
    for one in &blanks {
        let own = column(one);
        assert!(own.least_bytes() as usize <= one.len(), "{own:?}");
        for other in blanks.iter().filter(|other| other.len() < 5) {
            let wanted = match (own.wide.cmp(&column(other).wide), own.narrow.cmp(&column(other).narrow)) {
                (wide, narrow) if wide == narrow => Some(wide),
                _ => None,
            };
            assert_eq!(own.compare(column(other)), wanted);
            if wanted == Some(Ordering::Greater) {
                assert!(column(other).least_bytes_right_of(true) <= own.least_bytes());
            }
        }
    }
    let high = Column { wide: 9, narrow: 3 };
    let below: BTreeSet<Column> = made.iter().copied().filter(|column| column.is_left_of(high)).collect();
    assert_eq!(Column::below(high).into_iter().collect::<BTreeSet<Column>>(), below);
    let low = Column { wide: 1, narrow: 1 };
    let between: Vec<Column> = below.iter().rev().copied().filter(|column| low.is_left_of(*column)).collect();
    assert_eq!(Column::between(low, high), between);
    assert_eq!(column(b"\t").kept(), Some(Column { wide: 8, narrow: 8 }));
    assert_eq!(Column::ZERO.kept(), None);
}

#[test]
fn bounds_between_columns_are_admissible() {
    let column = |text: &[u8]| Column::ZERO.after_all(text);
    let more = texts(b" \t", 9);
    for begun in texts(b" \t", 4).iter().chain([&b"\t       ".to_vec(), &b"      ".to_vec()]) {
        let from = column(begun);
        let reached = more.iter().map(|more| (from.after_all(more), more.len(), false));
        let joined = more.iter().filter_map(|more| Some((from.after_all(more).kept()?, more.len() + 2, true)));
        for (to, bytes, is_joined) in reached.chain(joined) {
            let least = from.least_bytes_to(to);
            assert!(least.is_some_and(|least| least as usize <= bytes), "{from:?} {to:?}: {least:?} of {bytes}");
            for other in texts(b" \t", 3) {
                let other = column(&other);
                if other.is_left_of(to) {
                    for joins in [is_joined, true] {
                        let least = from.least_bytes_to_right_of(other, joins) as usize;
                        assert!(least <= bytes, "{from:?} {other:?} {bytes}");
                    }
                }
            }
        }
    }
    let spaces = |wide| Column { wide, narrow: wide };
    assert_eq!(Column::ZERO.least_bytes_to(spaces(47)), Some(14)); // 5 tabs, 7 blanks and what keeps them
    assert_eq!(spaces(1).least_bytes_to(spaces(47)), Some(14));
    assert_eq!(column(b"\t").least_bytes_to(spaces(47)), Some(13));
    assert_eq!(column(b"\t").least_bytes_to(spaces(7)), None);
    assert_eq!(column(b"\t").least_bytes_to(Column { wide: 9, narrow: 9 }), Some(3));
    assert_eq!(Column::ZERO.least_bytes_to_right_of(spaces(98), true), 15);
    assert_eq!(column(b"\t").least_bytes_to_right_of(spaces(8), true), 3);
    assert_eq!(column(b"\t ").least_bytes_to_right_of(spaces(0), true), 0);
}

#[test]
fn indentation_stacks_are_interned() {
    let spaces = |wide| Column { wide, narrow: wide };
    let mut stacks = Indentations::default();
    let module = crate::ids::IndentationId::default();
    let two = stacks.push(module, spaces(2));
    let four = stacks.push(two, spaces(4));
    assert_eq!(stacks.push(module, spaces(2)), two);
    assert_ne!(stacks.push(module, spaces(4)), four, "another stack below");
    assert_eq!(stacks.columns(four), [spaces(4), spaces(2)]);
    assert_eq!((stacks.depth(four), stacks.top(four), stacks.parent(four)), (2, spaces(4), Some(two)));
    assert_eq!((stacks.parent(module), stacks.top(module)), (None, Column::ZERO));
    let mut columns = Columns::default();
    let id = columns.intern(spaces(3));
    assert_eq!((columns.intern(spaces(3)), columns.get(id)), (id, spaces(3)));
    assert!(columns.intern(Column::ZERO) != NO_COLUMN && id != NO_COLUMN);
}

#[test]
fn line_bytes_follow_the_roles_of_lexemes() {
    let twin = Twin::new(blocks());
    let language = &twin.language;
    let bytes = line_bytes(&language.lexer, |accept| language.accept_role(accept));
    let of = |byte: u8| bytes[usize::from(byte)];
    assert_eq!((of(b' '), of(b'\t'), of(b'\n')), (LineByte::Blank, LineByte::Blank, LineByte::Newline));
    assert_eq!((of(b'#'), of(b'a'), of(b':')), (LineByte::Trivia, LineByte::Symbol, LineByte::Symbol));
}

/// A branch of a reader that records symbols: the symbol in progress, guards, and the place of its record.
#[derive(Debug, Clone, Copy)]
struct Note {
    state: StateId,
    guards: GuardId,
    read: usize,
}

impl Cut for Note {
    fn state(&self) -> StateId {
        self.state
    }

    fn guards(&self) -> GuardId {
        self.guards
    }

    fn is_before_line(&self) -> bool {
        false
    }

    fn with_state(self, state: StateId) -> Self {
        Self { state, ..self }
    }

    fn with_guards(self, guards: GuardId) -> Self {
        Self { guards, ..self }
    }

    fn at_line_start(self) -> Self {
        self
    }
}

/// Reader that takes every symbol, in a language without layout.
struct Scribe<'a> {
    lexer: &'a Lexer,
    role: &'a dyn Fn(AcceptId) -> Role,
    guards: Guards,
    read: Vec<Vec<AcceptId>>,
}

impl Reader for Scribe<'_> {
    type Branch = Note;
    type Read = ();
    const NOTHING: () = ();

    fn lexer(&self) -> &Lexer {
        self.lexer
    }

    fn role(&self, accept: AcceptId) -> Role {
        (self.role)(accept)
    }

    fn line_byte(&self, _: u8) -> LineByte {
        unreachable!("no layout")
    }

    fn step_guards(&mut self, guards: GuardId, byte: u8) -> Option<GuardId> {
        self.guards.step(self.lexer, guards, byte)
    }

    fn add_guard(&mut self, guards: GuardId, state: StateId) -> GuardId {
        self.guards.with(self.lexer, guards, state)
    }

    fn pass_over(&mut self, branch: Note, mut each: impl FnMut(&mut Self, Note, ())) {
        let state = self.lexer.start();
        each(self, Note { state, ..branch }, ());
    }

    fn indent(&mut self, _: Note, _: u8) -> Option<Note> {
        unreachable!("no layout")
    }

    fn join(&mut self, _: Note) -> Option<Note> {
        unreachable!("no layout")
    }

    fn end_line(&mut self, _: Note, _: AcceptId, _: impl FnMut(&mut Self, Note, ())) {
        unreachable!("no layout")
    }

    fn read(&mut self, branch: Note, accept: AcceptId, _: Role, mut each: impl FnMut(&mut Self, Note, ())) {
        let mut symbols = self.read[branch.read].clone();
        symbols.push(accept);
        self.read.push(symbols);
        let (read, state) = (self.read.len() - 1, self.lexer.start());
        each(self, Note { read, state, ..branch }, ());
    }

    fn reach(&mut self, branch: Note, (): (), out: &mut Vec<Note>) {
        out.push(branch);
    }

    fn begin_symbol(&mut self, branch: Note, (): (), out: &mut Vec<Note>) {
        out.push(branch);
    }

    fn begin_line(&mut self, _: Note, _: StateId, (): (), _: &mut Vec<Note>) {
        unreachable!("no layout")
    }
}

#[test]
fn one_branch_of_a_step_reads_the_longest_matches() {
    for (spec, alphabet, longest) in [(overlapping(), &b"abc "[..], 5), (words(), b"ab", 8), (sums(), b"a+( ", 5)] {
        let twin = Twin::new(spec);
        let language = twin.language.clone();
        let role = |accept: AcceptId| language.accept_role(accept);
        for text in texts(alphabet, longest) {
            let mut scribe =
                Scribe { lexer: &language.lexer, role: &role, guards: Guards::default(), read: vec![Vec::new()] };
            let mut branches = vec![Note { state: language.lexer.start(), guards: NO_GUARDS, read: 0 }];
            let mut stepped = Vec::new();
            for &byte in &text {
                branches.drain(..).for_each(|branch| branch::step(&mut scribe, branch, byte, &mut stepped));
                std::mem::swap(&mut branches, &mut stepped);
            }
            let mut found = Vec::new();
            for branch in branches {
                if language.lexer.is_start(branch.state) {
                    found.push(scribe.read[branch.read].clone());
                } else if language.lexer.accepts(branch.state) {
                    let accept = language.lexer.accept(branch.state);
                    branch::end_symbol(&mut scribe, branch, accept, |scribe, ended, ()| {
                        found.push(scribe.read[ended.read].clone());
                    });
                }
            }
            let passed_on = |lexed: Vec<crate::test_languages::Lexed>| {
                let symbols = lexed.into_iter().filter(|lexed| !twin.is_ignored(lexed));
                symbols.map(|lexed| lexed.lexemes).collect::<Vec<_>>()
            };
            let wanted: Vec<_> = twin.lex(&text).map(passed_on).into_iter().collect();
            let lexemes = |read: &Vec<AcceptId>| {
                read.iter().map(|&accept| language.lexer.lexemes(accept).to_vec()).collect::<Vec<_>>()
            };
            assert_eq!(found.iter().map(lexemes).collect::<Vec<_>>(), wanted, "{:?}", String::from_utf8_lossy(&text));
        }
    }
}

// ---------------------------------------------------------------- automata

mod automata {
    use crate::lexing::automaton::{Automaton, Unbuilt};
    use crate::limits::{self, Determinising};

    /// Moore's partition refinement, the plain twin of Hopcroft's.
    fn plain_partition(rows: &[[u32; 256]], labels: &[u16]) -> Vec<u32> {
        let useful = |state: usize| {
            let mut seen = vec![false; rows.len()];
            let mut stack = vec![state];
            while let Some(at) = stack.pop() {
                if labels[at] != 0 {
                    return true;
                }
                if !std::mem::replace(&mut seen[at], true) {
                    stack.extend(rows[at].iter().map(|&target| target as usize));
                }
            }
            false
        };
        let mut blocks: Vec<u32> =
            (0..rows.len()).map(|state| if useful(state) { u32::from(labels[state]) + 1 } else { 0 }).collect();
        loop {
            let mut known: Vec<Vec<u32>> = Vec::new();
            let fresh: Vec<u32> = (0..rows.len())
                .map(|state| {
                    let mut key = vec![blocks[state]];
                    key.extend(rows[state].iter().map(|&target| blocks[target as usize]));
                    let place = known.iter().position(|other| *other == key).unwrap_or_else(|| {
                        known.push(key);
                        known.len() - 1
                    });
                    u32::try_from(place).unwrap()
                })
                .collect();
            if fresh == blocks {
                return blocks;
            }
            blocks = fresh;
        }
    }

    #[test]
    fn hopcroft_agrees_with_moore() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |bound: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            u32::try_from(seed % bound).unwrap()
        };
        let mut merged = 0;
        for _ in 0..400 {
            let (count, letters) = (1 + random(14), 1 + random(3));
            let mut automaton = Automaton::default();
            let (mut rows, mut labels) = (vec![[0; 256]], vec![0u16]);
            for _ in 0..count {
                let mut row = [0; 256];
                for letter in 0..letters {
                    row[letter as usize] = random(u64::from(count) + 1);
                }
                let label = u16::try_from(random(3)).unwrap();
                automaton.push(row, label);
                rows.push(row);
                labels.push(label);
            }
            let minimal = automaton.minimise();
            let expected = plain_partition(&rows, &labels);
            assert_eq!(minimal.state_of, expected);
            merged += usize::from(minimal.labels.len() < rows.len());
            for (state, row) in rows.iter().enumerate().filter(|(state, _)| expected[*state] != 0) {
                let to = minimal.state_of[state] as usize;
                assert_eq!(minimal.labels[to], labels[state]);
                for (byte, &target) in row.iter().enumerate() {
                    let class = minimal.class_of[byte] as usize;
                    let next = minimal.next[to * minimal.class_count + class];
                    assert_eq!(next, minimal.state_of[target as usize]);
                }
            }
        }
        assert!(merged > 100, "{merged}");
    }

    fn large(pattern: &str, limits: Determinising) -> Option<&'static str> {
        match Automaton::default().add(&[pattern.into()], limits, |matched| u16::from(!matched.is_empty())) {
            Err(Unbuilt::Large(what, given, limit)) => {
                assert!(given > limit, "{pattern}");
                Some(what)
            }
            Err(other) => panic!("{pattern}: {other:?}"),
            Ok(_) => None,
        }
    }

    #[test]
    fn each_limit_of_an_automaton_stops_its_construction() {
        for limits in [limits::SHAPE, limits::LEXER] {
            assert!(large("a{100000}", limits).is_some());
            assert_eq!(large("((a{1,100}){1,100}){1,100}", limits), Some("bytes of an automaton"));
            assert_eq!(large("[ab]*a[ab]{15}", limits), Some("states of an automaton"));
            assert_eq!(large(&"(?:a|b)".repeat(40_000), limits), Some("bytes of regular expressions"));
            assert_eq!(large(r"\w+(?: \+ \w+)*", limits), None);
        }
        assert!(large("(.*a){12}.{12}", limits::SHAPE).is_some());
        let few = Determinising { work: 1_000, ..limits::SHAPE };
        assert_eq!(large("(?:[a-c]{1,9}x)*", few), Some("steps to an automaton"));
    }
}
