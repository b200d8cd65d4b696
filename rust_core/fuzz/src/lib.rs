//! Fuzz targets as functions of bytes. They return, or panic where the engine is wrong.
//!
//! `cargo fuzz` runs them on inputs from libFuzzer (the long form), `tests/fuzz.rs` of the engine on fixed seeds (the
//! short form).

mod naive;
pub mod operations;

use fim_server_core::{Language, LanguageSpec, Matcher, Session, Tables, TokenId, Vocabulary, is_possible, mask_words};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A small language with indentation, from which a mutated definition begins.
pub const BLOCKS: &str = r##"{
"name": "blocks", "start": "file",
"lexemes": [{"name": "NEWLINE", "pattern": "\\r?\\n"}, {"name": "BLANK", "pattern": "[ \\t]+"}, {"name": "COMMENT", "pattern": "#[^\\n]*"},
 {"name": "NAME", "pattern": "[a-z]+"}, {"name": "IF", "literal": "if"}, {"name": "COLON", "literal": ":"},
 {"name": "OPEN", "literal": "("}, {"name": "CLOSE", "literal": ")"}, {"name": "INDENT"}, {"name": "DEDENT"}],
"ignore": ["BLANK", "COMMENT"],
"rules": [{"lhs": "file", "rhs": []}, {"lhs": "file", "rhs": ["lines"]}, {"lhs": "lines", "rhs": ["line"]}, {"lhs": "lines", "rhs": ["lines", "line"]},
 {"lhs": "line", "rhs": ["value", "NEWLINE"]}, {"lhs": "line", "rhs": ["IF", "value", "COLON", "block"]},
 {"lhs": "value", "rhs": ["NAME"]}, {"lhs": "value", "rhs": ["OPEN", "value", "CLOSE"]},
 {"lhs": "block", "rhs": ["NEWLINE", "INDENT", "lines", "DEDENT"]}],
"layout": {"newline": "NEWLINE", "indent": "INDENT", "dedent": "DEDENT", "blank": "BLANK", "comment": "COMMENT"},
"brackets": [["OPEN", "CLOSE"]]
}"##;

const PIECES: [&str; 12] = ["a", "if", ":", "\n", " ", "  ", "(", ")", "#", "if a:\n ", ":\n    a", "é"];

fn blocks() -> Arc<Language> {
    static LANGUAGE: OnceLock<Arc<Language>> = OnceLock::new();
    let make = || {
        let spec: LanguageSpec = serde_json::from_str(BLOCKS).expect("a definition");
        Arc::new(Language::compile(&spec, None).expect("a language"))
    };
    LANGUAGE.get_or_init(make).clone()
}

fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let pieces = PIECES.iter().map(|piece| piece.as_bytes().to_vec());
    let tokens: Vec<Option<Vec<u8>>> = std::iter::once(None).chain(bytes.chain(pieces).map(Some)).collect();
    Vocabulary::new(&tokens, &[0]).expect("a vocabulary")
}

/// A definition from outside is a language or an error, never a panic.
pub fn spec(data: &[u8]) {
    if let Ok(spec) = serde_json::from_slice::<LanguageSpec>(data) {
        if let Ok(language) = Language::compile(&spec, None) {
            let _ = Session::open(&Arc::new(language), "a", "b").check("a");
        }
    }
}

/// Bytes as a text of the small language: a byte is a piece, so that most texts are almost programs.
fn text(data: &[u8]) -> String {
    data.iter().map(|byte| PIECES[usize::from(*byte) % PIECES.len()]).collect()
}

