//! The engine-neutral cases of `tests/cases/*.toml`, which the package's tests read as well.

mod support;

use fim_server_core::Session;
use serde::Deserialize;
use std::fs;

/// Tables of other kinds, which only the package's tests read.
const OTHERS: [&str; 3] = ["causes.toml", "python_snippets.toml", "versions.toml"];

#[derive(Deserialize)]
struct Table {
    cases: Vec<Case>,
}

/// One case; its fields are described in `tests/cases/paper.toml`.
#[derive(Deserialize)]
struct Case {
    name: String,
    left: String,
    middle: String,
    right: String,
    viable: bool,
    complete: bool,
    completion: Option<String>,
    #[serde(default = "python")]
    language: String,
}

fn python() -> String {
    "python".to_owned()
}

fn read() -> Vec<Case> {
    let mut paths: Vec<_> =
        fs::read_dir(support::cases()).expect("the cases").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.ends_with(".toml") && !OTHERS.contains(&name)
    });
    let tables = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    tables.flat_map(|text| toml::from_str::<Table>(&text).expect("a table of cases").cases).collect()
}

#[test]
fn every_case_has_its_verdict() {
    let cases = read();
    assert!(cases.len() >= 100, "only {} cases were found", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let session = Session::open(&support::language(&case.language), &case.left, &case.right);
        let verdict = session.check(&case.middle);
        if (verdict.viable, verdict.complete) != (case.viable, case.complete) {
            wrong.push(format!("{}: viable {}, complete {}", case.name, verdict.viable, verdict.complete));
        }
        if let Some(completion) = &case.completion {
            if !session.check(&format!("{}{completion}", case.middle)).complete {
                wrong.push(format!("{}: the completion does not complete it", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A middle has one verdict whether its bytes come at once, one by one, or after others were rolled back.
#[test]
fn verdicts_do_not_depend_on_how_bytes_are_appended() {
    for case in read() {
        let session = Session::open(&support::language(&case.language), &case.left, &case.right);
        let verdict = session.check(&case.middle);
        let mut state = session.start();
        let taken: usize =
            case.middle.as_bytes().iter().map(|byte| state.advance(&[*byte])).take_while(|n| *n == 1).sum();
        assert_eq!(verdict.rejected_at.unwrap_or(case.middle.len()), taken, "{}", case.name);
        if verdict.viable {
            assert_eq!(state.is_complete(), verdict.complete, "{}", case.name);
            state.rollback(taken).expect("what was taken");
            assert_eq!(state.advance(case.middle.as_bytes()), case.middle.len(), "{}", case.name);
            assert_eq!(state.is_complete(), verdict.complete, "{}", case.name);
        }
    }
}
