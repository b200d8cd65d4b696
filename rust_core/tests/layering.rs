//! Layers of the crate's modules, read off the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files of `src`, in the order of the dataflow: each may use earlier ones alone, and itself.
const LAYERS: [&str; 23] = [
    "ids",
    "bits",
    "chunked",
    "interned",
    "components",
    "error",
    "limits",
    "stop",
    "spec",
    "lexing",
    "grammar",
    "language",
    "chart",
    "holes",
    "right",
    "requirement",
    "engine",
    "masking",
    "diagnostics",
    "planning",
    "session",
    "state",
    "matcher",
];

/// Modules that know bytes, lexemes and columns, and nothing of grammar rules.
const LEXING: [&str; 7] = ["ids", "bits", "error", "limits", "stop", "spec", "lexing"];

/// Modules that walk a vocabulary with any `Recognizer`, and know nothing of lexers and parsers.
const RECOGNIZING: [&str; 8] =
    ["ids", "bits", "error", "limits", "stop", "masking::plain", "masking::trie", "masking::vocabulary"];

/// Layers of the memory of a project's text, a crate of its own beside the engine.
const MEMORY: [&str; 22] = [
    "limits",
    "lexemes",
    "strings",
    "randomness",
    "languages",
    "secrets::names",
    "secrets::texts",
    "secrets::reader",
    "secrets",
    "segment",
    "store",
    "cursor",
    "query",
    "related",
    "words",
    "open",
    "reading",
    "ignores",
    "secret_files",
    "walk",
    "walk_tests",
    "folder",
];

/// Lines that a file may have.
const LINES: usize = 700;

/// The sources by module: `lexing::lexer` for `src/lexing/lexer.rs`, `lexing` for `src/lexing/mod.rs`.
fn sources() -> BTreeMap<String, PathBuf> {
    sources_in("src")
}

/// The sources by module, of a crate whose sources are elsewhere.
fn sources_in(folder: &str) -> BTreeMap<String, PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inside = path.strip_prefix(&root).expect("inside src").with_extension("");
                let parts: Vec<&str> = inside.iter().map(|part| part.to_str().expect("plain names")).collect();
                let name = parts.join("::");
                found.insert(name.strip_suffix("::mod").unwrap_or(&name).to_string(), path);
            }
        }
    }
    found.remove("lib").expect("the facade is there");
    // Tests of a layer may use all layers.
    found.retain(|module, _| module != "test_languages" && module.split("::").last() != Some("tests"));
    found
}

/// A source without its comments and tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a readable source");
    let mut kept = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let bare = line.trim_start();
        if bare.starts_with("#[cfg(test)]") {
            // An item, formatted: a line that ends with a semicolon, or else lines up to a brace in its own column.
            let end = format!("{}}}", &line[..line.len() - bare.len()]);
            let first = lines.find(|line| !line.trim_start().starts_with('#')).unwrap_or_default();
            if !first.ends_with([';', '}']) {
                lines.find(|line| *line == end);
            }
            continue;
        }
        kept.push(line.split("//").next().unwrap_or_default());
    }
    kept.join("\n")
}

/// The names to which paths beginning with `crate::` lead, those in braces one by one.
fn names(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let end = rest.find(|char: char| !(char.is_alphanumeric() || char == '_' || char == ':')).unwrap_or(rest.len());
        let path = rest[..end].trim_end_matches("::");
        found.push(path.to_string());
        if let Some(list) = rest[end..].strip_prefix('{') {
            let inner = list.split('}').next().unwrap_or_default();
            found.extend(inner.split(',').map(|name| format!("{path}::{}", name.trim())));
        }
    }
    found
}

/// By module: the modules that it uses, as deep as they are named.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    uses_among(&sources())
}

fn uses_among(sources: &BTreeMap<String, PathBuf>) -> BTreeMap<String, BTreeSet<String>> {
    let module = |name: &String| {
        let parts: Vec<&str> = name.split("::").collect();
        let known = (1..=parts.len()).rev().map(|count| parts[..count].join("::"));
        known.into_iter().find(|module| sources.contains_key(module))
    };
    let uses_of = |own: &String, path: &PathBuf| {
        let code = code(path);
        assert!(!code.contains("super::"), "{own}: paths begin with crate:: here");
        names(&code).iter().filter_map(module).filter(|used| used != own).collect::<BTreeSet<String>>()
    };
    sources.iter().map(|(own, path)| (own.clone(), uses_of(own, path))).collect()
}

