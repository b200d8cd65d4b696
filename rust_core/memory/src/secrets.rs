//! Detection of secrets in a text: values of names of secrets, keys, tokens, and strings that look random.
//!
//! The memory leaves them out, so it neither offers them at another place nor shows them to a model. A text is read line
//! by line, by signs that many languages share: quotes, brackets, commas, `=` and `:`. The detection finds too much rather
//! than too little: a false find only costs the recall of its line.

use crate::lexemes::{is_blank, is_word};
use crate::randomness::runs;
use std::ops::Range;

/// Most lines of a secret value, and of a key's block.
const VALUE_LINES: u8 = 16;
const KEY_LINES: u8 = 120;

/// Parts of names of secrets, in small letters and without underscores.
const STRONG: [&str; 6] = ["passw", "passphrase", "passcode", "secret", "credential", "privatekey"];
const NAMED: [&str; 8] =
    ["token", "apikey", "accesskey", "authorization", "bearer", "connectionstring", "connstr", "authkey"];

/// Words before `key` in the names of secrets.
const KEYS: [&str; 34] = [
    "access",
    "account",
    "admin",
    "aes",
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
    "deploy",
    "encrypt",
    "encryption",
    "gcp",
    "hmac",
    "jwt",
    "license",
    "master",
    "private",
    "root",
    "rsa",
    "secret",
    "service",
    "session",
    "shared",
    "sign",
    "signing",
    "ssh",
    "storage",
    "webhook",
];

/// Parts of the names of calls and tables that look secrets up.
const LOOKUPS: [&str; 8] = ["get", "env", "header", "cookie", "setting", "config", "arg", "param"];

/// Returns whether a file is made for secrets, by its name. Open documents of such names are private
/// (`server/private.py`); most others are hidden anyway.
pub(crate) fn is_made_for_secrets(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = [".env", ".key", ".pem", ".tfvars"];
    name.starts_with("credentials.") || name.starts_with("secrets.") || ends.iter().any(|end| name.ends_with(end))
}

/// State of the reading between two lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Scanner {
    mode: Mode,
    lines: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Mode {
    #[default]
    Plain,
    /// In the block of a private key.
    Key,
    /// In a secret string, up to this quote.
    Text(&'static str),
    /// In the value of a secret's name, so many brackets deep.
    Value(u16),
}

/// Name of a secret that was just read.
#[derive(Clone, Copy)]
struct Name {
    quoted: bool,
    strength: Strength,
    /// Words read since the name.
    words: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    /// Password: the arguments of a function with such a name count as well.
    Strong,
    Usual,
    /// Key of some kind, whose value does not look like a word.
    Weak,
}

/// Assignment to a secret's name.
#[derive(Clone, Copy)]
struct Armed {
    depth: i32,
    /// The value is arguments, which end with a bracket at this depth.
    call: bool,
    /// A word is not the value.
    weak: bool,
    /// The value may continue in the next line without a bracket.
    from_quoted: bool,
}

impl Scanner {
    /// Returns the secrets of a text that continues the last one, as ranges of bytes in their order.
    pub(crate) fn ranges(&mut self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let before = found.len();
            self.line(line.trim_end_matches('\n'), &mut found);
            for range in &mut found[before..] {
                *range = start + range.start..start + range.end;
            }
            tidy(&mut found, before);
            start += line.len();
        }
        found
    }

    fn enter(&mut self, mode: Mode) {
        self.lines = if mode == Mode::Plain || self.mode != mode { 0 } else { self.lines + 1 };
        let most = if mode == Mode::Key { KEY_LINES } else { VALUE_LINES };
        self.mode = if self.lines >= most { Mode::Plain } else { mode };
    }

    fn line(&mut self, line: &str, found: &mut Vec<Range<usize>>) {
        let bare = line.trim();
        if bare.is_empty() {
            return;
        }
        let indented = line.len() - line.trim_start().len();
        let end = indented + bare.len();
        if self.mode == Mode::Key {
            let ends = line.find(KEY_END).map(|at| {
                line[at + KEY_END.len()..]
                    .find(KEY_DASHES)
                    .map_or(end, |more| at + KEY_END.len() + more + KEY_DASHES.len())
            });
            if let Some(ends) = ends {
                found.push(indented..ends);
                self.enter(Mode::Plain);
                return;
            }
            if is_key_line(bare) {
                found.push(indented..end);
                self.enter(Mode::Key);
                return;
            }
            self.enter(Mode::Plain);
        }
        if let Some(begins) = line.find(KEY_BEGIN).filter(|&at| line[at..].contains(KEY_NAME)) {
            let ends = line[begins..].find(KEY_END).map(|at| begins + at + KEY_END.len());
            found.push(begins..ends.map_or(end, |at| line[at..].find(KEY_DASHES).map_or(end, |to| at + to + 5)));
            self.enter(if ends.is_some() { Mode::Plain } else { Mode::Key });
            return;
        }
        let mut start = 0;
        if let Mode::Text(quote) = self.mode {
            let Some(at) = line.find(quote) else {
                found.push(indented..end);
                self.enter(self.mode);
                return;
            };
            if at > indented {
                found.push(indented..at);
            }
            start = at + quote.len();
            self.enter(Mode::Plain);
        }
        let inherited = match self.mode {
            Mode::Value(depth) => Some(i32::from(depth)),
            _ => None,
        };
        let mut reader = Reader::new(line, start, inherited);
        reader.read(found);
        let next = reader.next();
        self.enter(next);
        runs(line, &reader.quoted, found);
    }
}

