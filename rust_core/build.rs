//! Hash of the sources that determine a token table, as the key of its file. They are those of `masking/table` and all
//! that they import, directly or not, with the locked versions of their crates. So no list has to be kept, and a table
//! that other code built is never read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src");
    let folder = fs::read_dir("src/masking/table").expect("the table's sources are there");
    let files = folder.map(|entry| entry.expect("a readable folder").path());
    // Editors and file managers leave other files beside them.
    let mut pending: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    let mut sources: BTreeMap<PathBuf, String> = BTreeMap::new();
    // The regex crates, and Unicode, also determine what a pattern matches, and so the lexer's states.
    let lock = Path::new("Cargo.lock");
    if let Ok(text) = fs::read_to_string(lock) {
        println!("cargo:rerun-if-changed=Cargo.lock");
        sources.insert(lock.into(), text);
    }
    while let Some(path) = pending.pop() {
        if sources.contains_key(&path) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a readable source");
        // Tests do not change a table, and stand at the end of their file.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_string();
        pending.extend(code.split("crate::").skip(1).map(|rest| module(rest, &path)));
        sources.insert(path, code);
    }
    let all: Vec<&str> = sources.values().map(String::as_str).collect();
    println!("cargo:rustc-env=TABLE_SOURCES={:016x}", xxhash_rust::xxh3::xxh3_64(all.join("\0").as_bytes()));
}

/// The file of the module that a path after `crate::` begins with.
fn module(path: &str, importer: &Path) -> PathBuf {
    let name = |text: &str| text.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect::<String>();
    let folder = name(path);
    let file = path[folder.len()..].strip_prefix("::").map(name).unwrap_or_default();
    let places = [format!("src/{folder}/{file}.rs"), format!("src/{folder}.rs"), format!("src/{folder}/mod.rs")];
    let found = places.iter().map(PathBuf::from).find(|place| place.is_file());
    found.unwrap_or_else(|| panic!("{}: crate::{folder}::{file} is no module of src", importer.display()))
}