fn layer(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

/// Modules outside of a half that its modules use.
fn strays(half: &[&str]) -> Vec<String> {
    let within = |module: &str| half.contains(&module) || half.contains(&layer(module));
    let uses = uses();
    let own = uses.iter().filter(|(module, _)| within(module));
    own.flat_map(|(module, used)| used.iter().filter(|one| !within(one)).map(move |one| format!("{module} uses {one}")))
        .collect()
}

#[test]
fn every_module_has_its_place_and_uses_earlier_layers_alone() {
    let rank = |module: &str| LAYERS.iter().position(|&name| name == layer(module));
    let uses = uses();
    let homeless: Vec<&String> = uses.keys().filter(|module| rank(module).is_none()).collect();
    assert!(homeless.is_empty(), "{homeless:?} have no place in LAYERS yet");
    let empty: Vec<&&str> = LAYERS.iter().filter(|name| !uses.keys().any(|module| layer(module) == **name)).collect();
    assert!(empty.is_empty(), "{empty:?} stand for no module");
    for (module, used) in &uses {
        let against: Vec<&String> = used.iter().filter(|one| rank(one) > rank(module)).collect();
        assert!(against.is_empty(), "{module} uses {against:?}, which lie later in the dataflow");
    }
}

#[test]
fn the_memory_has_layers_of_its_own_and_knows_no_engine() {
    let sources = sources_in("memory/src");
    assert_eq!(sources.keys().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(MEMORY));
    let rank = |module: &str| MEMORY.iter().position(|&name| name == module);
    for (module, used) in uses_among(&sources) {
        let against: Vec<&String> = used.iter().filter(|one| rank(one) >= rank(&module)).collect();
        assert!(against.is_empty(), "{module} uses {against:?}, which lie later");
    }
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("memory/Cargo.toml"));
    let manifest = manifest.expect("a manifest");
    assert!(!manifest.contains("fim-server-core") && !manifest.contains("pyo3"));
    let length = |path: &PathBuf| fs::read_to_string(path).expect("a readable source").lines().count();
    assert!(sources.values().all(|path| length(path) < LINES));
}

#[test]
fn modules_use_each_other_in_no_circle() {
    let mut left = uses();
    loop {
        let free: Vec<String> = left
            .iter()
            .filter(|(_, used)| used.iter().all(|one| !left.contains_key(one)))
            .map(|(own, _)| own.clone())
            .collect();
        if free.is_empty() {
            break;
        }
        left.retain(|module, _| !free.contains(module));
    }
    let circle: Vec<&String> = left.keys().collect();
    assert!(circle.is_empty(), "{circle:?} use each other in a circle, or what does");
}

#[test]
fn the_lexing_half_knows_nothing_of_the_parser() {
    assert_eq!(strays(&LEXING), [""; 0]);
}

#[test]
fn plain_masks_ask_through_their_trait() {
    assert_eq!(strays(&RECOGNIZING), [""; 0]);
    let plain = code(&sources()["masking::plain"]);
    assert!(plain.contains("pub(crate) trait Recognizer"), "the trait that is meant");
}

#[test]
fn the_engine_knows_no_masks_and_no_sessions() {
    let uses = uses();
    let engine = uses.iter().filter(|(module, _)| layer(module) == "engine");
    let used: BTreeSet<&str> = engine.flat_map(|(_, used)| used.iter().map(|one| layer(one))).collect();
    assert!(used.contains("right"), "{used:?}");
    assert!(used.is_disjoint(&BTreeSet::from(["masking", "planning", "diagnostics", "session", "state", "matcher"])));
}

#[test]
fn files_are_short() {
    let length = |path: &PathBuf| fs::read_to_string(path).expect("a readable source").lines().count();
    let long: Vec<String> =
        sources().iter().filter(|(_, path)| length(path) >= LINES).map(|(module, _)| module.clone()).collect();
    assert!(long.is_empty(), "{long:?} have {LINES} lines or more");
}

#[test]
fn paths_are_read_as_they_are_written() {
    let code = "use crate::ids::{AcceptId, SetId};\nuse crate::right::queries;\nlet x = crate::limits::MODES;";
    let found = names(code);
    for name in ["ids", "ids::AcceptId", "ids::SetId", "right::queries", "limits::MODES"] {
        assert!(found.iter().any(|one| one == name), "{name} is missing in {found:?}");
    }
}