const KEY_DASHES: &str = "-----";
const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_END: &str = "-----END ";
const KEY_NAME: &str = "PRIVATE KEY";

/// Returns whether a line looks like one of a key's block, in a string or not.
fn is_key_line(line: &str) -> bool {
    let line = line.trim_matches(|char: char| "\"'`+,;\\ \t".contains(char));
    let line = line.strip_suffix("\\n").unwrap_or(line);
    line.starts_with("Proc-Type:")
        || line.starts_with("DEK-Info:")
        || line.chars().all(|char| char.is_ascii_alphanumeric() || "+/=".contains(char))
}

/// Sorts the ranges from the given one on, and joins those that overlap.
fn tidy(found: &mut Vec<Range<usize>>, from: usize) {
    if found.len() < from + 2 {
        return;
    }
    found[from..].sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in found.drain(from..) {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    found.extend(joined);
}

/// Reader of one line.
struct Reader<'t> {
    line: &'t str,
    at: usize,
    depth: i32,
    name: Option<Name>,
    armed: Option<Armed>,
    /// Depth at which an argument with another name began inside of a value.
    other: Option<i32>,
    word: &'t str,
    /// Word before the last opening bracket, if nothing has followed the bracket.
    opened_by: Option<&'t str>,
    /// Last character that is no blank.
    last: char,
    quoted: Vec<Range<usize>>,
    unclosed: Option<&'static str>,
}

impl<'t> Reader<'t> {
    fn new(line: &'t str, at: usize, inherited: Option<i32>) -> Self {
        let armed = inherited.map(|depth| Armed { depth: -depth, call: false, weak: false, from_quoted: false });
        Self {
            line,
            at,
            depth: 0,
            name: None,
            armed,
            other: None,
            word: "",
            opened_by: None,
            last: '\n',
            quoted: Vec::new(),
            unclosed: None,
        }
    }

    fn read(&mut self, found: &mut Vec<Range<usize>>) {
        while let Some(char) = self.line[self.at..].chars().next() {
            if is_blank(char) {
                self.at += 1;
                continue;
            }
            if is_word(char) {
                self.read_word();
                continue;
            }
            if matches!(char, '"' | '\'' | '`') {
                self.read_string(char, found);
                continue;
            }
            self.read_sign(char);
            self.last = char;
            self.at += char.len_utf8();
        }
    }

    fn read_word(&mut self) {
        let rest = &self.line[self.at..];
        let end = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
        self.word = &rest[..end];
        self.at += end;
        self.opened_by = None;
        let is_prefix = end <= 3 && rest[end..].starts_with(['"', '\'']);
        if !is_prefix {
            self.last = 'a';
        }
        if self.armed.is_some() || is_prefix {
            return;
        }
        match strength(self.word) {
            Some(strength) => self.name = Some(Name { quoted: false, strength, words: 0 }),
            None => {
                if let Some(name) = &mut self.name {
                    name.words += 1;
                }
            }
        }
    }

