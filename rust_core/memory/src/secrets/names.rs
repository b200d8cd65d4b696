//! Names of secrets.

use crate::lexemes::{is_blank, is_word};

/// Parts of names of secrets, in small letters and without underscores.
const STRONG: [&str; 8] =
    ["passw", "passphrase", "passcode", "secret", "credential", "creds", "privatekey", "mnemonic"];
const NAMED: [&str; 9] =
    ["token", "apikey", "accesskey", "authorization", "basicauth", "bearer", "connectionstring", "connstr", "authkey"];

/// Words before `key` in the names of secrets.
const KEYS: [&str; 50] = [
    "access",
    "account",
    "admin",
    "aes",
    "anthropic",
    "api",
    "app",
    "auth",
    "aws",
    "azure",
    "cipher",
    "client",
    "consumer",
    "cookie",
    "crypt",
    "datadog",
    "deploy",
    "encrypt",
    "encryption",
    "fernet",
    "firebase",
    "gcp",
    "github",
    "gitlab",
    "google",
    "hmac",
    "jwt",
    "license",
    "mailgun",
    "maps",
    "master",
    "openai",
    "paypal",
    "private",
    "root",
    "rsa",
    "secret",
    "sendgrid",
    "sentry",
    "service",
    "session",
    "shared",
    "sign",
    "signing",
    "slack",
    "ssh",
    "storage",
    "stripe",
    "twilio",
    "webhook",
];

/// Words before `pass` in the names of passwords.
const PASSES: [&str; 22] = [
    "account", "admin", "app", "auth", "database", "db", "email", "ftp", "http", "key", "login", "mail", "my", "proxy",
    "redis", "root", "server", "smtp", "sql", "ssh", "store", "user",
];

/// Whole names of passwords and keys.
const WHOLE: [&str; 8] = ["pw", "pwd", "auth", "cred", "psk", "jwt", "pswd", "pword"];

/// Last words of names that say something about a secret and are none.
const ABOUT: [&str; 24] = [
    "class",
    "count",
    "end",
    "endpoint",
    "error",
    "exception",
    "field",
    "format",
    "index",
    "iter",
    "kind",
    "kinds",
    "len",
    "length",
    "list",
    "map",
    "pos",
    "position",
    "start",
    "stream",
    "type",
    "types",
    "uri",
    "url",
];

/// Parts of the names of fields and arguments that hold a value.
const VALUES: [&str; 5] = ["value", "default", "data", "content", "initial"];

/// Names of page marks in a list, with which the next page is requested.
const PAGES: [&str; 4] = ["pagetoken", "nexttoken", "continuationtoken", "synctoken"];

/// Sureness that a word names a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    /// Password or the like.
    Strong,
    Usual,
    /// Key of some kind, whose value does not look like a word.
    Weak,
}

/// Return whether a text holds the beginning of a secret's name, in any case. Most texts hold none, so this test comes
/// before the slower ones.
pub(crate) fn may_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let follows = |at: usize, rest: &[u8]| {
        bytes.get(at + 1..at + 1 + rest.len()).is_some_and(|found| found.eq_ignore_ascii_case(rest))
    };
    (0..bytes.len()).any(|at| match bytes[at] | 32 {
        b'a' => follows(at, b"uth"),
        b'b' => follows(at, b"ear"),
        b'c' => follows(at, b"red") || follows(at, b"onn"),
        b'j' => follows(at, b"wt"),
        b'k' => follows(at, b"ey"),
        b'm' => follows(at, b"nem"),
        b'p' => [&b"as"[..], b"w", b"sk", b"swd"].iter().any(|rest| follows(at, rest)),
        b's' => follows(at, b"ecr"),
        b't' => follows(at, b"oke"),
        _ => false,
    })
}

