//! Floors on small languages, compared with all short middles: viability, completeness, masks, plans, shortest
//! completions.
//!
//! A twin reads the brackets and lines of a whole text by itself. A session without a floor decides whether the text is
//! a program.

use fim_server_core::{
    Floor, Language, LanguageSpec, Matcher, Outcome, Session, Shape, Tables, Vocabulary, mask_words,
};
use std::sync::Arc;

fn compile(lexemes: &str, rules: &str, more: &str) -> Arc<Language> {
    let lexemes: Vec<String> = lexemes
        .split_whitespace()
        .map(|lexeme| match lexeme.split_once('=') {
            Some((name, pattern)) => format!(r#"{{"name": "{name}", "pattern": "{pattern}"}}"#),
            None => format!(r#"{{"name": "{lexeme}"}}"#),
        })
        .collect();
    let mut listed = Vec::new();
    for rule in rules.split(';') {
        let (lhs, expansions) = rule.split_once("->").expect("a rule");
        for rhs in expansions.split('|') {
            let rhs: Vec<String> = rhs.split_whitespace().map(|symbol| format!("\"{symbol}\"")).collect();
            listed.push(format!(r#"{{"lhs": "{}", "rhs": [{}]}}"#, lhs.trim(), rhs.join(", ")));
        }
    }
    let start = rules.split_whitespace().next().expect("a rule");
    let spec = format!(
        r#"{{"name": "small", "start": "{start}", "lexemes": [{}], "rules": [{}], {more}}}"#,
        lexemes.join(", "),
        listed.join(", ")
    );
    let spec: LanguageSpec = serde_json::from_str(&spec).expect("a definition");
    Arc::new(Language::compile(&spec, None).expect("a language"))
}

const BRACKETS: &str = r#""brackets": [["OPEN", "CLOSE"], ["LEFT", "RIGHT"]]"#;

/// Sums of names in two kinds of brackets, with a comment.
fn sums() -> Arc<Language> {
    compile(
        r"OPEN=\\( CLOSE=\\) LEFT=\\[ RIGHT=\\] NAME=a+ PLUS=\\+ BLANK=\\x20+ COMMENT=#[^\\n]*\\n",
        "sum -> sum PLUS part | part; part -> NAME | OPEN sum CLOSE | LEFT list RIGHT; list -> | list part",
        &format!(r#""ignore": ["BLANK", "COMMENT"], {BRACKETS}"#),
    )
}

/// Texts with fields, whose brace is opened outside of the rule that closes it, as in a formatted string.
fn fields() -> Arc<Language> {
    compile(
        r"OPEN=\\( CLOSE=\\) LEFT=\\[ RIGHT=\\] BEGIN=< END=> NAME=a+ BLANK=\\x20+",
        "text -> BEGIN fields END; fields -> | fields LEFT field; field -> value RIGHT; \
         value -> NAME | text | OPEN value CLOSE",
        &format!(r#""ignore": ["BLANK"], {BRACKETS}"#),
    )
}

/// Brackets of several bytes, which the cursor may cut.
fn words() -> Arc<Language> {
    compile(
        r"OPEN=do CLOSE=od LEFT=\\[ RIGHT=\\] NAME=a BLANK=\\x20+",
        "all -> | all one; one -> NAME | OPEN all CLOSE | LEFT all RIGHT",
        &format!(r#""ignore": ["BLANK"], {BRACKETS}"#),
    )
}

/// Lines in blocks, with brackets.
fn blocks() -> Arc<Language> {
    compile(
        r"NEWLINE=\\n BLANK=\\x20+ COMMENT=#[^\\n]* OPEN=\\( CLOSE=\\) LEFT=\\[ RIGHT=\\] NAME=a+ IF=if COLON=: INDENT DEDENT",
        "file -> | lines; lines -> line | lines line; line -> value NEWLINE | IF COLON block; \
         block -> NEWLINE INDENT lines DEDENT; value -> NAME | OPEN value CLOSE | LEFT value RIGHT",
        &format!(
            r#""ignore": ["BLANK", "COMMENT"], {BRACKETS}, "layout": {{"newline": "NEWLINE", "indent": "INDENT",
            "dedent": "DEDENT", "blank": "BLANK", "comment": "COMMENT", "step": 1}}"#
        ),
    )
}

/// A lexeme of a text: its beginning and end, and whether it opens (1) or closes (-1).
type Lexed = (usize, usize, i32);

/// All of a text but blanks.
fn lex(text: &str) -> Vec<Lexed> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (length, opens) = match rest.as_bytes()[0] {
            b'(' | b'[' => (1, 1),
            b')' | b']' => (1, -1),
            b'#' => (rest.find('\n').unwrap_or(rest.len()), 0),
            b'd' if rest.starts_with("do") => (2, 1),
            b'o' if rest.starts_with("od") => (2, -1),
            b' ' | b'\n' => {
                at += 1;
                continue;
            }
            b'i' if rest.starts_with("if") => (2, 0),
            b'a' => (rest.bytes().take_while(|&byte| byte == b'a').count(), 0),
            _ => (1, 0),
        };
        found.push((at, at + length, opens));
        at += length;
    }
    found
}

/// The logical lines of a text that hold a symbol: the beginning of the first, and its column.
fn lines(text: &str) -> Vec<(usize, usize)> {
    let symbols: Vec<Lexed> = lex(text).into_iter().filter(|lexed| !text[lexed.0..].starts_with('#')).collect();
    let mut depth = 0;
    let mut found = Vec::new();
    let mut last = 0;
    for &(begin, end, opens) in &symbols {
        let line = text[..begin].rfind('\n').map_or(0, |at| at + 1);
        if depth == 0 && (found.is_empty() || line > last) {
            found.push((begin, begin - line));
        }
        depth += opens;
        last = end - 1;
    }
    found
}

/// Constructs that the middle must leave open: brackets, or the column of a block.
#[derive(Debug)]
enum Kept {
    Brackets(i32),
    Column(usize),
}

fn kept(kind: Floor, left: &str, right: &str) -> Kept {
    let text = format!("{left}{right}");
    if kind == Floor::Brackets {
        let lexed = lex(&text);
        let depth: i32 = lexed.iter().filter(|lexed| lexed.1 <= left.len()).map(|lexed| lexed.2).sum();
        let own = lexed.iter().filter(|lexed| lexed.1 > left.len());
        if own.clone().any(|lexed| matches!(&text[lexed.0..lexed.1], "o" | "d")) {
            return Kept::Brackets(0); // R is not read from there
        }
        let (mut open, mut closed) = (0, 0);
        for &(_, _, opens) in lexed.iter().filter(|lexed| lexed.0 >= left.len()) {
            open += opens;
            closed = closed.max(-open);
        }
        return Kept::Brackets(depth.min(closed));
    }
    // The columns of the blocks that are open where L ends.
    let mut columns = vec![0];
    for (_, column) in lines(left) {
        columns.retain(|&block| block <= column);
        if columns.last() != Some(&column) {
            columns.push(column);
        }
    }
    let depth: i32 = lex(left).iter().map(|lexed| lexed.2).sum();
    let line = &left[left.rfind('\n').map_or(0, |at| at + 1)..];
    let blanks = line.bytes().take_while(|&byte| byte == b' ').count();
    if depth == 0 && (blanks == line.len() || line[blanks..].starts_with('#')) {
        columns.retain(|&block| block <= blanks);
    }
    Kept::Column(*columns.last().expect("the module's"))
}

fn keeps(kept: &Kept, left: &str, middle: &str, right: &str) -> bool {
    let text = format!("{left}{middle}{right}");
    let end = left.len() + middle.len();
    match *kept {
        Kept::Brackets(least) => {
            let mut depth = 0;
            lex(&text).iter().filter(|lexed| lexed.1 <= end).all(|lexed| {
                depth += lexed.2;
                lexed.1 <= left.len() || lexed.2 >= 0 || depth >= least
            })
        }
        Kept::Column(column) => {
            lines(&text).iter().all(|line| line.0 < left.len() || line.0 >= end || line.1 >= column)
        }
    }
}

/// All texts over some pieces, shorter ones first.
fn texts(pieces: &[&str], longest: usize) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut layer = found.clone();
    for _ in 0..longest {
        layer = layer.iter().flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}"))).collect();
        found.extend(layer.iter().cloned());
    }
    found
}

#[derive(Debug, Default)]
struct Seen {
    limited: usize,
    refused: usize,
    impossible: usize,
    completed: usize,
    landed: usize,
}

/// Compare one pair of contexts with all its middles over some pieces.
fn check(
    language: &Arc<Language>,
    kind: Floor,
    (left, right): (&str, &str),
    pieces: &[&str],
    longest: usize,
    seen: &mut Seen,
) {
    let plain = Session::open(language, left, right);
    if plain.broken_at().is_some() {
        return;
    }
    let what = format!("{kind:?} {left:?} {right:?}");
    let kept = kept(kind, left, right);
    let middles = texts(pieces, longest);
    let good = |middle: &str| plain.check(middle).complete && keeps(&kept, left, middle, right);
    let whole: Vec<&String> = middles.iter().filter(|middle| good(middle)).collect();
    let Some(session) = plain.floored(kind, None) else {
        assert!(whole.is_empty(), "{what}: {kept:?} {whole:?}");
        seen.impossible += 1;
        return;
    };
    seen.limited += usize::from(session.floor().is_some());
    let tokens: Vec<Option<Vec<u8>>> =
        texts(pieces, 2).into_iter().map(|text| (!text.is_empty()).then(|| text.into_bytes())).collect();
    let tables = Arc::new(Tables::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"), None));
    let mut words = vec![0; mask_words(tables.vocabulary.len())];
    for middle in texts(pieces, longest.saturating_sub(2)).iter() {
        let verdict = session.check(middle);
        assert_eq!(verdict.complete, good(middle), "{what} {middle:?} {kept:?}");
        let further = whole.iter().filter(|whole| whole.starts_with(middle.as_str()));
        let least = further.map(|whole| whole.len() - middle.len()).min();
        seen.refused += usize::from(!verdict.viable && plain.check(middle).viable);
        if !verdict.viable {
            assert_eq!(least, None, "{what} {middle:?} {kept:?}");
            continue;
        }
        let mut state = session.start();
        assert_eq!(state.advance(middle.as_bytes()), middle.len());
        let completion = state.shortest_completion().expect("it is found").expect("one completes what is viable");
        let completion = String::from_utf8(completion).expect("text");
        assert!(good(&format!("{middle}{completion}")), "{what} {middle:?} {completion:?} {kept:?}");
        if let Some(least) = least {
            assert!(completion.len() <= least, "{what} {middle:?} {completion:?}, but {least} bytes do");
        }
        seen.completed += 1;
        let mut matcher = Matcher::new(state, tables.clone());
        matcher.fill_mask(&mut words);
        for (id, token) in tokens.iter().enumerate() {
            let allowed = words[id / 32] >> (id % 32) & 1 == 1;
            let expected = match token {
                None => verdict.complete,
                Some(token) => session.check(&format!("{middle}{}", std::str::from_utf8(token).expect("text"))).viable,
            };
            assert_eq!(allowed, expected, "{what} {middle:?} {token:?}");
        }
        if let Outcome::Plan(plan) = matcher.landing(0) {
            let text = String::from_utf8(plan.bytes.clone()).expect("text");
            assert!(good(&format!("{middle}{text}")), "{what} {middle:?} lands by {text:?}");
            seen.landed += 1;
        }
    }
}

#[test]
fn bracket_floors_agree_with_all_middles() {
    let mut seen = Seen::default();
    let brackets =
        |language: &Arc<Language>, lefts: &[&str], rights: &[&str], pieces: &[&str], longest, seen: &mut Seen| {
            for left in lefts {
                for right in rights {
                    check(language, Floor::Brackets, (left, right), pieces, longest, seen);
                }
            }
        };
    let lefts = ["", "(", "((a", "([a] + (", "[(a", "[a(", "(a) + [a", "[a #\n", "((a # ("];
    let rights = ["", ")", "))", "] + a)", ")]", "]", ") # )\n + a)", " + a) + [a]", "a)) + (a)", "))]"];
    brackets(&sums(), &lefts, &rights, &["a", "+", "(", ")", "[", "]"], 5, &mut seen);
    let lefts = ["<", "<[a", "<[(a", "<[<[a", "<[a] ", "(<[", "<[<", "<[<[a]>"];
    let rights = ["", ">", "]>", "]>]>", ")]>", ">]>", " ] [a] >", "[a]>]>"];
    brackets(&fields(), &lefts, &rights, &["a", "<", ">", "[", "]", "("], 5, &mut seen);
    let lefts = ["", "do ", "do d", "do a o", "do [ do", "[ do a", "do a od do", "do [ a ] o"];
    let rights = ["", "od", "d", " od ] a", "o od", " od", " od od", "] od", "d od", "od do a od ]"];
    brackets(&words(), &lefts, &rights, &["a", "o", "d", " ", "[", "]"], 5, &mut seen);
    let lefts = ["(", "if:\n a\n ([", "([a", "if:\n (a #)", "a\n((\n"];
    let rights = ["\n", ")\n", "]\n)\na\n", "])\na\n", "))\n a\n", "#)\n)\n"];
    brackets(&blocks(), &lefts, &rights, &["a", "(", ")", "[", "]", "\n", "#"], 4, &mut seen);
    assert!(
        seen.limited > 70 && seen.impossible > 50 && seen.refused > 400 && seen.completed > 5000 && seen.landed > 4000,
        "{seen:?}"
    );
}

#[test]
fn block_floors_agree_with_all_middles() {
    let language = blocks();
    let mut seen = Seen::default();
    let lefts = [
        "",
        "if:\n",
        "if:\n a\n",
        "if:\n a\n ",
        "if:\n a",
        "if:\n  if:\n   a\n  ",
        "if:\n  if:\n   a\n   ",
        "if:\n if:\n  a\n  a",
        "if:\n a\n #",
        "if:\n (a\n",
        "if:\n  if:\n    (",
        "if:\n  a\n ",
        "if:\n if:",
    ];
    let rights = [
        "",
        "\n",
        "\na\n",
        "a\n",
        " a\n",
        "  a\n",
        " a\na\n",
        "\n a\n",
        ")\n",
        ":\n  a\n",
        "\n  a\n a\n",
        "   a\n  a\na\n",
    ];
    for left in lefts {
        for right in rights {
            check(&language, Floor::Block, (left, right), &["a", "if:", "\n", " ", "\n ", "\n   "], 4, &mut seen);
        }
    }
    assert!(
        seen.limited > 80 && seen.impossible > 0 && seen.refused > 100 && seen.completed > 3000 && seen.landed > 2000,
        "{seen:?}"
    );
}

#[test]
fn a_floor_and_a_shape_hold_together() {
    let one_line = Arc::new(blocks().shaped(Arc::new(Shape::lines(1).expect("a shape"))).expect("of that shape"));
    let mut seen = Seen::default();
    for (kind, left, right) in [
        (Floor::Brackets, "((a", "\n)\na\n"),
        (Floor::Brackets, "([", ")\n"),
        (Floor::Block, "if:\n a\n ", "\n"),
        (Floor::Block, "if:\n if:\n  a\n  ", " a\n"),
    ] {
        check(&one_line, kind, (left, right), &["a", "(", ")", "[", "]", "\n", " "], 4, &mut seen);
    }
    assert!(seen.limited == 4 && seen.completed > 50, "{seen:?}");
    let few = Shape::regex("[a+() ]{0,4}").expect("a shape");
    let few = Arc::new(sums().shaped(Arc::new(few)).expect("of that shape"));
    for (left, right) in [("(a", ")"), ("((a", "+ a)"), ("(a + (", ")"), ("((", "))"), ("(a", "+ a))")] {
        check(&few, Floor::Brackets, (left, right), &["a", "+", "(", ")"], 5, &mut seen);
    }
    assert!(seen.limited == 9 && seen.refused > 2, "{seen:?}");
}

#[test]
fn a_session_that_moved_answers_as_one_opened_afresh() {
    let language = blocks();
    let middles = texts(&["a", "(", ")", "]", "\n", " "], 4);
    let right = ")\n a\n";
    let mut moved = 0;
    for kind in [Floor::Brackets, Floor::Block] {
        let mut earlier: Option<Arc<Session>> = None;
        for left in ["if:\n ", "if:\n (", "if:\n ((", "if:\n ((a", "if:\n (a", "if:\n a\n (", "(", "if:\n ("] {
            let plain = Session::open(&language, left, right);
            let Some(fresh) = plain.floored(kind, None) else { continue };
            let own = plain.floored(kind, earlier.as_deref()).expect("as the fresh one");
            assert_eq!(own.floor(), fresh.floor());
            moved +=
                usize::from(earlier.is_some_and(|earlier| earlier.floor().is_some() && earlier.moved(left).is_some()));
            for middle in &middles {
                assert_eq!(own.check(middle), fresh.check(middle), "{kind:?} {left:?} {middle:?}");
            }
            assert_eq!(own.open_constructs(), plain.open_constructs());
            earlier = Some(own);
        }
    }
    assert!(moved > 4, "{moved}");
}