    fn read_sign(&mut self, char: char) {
        let follows = self.line[self.at + char.len_utf8()..].chars().next();
        let opened_by = self.opened_by.take();
        match char {
            '=' => self.arm(2),
            ':' if follows == Some(':') || self.last == ':' => self.name = None,
            ':' => self.arm(0),
            ',' => self.comma(),
            ';' => {
                self.name = None;
                self.armed = self.armed.filter(|armed| self.depth > armed.depth);
            }
            '(' | '[' | '{' => {
                self.depth += 1;
                // A bracket inside of another one has the same name.
                self.opened_by = if self.last == 'a' || self.last == '!' { Some(self.word) } else { opened_by };
                let strong = self.name.is_some_and(|name| name.strength == Strength::Strong && !name.quoted);
                if char == '{' && self.armed.is_some_and(|armed| armed.depth == self.depth - 1) && self.last == 'a' {
                    self.armed = None; // a block
                } else if char == '(' && strong && self.armed.is_none() && self.last == 'a' {
                    let depth = self.depth - 1;
                    self.armed = Some(Armed { depth, call: true, weak: false, from_quoted: false });
                    self.name = None;
                } else if char != '[' {
                    self.name = None;
                }
            }
            ')' | ']' | '}' => {
                self.depth -= 1;
                self.other = self.other.filter(|&depth| depth <= self.depth);
                self.armed = self.armed.filter(|armed| self.depth >= armed.depth + i32::from(armed.call));
                if char != ']' {
                    self.name = None;
                }
            }
            '.' => self.name = None,
            _ => {}
        }
    }

    /// Begins a value after the sign behind its name, with at most so many words between them.
    fn arm(&mut self, words: usize) {
        if let Some(armed) = self.armed {
            // In a call that makes the value, other arguments are not secret.
            let is_value = self.word.is_empty() || strength(self.word).is_some() || is_value_name(self.word);
            if self.depth > armed.depth && self.last == 'a' && !is_value && self.other.is_none() {
                self.other = Some(self.depth);
            }
            return;
        }
        let Some(name) = self.name.take().filter(|name| name.words <= words) else { return };
        let weak = name.strength == Strength::Weak;
        self.armed = Some(Armed { depth: self.depth, call: false, weak, from_quoted: name.quoted });
    }

    fn comma(&mut self) {
        self.other = self.other.filter(|&depth| depth < self.depth);
        if let Some(armed) = self.armed {
            if self.depth <= armed.depth {
                self.armed = None;
            }
            self.name = None;
        } else if self.name.take().is_some_and(|name| name.quoted) {
            // Part of a pair; in a list of names, words follow.
            self.armed = Some(Armed { depth: self.depth, call: false, weak: true, from_quoted: false });
        }
    }

    fn read_string(&mut self, quote: char, found: &mut Vec<Range<usize>>) {
        let rest = &self.line[self.at..];
        let triple = ["\"\"\"", "'''"].into_iter().find(|triple| rest.starts_with(triple));
        let mark = triple.unwrap_or(match quote {
            '"' => "\"",
            '`' => "`",
            _ => "'",
        });
        let opened_by = self.opened_by.take();
        let start = self.at + mark.len();
        // An apostrophe, or a mark outside of strings.
        let is_apostrophe = quote == '\'' && triple.is_none() && {
            let before = self.line[..self.at].chars().next_back();
            let prefix = self.line[..self.at].chars().rev().take_while(|&char| is_word(char)).count();
            matches!(before, Some('&' | '<' | '+')) || prefix > 3
        };
        let end = if is_apostrophe { None } else { end_of(&self.line[start..], mark) };
        let Some(length) = end else {
            let whole = start..start + self.line[start..].trim_end().len();
            let goes_on = triple.is_some() || quote == '`';
            if self.armed.is_some() && self.other.is_none() && !is_apostrophe && (goes_on || quote == '"') {
                if whole.end > whole.start {
                    found.push(whole);
                }
                self.unclosed = goes_on.then_some(mark);
                self.at = self.line.len();
            } else {
                self.at = start;
            }
            self.last = quote;
            return;
        };
        let content = start..start + length;
        let text = &self.line[content.clone()];
        self.at = content.end + mark.len();
        self.quoted.push(content.clone());
        let told = self.name.filter(|name| !name.quoted && name.words == 0 && self.last == 'a' && self.armed.is_none());
        let (depth, weak) = (self.depth, true);
        let told = told.map(|_| Armed { depth, call: false, weak, from_quoted: false });
        let armed = self.armed.filter(|_| self.other.is_none()).or(told);
        let is_lookup = opened_by.is_some_and(is_lookup) && is_plain_name(text);
        let is_word = armed.is_some_and(|armed| armed.weak) && is_words(text);
        if armed.is_some() && !is_lookup && !is_word {
            if !text.is_empty() {
                found.push(content);
            }
        } else {
            inside(text, content.start, found);
            let strength = name_in(text).filter(|_| self.armed.is_none());
            if let Some(strength) = strength {
                self.name = Some(Name { quoted: true, strength, words: 0 });
            }
        }
        self.last = quote;
    }

