//! Files that are never read: files of secrets by their names, and files that a workspace keeps from assistants.
//!
//! Names and globs match in any case. The user's globs come first: the last one that matches decides. Then come the
//! usual names of files of secrets, then the workspace's ignore files for assistants.

use crate::ignores::is_withheld;
use crate::limits::{GLOB, GLOB_WILDCARDS, OWN_GLOBS};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

/// Usual names of files of secrets; the last that matches decides.
const USUAL: [&str; 29] = [
    "id_*",
    "!id_*.*", // code, such as id_generator.py
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "id_rsa*",
    ".env*",
    "*.env",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "credentials*",
    "!credentials*.{c,cc,cpp,cs,dart,ex,go,h,hpp,java,js,jsx,kt,lua,m,mjs,mm,php,pl,py,pyi,rb,rs,scala,swift,ts,tsx,vue,zig}",
    "secrets.*",
    "!secrets.{c,cc,cpp,go,java,rs,scala,zig}", // in other languages they often hold keys
    "*.jks",
    "*.kdbx",
    "*.key",
    "*.keystore",
    "*.p12",
    "*.pem",
    "*.pfx",
    "*.ppk",
    "*.tfvars",
    "*.tfvars.json",
];

static USUAL_NAMES: LazyLock<Gitignore> = LazyLock::new(|| built(&USUAL).expect("globs"));

/// Return whether a file is made for secrets, by its name.
#[must_use]
pub fn is_made_for_secrets(name: &str) -> bool {
    USUAL_NAMES.matched(name, false).is_ignore()
}

/// Files that are never read, with the user's own globs.
pub struct SecretFiles {
    own: Gitignore,
}

impl Default for SecretFiles {
    fn default() -> Self {
        Self { own: Gitignore::empty() }
    }
}

impl SecretFiles {
    /// Return the files of some globs of the user besides the usual ones; `!` before a glob takes files out.
    ///
    /// # Errors
    ///
    /// A message in one line about the first text that is no glob, or that is too long.
    pub fn new(globs: &[String]) -> Result<Self, String> {
        if globs.len() > OWN_GLOBS {
            return Err(format!("{} globs, at most {OWN_GLOBS} are read", globs.len()));
        }
        for glob in globs {
            let wildcards = glob.bytes().filter(|byte| b"*?[{".contains(byte)).count();
            if glob.len() > GLOB || wildcards > GLOB_WILDCARDS {
                return Err(format!("a glob has at most {GLOB} bytes and {GLOB_WILDCARDS} wildcards"));
            }
            if glob.trim_start_matches('!').trim().is_empty() || glob.starts_with('#') || glob.contains(['\n', '\r']) {
                return Err(format!("a glob expected, not {glob:?}"));
            }
            built(&[glob]).map_err(|_| format!("a glob expected, not {glob:?}"))?;
        }
        Ok(Self { own: built(globs).map_err(|_| "the globs are too large together".to_string())? })
    }

    /// Return whether the globs make a file one of these (`true`) or take it out (`false`), or `None`.
    ///
    /// `path`: below the workspace's folder.
    #[must_use]
    pub fn decide(&self, path: &Path) -> Option<bool> {
        let inside = below(path);
        match self.own.matched_path_or_any_parents(&inside, false) {
            Match::Ignore(_) => return Some(true),
            Match::Whitelist(_) => return Some(false),
            Match::None => {}
        }
        inside.file_name().and_then(|name| is_made_for_secrets(&name.to_string_lossy()).then_some(true))
    }

    /// Return whether all files below a folder are among these by a glob of the user. `path`: as of [`Self::decide`].
    pub(crate) fn has_folder(&self, path: &Path) -> bool {
        self.own.matched(path, true).is_ignore()
    }

    /// Return whether a file is among these, by globs or by the ignore files for assistants from `root` down to it.
    ///
    /// A file below a folder whose ignore file cannot be read counts as one.
    #[must_use]
    pub fn contains(&self, root: &Path, file: &Path) -> bool {
        self.decide(file.strip_prefix(root).unwrap_or(file)).unwrap_or_else(|| is_withheld(root, file))
    }
}

/// Return the names of a path without its root.
fn below(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

fn built(globs: &[impl AsRef<str>]) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new("");
    builder.case_insensitive(true)?;
    for glob in globs {
        builder.add_line(None, glob.as_ref())?;
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::{SecretFiles, is_made_for_secrets};
    use std::path::Path;

    #[test]
    fn files_of_secrets_are_known_by_their_names() {
        let names = [".env", ".env.local", ".envrc", "Prod.ENV", "id_rsa.pub", "id_work", "ID_RSA", "server.pem"];
        let more = ["credentials", "credentials.json", "Credentials_prod", "credentials.py.bak", "credentials.db"];
        let others = ["secrets.yaml", "secrets.h", "secrets.py", "a.tfvars", ".netrc", "a.key"];
        for name in names.into_iter().chain(more).chain(others) {
            assert!(is_made_for_secrets(name), "{name}");
        }
        let plain = ["environment.py", "key.py", "rsa.go", "id_generator.py", "my_credentials.go", "env", "secrets"];
        let code = ["credentials.py", "Credentials.java", "credentials_provider.go", "secrets.go", "secrets.rs"];
        for name in plain.into_iter().chain(code) {
            assert!(!is_made_for_secrets(name), "{name}");
        }
    }

    #[test]
    fn globs_of_the_user_add_and_take_out_and_the_last_decides() {
        let globs = ["*.vault", "!secrets.py", "/private/", "a/**/b.txt", "!keep.vault", "*.PEM"].map(str::to_string);
        let files = SecretFiles::new(&globs).expect("globs");
        for (path, decided) in [
            ("x.vault", Some(true)),
            ("deep/X.Vault", Some(true)),
            ("keep.vault", Some(false)),
            ("lib/secrets.py", Some(false)),
            ("secrets.yaml", Some(true)),
            ("private/deep/notes.txt", Some(true)),
            ("/private/notes.txt", Some(true)),
            ("other/private/notes.txt", None),
            ("a/x/y/b.txt", Some(true)),
            ("a.pem", Some(true)),
            ("main.rs", None),
            ("..", None),
            ("", None),
        ] {
            assert_eq!(files.decide(Path::new(path)), decided, "{path}");
        }
        assert!(files.has_folder(Path::new("private")) && !files.has_folder(Path::new("other")));
    }

    #[test]
    fn other_texts_than_globs_are_refused() {
        let long = "a".repeat(1000);
        let stars = "*a".repeat(40);
        for glob in ["", "!", " ", "# a", "a\nb", &long, &stars] {
            assert!(SecretFiles::new(&[glob.to_string()]).is_err(), "{glob:?}");
        }
        assert!(SecretFiles::new(&vec!["a".to_string(); 10_000]).is_err());
    }
}
