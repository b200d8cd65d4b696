//! Texts for people as snapshots: quotient grammars, explanations, open constructs and diagnostics.
//!
//! Review an intended change with `cargo insta review`, and accept it there or with `INSTA_UPDATE=always cargo test`.

mod support;

use fim_server_core::Session;
use std::fmt::Write;

/// All diagnostics of a cursor, and of a text tried there.
fn told(language: &str, left: &str, tried: &str, right: &str) -> String {
    let session = Session::open(&support::language(language), left, right);
    let state = session.start();
    let explanation = state.explain(tried.as_bytes());
    let mut page = String::new();
    let mut line = |name: &str, value: String| writeln!(page, "{name}: {value}").expect("a string");
    line("left", format!("{left:?}"));
    line("right", format!("{right:?}"));
    line("guarantee", format!("{:?}", session.guarantee()));
    line("diagnostics", format!("{:?}", session.diagnostics()));
    line("broken at", format!("{:?}", session.broken_at()));
    line("inside", format!("{:?}", session.inside()));
    line("constructs", format!("{:?}", session.open_constructs()));
    line(
        "shortest",
        format!("{:?}", state.shortest_completion().map(|text| text.map(|text| String::from_utf8(text).unwrap()))),
    );
    line("tried", format!("{tried:?}"));
    line("accepted", format!("{} of {} bytes, viable {}", explanation.accepted, tried.len(), explanation.viable));
    line("expected", explanation.expected.join(" "));
    line("open left", format!("{:?}", explanation.open_left));
    line("open right", format!("{:?}", explanation.open_right));
    page
}

#[test]
fn a_call_that_is_open() {
    insta::assert_snapshot!(told("python", "total = sum(", "x]", ")\nprint(total)\n"));
}

#[test]
fn a_body_that_is_missing() {
    insta::assert_snapshot!(told("python", "def f(a):\n    if a:\n        ", "return a\n  b", "\n    return 2\n"));
}

#[test]
fn inside_an_f_string() {
    insta::assert_snapshot!(told("python", "name = f'hello {", "name!x", "}'\n"));
}

#[test]
fn a_left_side_that_is_broken() {
    insta::assert_snapshot!(told("python", "x = )\ny = ", "1", "\n"));
}

#[test]
fn a_right_side_that_is_broken() {
    insta::assert_snapshot!(told("python", "x = 1\ny = ", "1", "\nif = 3\n"));
}

#[test]
fn an_object_that_is_open() {
    insta::assert_snapshot!(told("json", "{\"a\": [1, ", "2, tru e", "], \"b\": null}"));
}

/// The quotient grammar of a small language is small enough to be read whole.
#[test]
fn the_quotient_grammar_of_a_list() {
    let spec = r#"{
        "name": "lists", "start": "list",
        "lexemes": [{"name": "OPEN", "literal": "["}, {"name": "CLOSE", "literal": "]"}, {"name": "COMMA", "literal": ","},
                    {"name": "NUMBER", "pattern": "[0-9]+"}, {"name": "BLANK", "pattern": " +"}],
        "ignore": ["BLANK"],
        "rules": [{"lhs": "list", "rhs": ["OPEN", "CLOSE"]}, {"lhs": "list", "rhs": ["OPEN", "items", "CLOSE"]},
                  {"lhs": "items", "rhs": ["item"]}, {"lhs": "items", "rhs": ["items", "COMMA", "item"]},
                  {"lhs": "item", "rhs": ["NUMBER"]}, {"lhs": "item", "rhs": ["list"]}]
    }"#;
    let session = Session::open(&support::compile(spec), "[1, [", "], 3]");
    insta::assert_snapshot!(session.quotient_grammar());
}

#[test]
fn the_quotient_grammar_in_json() {
    let session = Session::open(&support::language("json"), "{\"a\": ", ", \"b\": 1}");
    insta::assert_snapshot!(session.quotient_grammar());
}