    /// Returns the state in which the next line begins.
    fn next(&self) -> Mode {
        if let Some(quote) = self.unclosed {
            return Mode::Text(quote);
        }
        let Some(armed) = self.armed else { return Mode::Plain };
        let deep = self.depth - armed.depth;
        let goes_on = matches!(self.last, '=' | '\\' | '+') || (armed.from_quoted && self.last == ':');
        if deep > 0 || goes_on { Mode::Value(deep.clamp(0, 99) as u16) } else { Mode::Plain }
    }
}

/// Returns where a string ends, from its first character on; a backslash escapes the next one.
fn end_of(text: &str, quote: &str) -> Option<usize> {
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote != "`" {
            at += 2;
        } else if text.as_bytes()[at..].starts_with(quote.as_bytes()) {
            return Some(at);
        } else {
            at += 1;
        }
    }
    None
}

/// Returns whether calls use a word to name their value.
fn is_value_name(word: &str) -> bool {
    matches!(word, "value" | "val" | "v" | "default")
}

/// Returns whether a call or a table of this name takes names as arguments.
fn is_lookup(word: &str) -> bool {
    let small = word.to_ascii_lowercase();
    LOOKUPS.iter().any(|part| small.contains(part))
}

/// Returns whether a text is a name without digits.
fn is_plain_name(text: &str) -> bool {
    text.chars().all(|char| char.is_alphabetic() || "_-.".contains(char))
}

/// Returns whether a text is made of words in one case.
fn is_words(text: &str) -> bool {
    let is_word = |word: &str| {
        let letters = || word.chars();
        letters().all(char::is_lowercase)
            || letters().all(char::is_uppercase)
            || letters().skip(1).all(char::is_lowercase)
    };
    let is_letter = |char: char| char.is_alphabetic() || "_-.:/, ".contains(char);
    text.chars().all(is_letter) && text.split(|char: char| !char.is_alphabetic()).all(is_word)
}