/// Return how surely a word names a secret; None where it does not.
pub(crate) fn strength(word: &str) -> Option<Strength> {
    if word.len() < 2 || word.len() > 100 || !may_name(word) {
        return None;
    }
    let small: String =
        word.chars().filter(|char| char.is_ascii_alphanumeric()).collect::<String>().to_ascii_lowercase();
    if STRONG.iter().any(|part| small.contains(part)) {
        return Some(Strength::Strong);
    }
    if NAMED.iter().any(|part| small.contains(part)) {
        return Some(Strength::Usual);
    }
    let is_upper = !word.bytes().any(|byte| byte.is_ascii_lowercase());
    let ends = |end: &str| small.strip_suffix(end).or_else(|| small.strip_suffix('s')?.strip_suffix(end));
    if WHOLE.contains(&small.as_str()) || (small.ends_with("pwd") && small.len() <= 24) {
        return Some(Strength::Strong);
    }
    let is_pass = small.strip_suffix("pass").is_some_and(|before| PASSES.iter().any(|word| before.ends_with(word)));
    if is_pass || word.ends_with("_pass") || word.ends_with("_PASS") || word == "PASS" {
        return Some(Strength::Strong);
    }
    let key = ends("key").filter(|before| !before.is_empty())?;
    if KEYS.iter().any(|before| key.ends_with(before)) || (is_upper && word.contains("_KEY")) {
        return Some(Strength::Usual);
    }
    (word.contains("_key") || word.contains("Key")).then_some(Strength::Weak)
}

/// Return whether a word names a secret so surely that other strings of its line may be the secret.
pub(crate) fn is_sure(word: &str) -> bool {
    if !may_name(word) {
        return false;
    }
    let small: String = word.chars().filter(|&char| char != '_').collect::<String>().to_ascii_lowercase();
    let is_about = || {
        small.contains("tokeni")
            || PAGES.iter().any(|page| small.ends_with(page))
            || ABOUT.iter().any(|end| small.strip_suffix(end).is_some_and(|rest| !rest.is_empty()))
    };
    small != "auth" && strength(word).is_some_and(|strength| strength != Strength::Weak) && !is_about()
}

/// Return the name of a field, a header, or an option, without its marks; None where a text is no name.
fn bare_name(text: &str) -> Option<String> {
    if !may_name(text) {
        return None;
    }
    let text = text.trim_matches(|char: char| is_blank(char) || "-:$=?&".contains(char));
    let is_key = |text: &str| text.to_ascii_lowercase().ends_with(" key") && text.matches(' ').count() == 1;
    let is_part = |char: char| is_word(char) || "-.:/ ".contains(char);
    if text.len() > 64 || !text.chars().all(is_part) || text.starts_with('/') || text.contains("//") {
        return None;
    }
    if text.contains(' ') && !is_key(text) {
        return None;
    }
    // The word before `key` decides whether it is a secret: `api.key`.
    let mut parts = text.rsplit(['.', ':', '/', ' ']);
    let (last, before) = (parts.next().unwrap_or(text), parts.next());
    let before = before.filter(|_| last.eq_ignore_ascii_case("key")).map(|before| format!("{before}_"));
    Some(format!("{}{last}", before.unwrap_or_default()).replace('-', "_"))
}

/// Return how surely a string names a secret as a field, a header, or an option; None where it does not.
pub(crate) fn name_in(text: &str) -> Option<Strength> {
    let name = bare_name(text)?;
    if matches!(name.as_str(), "pass" | "Pass") { Some(Strength::Strong) } else { strength(&name) }
}

/// Return whether a string is the sure name of a secret.
pub(crate) fn is_sure_name(text: &str) -> bool {
    bare_name(text).is_some_and(|name| is_sure(&name))
}

/// Return whether a text holds the name of a secret as a word.
pub(crate) fn holds_name(text: &str) -> bool {
    text.split(|char: char| !is_word(char) && char != '-').any(|word| name_in(word).is_some())
}

/// Return whether calls and records use a word to name their value.
pub(crate) fn is_value_name(word: &str) -> bool {
    let small = word.to_ascii_lowercase();
    matches!(small.as_str(), "v" | "val") || VALUES.iter().any(|part| small.contains(part))
}