/// Check for any contexts and middle that a session gives the same answer to a question in all its forms.
pub fn session(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0xff).map(text);
    let mut part = || parts.next().unwrap_or_default();
    let (left, middle, right) = (part(), part(), part());
    let session = Session::open(&blocks(), &left, &right);
    let verdict = session.check(&middle);
    assert!(verdict.viable || !verdict.complete, "complete and not viable");
    assert_eq!(verdict.viable, verdict.rejected_at.is_none());

    let mut state = session.start();
    let taken = state.advance(middle.as_bytes());
    assert_eq!(taken, verdict.rejected_at.unwrap_or(middle.len()));
    if verdict.viable {
        assert_eq!(state.is_complete(), verdict.complete);
        if let Ok(found) = state.shortest_completion() {
            let found = found.expect("a viable middle has a completion");
            assert!(session.check(&format!("{middle}{}", String::from_utf8_lossy(&found))).complete);
        }
        let whole = Session::open(&blocks(), &format!("{left}{middle}"), &right);
        assert_eq!(whole.check("").complete, verdict.complete, "the middle's end is as good as the left's");
    }
    state.rollback(taken).expect("what was taken");
    assert_eq!(state.is_complete(), session.check("").complete);

    let begun = format!("{left}{middle}");
    // Texts beyond a limit have no answer.
    let holes = |texts: &[&str]| is_possible(&blocks(), texts).ok();
    let (one, none) = (holes(&[&begun, &right]), holes(&[&format!("{begun}{right}")]));
    assert!(one.is_none_or(|found| found == verdict.viable), "the chart over holes and the requirements");
    assert!(none.is_none_or(|found| found == verdict.complete), "no hole");
    assert!(!verdict.viable || holes(&[&left, &middle, &right]) != Some(false), "a free hole before the middle");

    let _ = state.advance(middle.as_bytes());
    same_masks(&Matcher::new(state, tables().clone()), tables());
}

fn tables() -> &'static Arc<Tables> {
    static TABLES: OnceLock<Arc<Tables>> = OnceLock::new();
    TABLES.get_or_init(|| Arc::new(Tables::new(vocabulary(), None)))
}

fn same_masks(matcher: &Matcher, tables: &Tables) {
    let mut plain = vec![0; mask_words(tables.vocabulary.len())];
    let mut by_table = plain.clone();
    matcher.fill_mask_plain(&mut plain);
    matcher.fill_mask(&mut by_table);
    assert_eq!(by_table, plain, "the table's mask and the plain walk's");
    for id in 0..tables.vocabulary.len() {
        let token = TokenId(u32::try_from(id).expect("a small vocabulary"));
        assert_eq!(plain[id / 32] >> (id % 32) & 1 == 1, matcher.allows(token).expect("known"), "{token:?}");
    }
}

/// Check that a changed, cut or replaced table file is refused: the masks are those of the plain walk.
///
/// The first byte says how the file is spoilt; each following group of four is a place and its new bytes.
pub fn table_file(data: &[u8]) {
    static VALID: OnceLock<(PathBuf, Vec<u8>)> = OnceLock::new();
    let (path, valid) = VALID.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("fim-server-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let tables = Tables::new(vocabulary(), Some(folder.clone()));
        let _ = tables.masks(&blocks());
        let mut files = std::fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let path = files.next().expect("a table was written");
        let bytes = std::fs::read(&path).expect("the table");
        (path, bytes)
    });
    let mut bytes = valid.clone();
    match data.split_first() {
        Some((0, rest)) => bytes = rest.to_vec(),
        Some((1, rest)) => {
            let length = rest.iter().fold(0usize, |sum, byte| (sum * 256 + usize::from(*byte)) % (valid.len() + 1));
            bytes.truncate(length);
        }
        Some((_, rest)) => {
            for change in rest.chunks_exact(4) {
                let place = usize::from(change[0]) << 16 | usize::from(change[1]) << 8 | usize::from(change[2]);
                let place = place % bytes.len();
                bytes[place] ^= change[3];
            }
        }
        None => {}
    }
    std::fs::write(path, &bytes).expect("the table");
    let tables = Arc::new(Tables::new(vocabulary(), path.parent().map(PathBuf::from)));
    for (left, right) in [("", ""), ("if a:\n  ", "\n  a\n"), ("if (", ")\n")] {
        same_masks(&Matcher::new(Session::open(&blocks(), left, right).start(), tables.clone()), &tables);
    }
}