/// Returns how surely a word names a secret; None where it does not.
fn strength(word: &str) -> Option<Strength> {
    if word.len() < 2 || word.len() > 100 {
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
    if matches!(small.as_str(), "pw" | "pwd" | "passwd" | "auth" | "basicauth")
        || (small.ends_with("pwd") && small.len() <= 24)
    {
        return Some(Strength::Strong);
    }
    if word.ends_with("_pass") || word.ends_with("_PASS") || word == "PASS" {
        return Some(Strength::Strong);
    }
    let key = ends("key").filter(|before| !before.is_empty())?;
    if KEYS.iter().any(|before| key.ends_with(before)) || (is_upper && word.contains("_KEY")) {
        return Some(Strength::Usual);
    }
    (word.contains("_key") || word.contains("Key")).then_some(Strength::Weak)
}

/// Returns how surely a string names a secret as a field, a header, or an option; None where it does not.
fn name_in(text: &str) -> Option<Strength> {
    let text = text.trim_matches(|char: char| char == '-' || char == ':' || is_blank(char));
    let is_name = text.len() <= 64 && text.chars().all(|char| is_word(char) || char == '-' || char == '.');
    let last = text.rsplit('.').next().unwrap_or(text);
    if is_name { strength(&last.replace('-', "_")) } else { None }
}

/// Finds secrets in a string that is no secret as a whole.
fn inside(text: &str, start: usize, found: &mut Vec<Range<usize>>) {
    for (at, _) in text.match_indices("://") {
        let from = at + 3;
        let authority = text[from..].split(|char: char| "/?#\"' \t".contains(char)).next().unwrap_or_default();
        // A password may hold the signs that end the part before the host.
        let authority = authority.rfind('@').or_else(|| text[from..].split([' ', '"']).next()?.rfind('@'));
        if let Some(end) = authority.filter(|&end| text[from..from + end].contains(':')) {
            found.push(start + from..start + from + end);
        }
    }
    // An account before a host without a scheme: `name:password@host`.
    let account = text.split(|char: char| is_blank(char) || char == '/').next().unwrap_or_default();
    if let (Some(colon), Some(end)) = (account.find(':'), account.rfind('@')) {
        if colon > 0 && colon + 1 < end && !account.starts_with("mailto") && account[..colon].chars().all(is_word) {
            found.push(start..start + end);
        }
    }
    let mut at = 0;
    while let Some(begin) = text[at..].find(is_word).map(|begin| at + begin) {
        let is_part = |char: char| is_word(char) || char == '-';
        let end = text[begin..].find(|char| !is_part(char)).map_or(text.len(), |end| begin + end);
        at = end;
        let name = &text[begin..end];
        let after = text[end..].trim_start_matches(['"', '\'', '\\']).trim_start_matches(is_blank);
        let is_scheme = matches!(name, "Bearer" | "bearer" | "Basic");
        let Some(strength) = strength(&name.replace('-', "_")).or(is_scheme.then_some(Strength::Usual)) else {
            continue;
        };
        let (sign, value) = match after.chars().next() {
            Some(sign @ ('=' | ':')) => (sign, after[1..].trim_start_matches(is_blank)),
            _ if is_scheme && !after.is_empty() => (' ', after),
            _ => continue,
        };
        let value = value.trim_start_matches(['"', '\'', '\\']);
        let from = text.len() - value.len();
        let is_header = name.eq_ignore_ascii_case("authorization");
        let ends = |char: char| "\"'<>".contains(char) || (!is_header && ("&;,|)".contains(char) || is_blank(char)));
        let value = &value[..value.find(ends).unwrap_or(value.len())];
        let is_prose = sign != '=' && strength != Strength::Strong && !is_header && is_words(value);
        let is_told = value.starts_with(['{', '%', '$', '[', '(', '*', '.']) || (sign != '=' && value.len() < 4);
        if !value.is_empty() && !is_told && !is_prose {
            found.push(start + from..start + from + value.len());
            at = from + value.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scanner;

    /// Returns the texts of the secrets.
    fn secrets(text: &str) -> Vec<&str> {
        Scanner::default().ranges(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn a_string_assigned_to_a_name_of_a_secret_is_one() {
        for line in [
            "DB_PASSWORD = \"hunter2\"",
            "password='hunter2'",
            "connect(host, password=\"hunter2\", port=5)",
            "{\"user\": \"bob\", \"password\": \"hunter2\", \"port\": 5}",
            "config[\"db_password\"] = 'hunter2'",
            "API_KEY: str = \"hunter2\"",
            "const apiKey string = \"hunter2\"",
            "let client_secret: &'static str = \"hunter2\";",
            "private static final String ACCESS_TOKEN = \"hunter2\";",
            "STRIPE_KEY = \"hunter2\"",
            "self.token = \"hunter2\"",
            "os.environ[\"AWS_SECRET_ACCESS_KEY\"] = \"hunter2\"",
            "password = SecretStr(\"hunter2\")",
            "set_password(user, \"hunter2\")",
            "headers = {\"Authorization\": \"hunter2\"}",
            "request.header(\"X-Api-Key\", \"hunter2\")",
            "if password == \"hunter2\" {",
            "PASSWORDS = [\"hunter2\"]",
            "token = b\"hunter2\"",
            "password = `hunter2`",
            "DB_PASS = \"hunter2\"",
            "get(url, auth=(None, \"hunter2\"))",
            "#define PASSWORD \"hunter2\"",
            "sql.Open(name, \"root:hunter2@tcp(127.0.0.1)/db\")",
            "url = \"redis://:hunter2@localhost\"",
            "url = \"postgres://bob:hunter2@host/db\"",
            "dsn = \"Server=a;Password=hunter2;\"",
            "get(\"http://host/x?api_key=hunter2&y=1\")",
            "curl -H \"Authorization: Bearer hunter2\"",
        ] {
            let found = secrets(line);
            assert_eq!(found.len(), 1, "{line}: {found:?}");
            assert!(found[0].contains("hunter2"), "{line}: {found:?}");
        }
    }

    #[test]
    fn a_secret_over_several_lines_is_left_out_whole() {
        let left = |text: &str| {
            let mut left = text.to_string();
            for range in Scanner::default().ranges(text).into_iter().rev() {
                left.replace_range(range, "");
            }
            left
        };
        let key = "K = \"\"\"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC\nab+/c=\n-----END RSA PRIVATE KEY-----\"\"\"\nx = 1\n";
        assert_eq!(left(key), "K = \"\"\"\n\n\n\"\"\"\nx = 1\n");
        assert_eq!(left("password = (\n    \"hunter2\"\n)\nx = \"y\"\n"), "password = (\n    \"\"\n)\nx = \"y\"\n");
        assert_eq!(left("SECRET = \"\"\"\nhunter2\n\"\"\"\nx = \"y\"\n"), "SECRET = \"\"\"\n\n\"\"\"\nx = \"y\"\n");
        assert_eq!(left("TOKEN = \\\n    \"hunter2\"\nx = \"y\"\n"), "TOKEN = \\\n    \"\"\nx = \"y\"\n");
        assert_eq!(left("SECRETS = {\n    \"a\": \"b\",\n    \"c\": \"d\",\n}\nx = \"y\"\n").matches('b').count(), 0);
    }

    #[test]
    fn random_strings_are_secrets_under_any_name() {
        for line in [
            "x = \"q8Zr3Vx9Lm2Tn7Bw4Kc6\"",
            "x = \"d41d8cd98f00b204e9800998ecf8427e\"",
            "x = \"550e8400-e29b-41d4-a716-446655440000\"",
            "x = \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\"",
            "x = \"ghp_abcdefGHIJKL1234mnopQRST\"",
            "x = \"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc\"",
            "x = \"xkcdqwmzvbnplrtyhg\"",
            "x = \"Tr0ub4d&r!3xQ#9v$Lm\"",
            "# q8Zr3Vx9Lm2Tn7Bw4Kc6Yp5Hs",
        ] {
            assert_eq!(secrets(line).len(), 1, "{line}: {:?}", secrets(line));
        }
    }

    #[test]
    fn other_strings_are_none() {
        for line in [
            "name = \"hunter2\"",
            "to = \"mailto:bob@example.com\"",
            "Password string `json:\"password\"`",
            "remote = \"git@example.com:a/b.git\"",
            "fields = [\"username\", \"password\", \"email\"]",
            "password = os.environ[\"DB_PASSWORD\"]",
            "token = os.Getenv(\"API_TOKEN\")",
            "password = CharField(label=\"Your words\", max_length=20)",
            "sort_key = \"created_at\"",
            "for row in rows: print(\"a\", row)",
            "fn parse<'a>(text: &'a str) -> &'a str { \"b\" }",
            "raise ValueError(\"Enter a password: \")",
            "x = \"test_user_can_log_in_twice_with_sha256\"",
            "x = \"application/vnd.api+json; charset=utf-8\"",
            "x = \"abcdefghijklmnopqrstuvwxyz0123456789\"",
            "x = \"https://example.com/a/b?c=d\"",
            "ALPHABET = \"0123456789abcdef\"",
            "assertEqualsIgnoringCaseAndWhitespace(one, two)",
            "x = \"^[A-Z][a-z]+([0-9]+)?$\"",
        ] {
            assert_eq!(secrets(line), Vec::<&str>::new(), "{line}");
        }
    }
}
