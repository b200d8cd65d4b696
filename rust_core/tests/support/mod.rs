//! Languages by name, for several of the engine's suites.

#![allow(dead_code, unreachable_pub, reason = "each suite uses its own part")]

use fim_server_core::{Language, LanguageSpec};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A language from the text of its lowered definition.
pub fn compile(spec: &str) -> Arc<Language> {
    let spec: LanguageSpec = serde_json::from_str(spec).expect("a definition");
    Arc::new(Language::compile(&spec, None).expect("a language"))
}

/// A language of the package, in its newest version, compiled once.
pub fn language(name: &str) -> Arc<Language> {
    static PYTHON: OnceLock<Arc<Language>> = OnceLock::new();
    static JSON: OnceLock<Arc<Language>> = OnceLock::new();
    let slot = match name {
        "python" => &PYTHON,
        "json" => &JSON,
        _ => panic!("no language {name:?} in tests/languages"),
    };
    slot.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/languages").join(format!("{name}.json"));
        compile(&std::fs::read_to_string(path).expect("a definition"))
    })
    .clone()
}

/// The folder of the cases that Rust and Python share.
pub fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases")
}
