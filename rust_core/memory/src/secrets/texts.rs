//! Secrets in texts: in strings that hold more than a secret, in comments, in commands, and in settings without quotes.

use crate::lexemes::{is_blank, is_word};
use crate::secrets::names::{Strength, holds_name, is_sure, is_value_name, may_name, name_in, strength};
use std::ops::Range;

/// Commands and their options before a password: in one word with it, or in the word before it.
const COMMANDS: [(&str, &[&str], &[&str]); 22] = [
    ("mysql", &["-p"], &[]),
    ("mysqldump", &["-p"], &[]),
    ("mysqladmin", &["-p"], &[]),
    ("mysqlimport", &["-p"], &[]),
    ("mariadb", &["-p"], &[]),
    ("mariadb-dump", &["-p"], &[]),
    ("curl", &["-u"], &["-u", "--user", "-U", "--proxy-user"]),
    ("http", &[], &["-a"]),
    ("sshpass", &["-p"], &["-p"]),
    ("redis-cli", &[], &["-a"]),
    ("login", &[], &["-p"]),
    ("mongo", &[], &["-p"]),
    ("mongosh", &[], &["-p"]),
    ("mongodump", &[], &["-p"]),
    ("cqlsh", &[], &["-p"]),
    ("ldapsearch", &[], &["-w"]),
    ("ldapmodify", &[], &["-w"]),
    ("smbclient", &[], &["-U"]),
    ("sqlcmd", &[], &["-P"]),
    ("zip", &[], &["-P"]),
    ("unzip", &[], &["-P"]),
    ("7z", &["-p"], &[]),
];

/// Addresses that end with a secret.
const HOOKS: [&str; 7] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "outlook.office.com/webhook/",
    "webhook.office.com/webhookb2/",
    "api.telegram.org/bot",
];

/// Parameters of addresses that hold a secret.
const PARAMETERS: [&str; 5] = ["key", "sig", "signature", "x-amz-signature", "code"];

/// Names of types and values without quotes after a name.
const TYPES: [&str; 24] = [
    "any", "bool", "boolean", "byte", "bytes", "char", "complex", "false", "float", "int", "nil", "none", "null",
    "number", "object", "optional", "str", "string", "text", "true", "type", "uint", "usize", "uuid",
];

/// Bytes between a secret's name and the sign before its value in prose.
const TOLD_BYTES: usize = 40;

/// Words between a secret's name and its value in prose.
const TELLING: [&str; 3] = ["is", "was", "->"];

/// Return whether a text is made of words in one case.
pub(crate) fn is_words(text: &str) -> bool {
    let is_word = |word: &str| {
        let letters = || word.chars();
        letters().all(char::is_lowercase)
            || letters().all(char::is_uppercase)
            || letters().skip(1).all(char::is_lowercase)
    };
    let is_letter = |char: char| char.is_alphabetic() || "_-.:/, ".contains(char);
    text.chars().all(is_letter) && text.split(|char: char| !char.is_alphabetic()).all(is_word)
}

/// Return whether a value stands for another one, as variables and placeholders do.
fn is_told(value: &str) -> bool {
    value.starts_with(['{', '%', '$', '[', '(', '*', '.', '<'])
}

/// Find secrets in a string that is no secret as a whole, and in a comment.
pub(crate) fn inside(text: &str, start: usize, found: &mut Vec<Range<usize>>) {
    // An account before a host without a scheme: `name:password@host`.
    let account = text.split(|char: char| is_blank(char) || char == '/').next().unwrap_or_default();
    if let (Some(colon), Some(end)) = (account.find(':'), account.rfind('@')) {
        if colon > 0 && colon + 1 < end && !account.starts_with("mailto") && account[..colon].chars().all(is_word) {
            found.push(start..start + end);
        }
    }
    if !may_name(text) && !text.contains("Basic") {
        return;
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
        let is_whole = begin == 0 && sign != '=' && name != "Basic" && !value.contains(is_blank) && !holds_name(value);
        let value = &value[..value.find(ends).unwrap_or(value.len())];
        let is_prose = sign != '=' && strength != Strength::Strong && !is_header && !is_whole && is_words(value);
        if !value.is_empty() && !is_told(value) && !is_prose && (sign == '=' || value.len() >= 4) {
            found.push(start + from..start + from + value.len());
            at = from + value.len();
        }
    }
    if let Some((name, end)) = names(text).next() {
        mixed(text, start, found);
        let value = told_value(&name, &text[end..]).map(|value| end + value.start..end + value.end);
        let has_digit = |value: &Range<usize>| text[value.clone()].bytes().any(|byte| byte.is_ascii_digit());
        if let Some(value) = value.filter(|value| has_digit(value) && !text[value.clone()].contains(is_blank)) {
            found.push(start + value.start..start + value.end);
        }
    }
}

/// Find secrets in the addresses of a text: accounts, parameters, and hooks.
fn addresses(text: &str, start: usize, found: &mut Vec<Range<usize>>) {
    for (at, _) in text.match_indices("://") {
        let from = at + 3;
        let authority = text[from..].split(|char: char| "/?#\"' \t".contains(char)).next().unwrap_or_default();
        // A password may hold the signs that end the part before the host.
        let authority = authority.rfind('@').or_else(|| text[from..].split([' ', '"']).next()?.rfind('@'));
        if let Some(end) = authority.filter(|&end| text[from..from + end].contains(':')) {
            found.push(start + from..start + from + end);
        }
        let rest =
            text[from..].split(|char: char| is_blank(char) || "\"'<>`".contains(char)).next().unwrap_or_default();
        for (sign, _) in rest.match_indices(['?', '&']) {
            let Some((name, value)) = rest[sign + 1..].split('&').next().unwrap_or_default().split_once('=') else {
                continue;
            };
            let begin = start + from + sign + 1 + name.len() + 1;
            if PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) && !value.is_empty() && !is_told(value) {
                found.push(begin..begin + value.len());
            }
        }
    }
    for hook in HOOKS.iter().filter(|_| text.contains(".com/") || text.contains(".org/")) {
        for (at, _) in text.match_indices(hook) {
            let from = at + hook.len();
            let end = text[from..].find(|char: char| is_blank(char) || "\"'<>`),".contains(char));
            let end = end.map_or(text.len(), |end| from + end);
            if end > from && !is_told(&text[from..]) {
                found.push(start + from..start + end);
            }
        }
    }
}

/// Find secrets between tags: `<password>value</password>`.
fn elements(text: &str, start: usize, found: &mut Vec<Range<usize>>) {
    for (end, _) in text.match_indices("</").filter(|_| may_name(text)) {
        let Some(from) = text[..end].rfind('>').map(|at| at + 1) else { continue };
        let tag = text[..from - 1].rfind('<').map_or("", |at| &text[at + 1..from - 1]);
        if from < end && is_sure(tag.split(is_blank).next().unwrap_or_default()) && !is_told(&text[from..]) {
            found.push(start + from..start + end);
        }
    }
}

/// Return the names of secrets in prose, `API key` among them, with the places where they end.
pub(crate) fn names(text: &str) -> impl Iterator<Item = (String, usize)> {
    let is_part = |char: char| is_word(char) || char == '-';
    let mut at = if may_name(text) { 0 } else { text.len() };
    let mut before = "";
    std::iter::from_fn(move || {
        loop {
            let begin = at + text[at..].find(is_part)?;
            let end = text[begin..].find(|char| !is_part(char)).map_or(text.len(), |end| begin + end);
            let word = &text[begin..end];
            let is_key = word.eq_ignore_ascii_case("key") && text[at..begin] == *" ";
            let is_pass = before.is_empty() && word.eq_ignore_ascii_case("pass") && text[end..].starts_with(':');
            let first = std::mem::replace(&mut before, word);
            at = end;
            if !may_name(word) || word.ends_with("-pass") {
                continue;
            }
            let name = if is_key { format!("{first}_{word}") } else { word.to_string() }.replace('-', "_");
            if is_pass || is_sure(&name) {
                return Some((if is_pass { "password".to_string() } else { name }, end));
            }
        }
    })
}

/// Return whether a text has a place for a secret behind its name: `password=%s`.
pub(crate) fn has_place(text: &str) -> bool {
    names(text).any(|(_, end)| {
        let value = text[end..].strip_prefix([':', '=']).map(|value| value.trim_start_matches(is_blank));
        &text[end..] == "=" || value.is_some_and(|value| value.starts_with(['%', '{']))
    })
}

/// Return the value that prose tells behind a secret's name: after a sign, or after `is`.
fn told_value(name: &str, after: &str) -> Option<Range<usize>> {
    let bare = after.trim_start_matches(|char: char| is_blank(char) || "\"'`".contains(char));
    let is_strong = strength(name) == Some(Strength::Strong);
    let signed = bare.strip_prefix([':', '=']).filter(|rest| !rest.starts_with([':', '=']));
    // A sentence about a token is none about its value.
    let said = TELLING.iter().find_map(|word| bare.strip_prefix(word).filter(|rest| rest.starts_with(is_blank)));
    let said = said.filter(|value| is_strong || !value.trim().contains(is_blank));
    let next = (is_strong && bare.starts_with(is_word) && !bare.trim_end().contains(is_blank)).then_some(bare);
    // The sign may follow some words: `password for the database: value`.
    let head = bare.get(..TOLD_BYTES).unwrap_or(bare);
    let later = [": ", " is ", " = "].iter().filter_map(|sign| head.find(sign).map(|at| &bare[at + sign.len()..]));
    let later = later.max_by_key(|value| value.len()).filter(|value| is_strong || !value.trim().contains(is_blank));
    let value = signed.or(said).or(next).or(later)?.trim_start_matches(is_blank).trim_end();
    let value = value.trim_end_matches("*/").trim_end_matches("-->").trim_end();
    let start = after.rfind(value)?;
    (!value.is_empty()).then_some(start..start + value.len())
}

/// Find secrets in a comment: what it says of a secret's name, and mixed words beside one.
pub(crate) fn comment(text: &str, start: usize, found: &mut Vec<Range<usize>>) {
    inside(text, start, found);
    for (name, end) in names(text) {
        if let Some(value) = told_value(&name, &text[end..]) {
            found.push(start + end + value.start..start + end + value.end);
            break;
        }
    }
}

/// Find words of letters and digits as in keys, in a text that names a secret.
fn mixed(text: &str, start: usize, found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(begin) = text[at..].find(is_word).map(|begin| at + begin) {
        let end = text[begin..].find(|char| !is_word(char)).map_or(text.len(), |end| begin + end);
        let word = &text[begin..end];
        at = end;
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
        if word.len() >= 8 && digits >= 2 && letters >= 2 {
            found.push(start + begin..start + end);
        }
    }
}

/// Find the passwords of commands in a line, in strings or not.
pub(crate) fn commands(line: &str, found: &mut Vec<Range<usize>>) {
    addresses(line, 0, found);
    elements(line, 0, found);
    databases(line, found);
    if !line.starts_with('-') && ![" -", "\"-", "'-", "\t-"].iter().any(|option| line.contains(option)) {
        return;
    }
    let mut options: Option<(&[&str], &[&str])> = None;
    let (mut expected, mut set) = (false, false);
    let mut at = 0;
    for word in line.split(is_blank) {
        let bare = word.trim_matches(|char: char| "\"'`,;[](){}".contains(char));
        let from = at + word.find(bare).unwrap_or_default();
        at += word.len() + 1;
        if bare.is_empty() {
            continue;
        }
        let mut hide = |value: &str| {
            if !value.is_empty() && !is_told(value) {
                let from = from + bare.len() - value.len();
                found.push(from..from + value.len());
            }
        };
        if std::mem::take(&mut expected) && !bare.starts_with('-') {
            hide(bare);
            continue;
        }
        if let Some((joined, split)) = options {
            expected = split.contains(&bare);
            if let Some(value) = joined.iter().find_map(|option| bare.strip_prefix(option)).filter(|_| !expected) {
                hide(value);
            }
        }
        if bare.starts_with('-') {
            let (name, value) = bare.rsplit_once('=').unwrap_or((bare, ""));
            let name = name.rsplit('=').next().unwrap_or(name);
            if name_in(name).is_some_and(|strength| strength != Strength::Weak) {
                hide(value);
                // In code, other arguments follow the option's string.
                expected |= value.is_empty() && !bare.contains('=') && word.ends_with(bare);
            }
        }
        let setting = bare.split_once('=').filter(|_| set && bare == word);
        if let Some((_, value)) = setting.filter(|(name, _)| name_in(name).is_some()) {
            hide(value);
        }
        set = bare.starts_with('-') && !bare.contains('=');
        let command = bare.rsplit(|char| "/\"'`([{=$".contains(char)).next().unwrap_or(bare);
        if let Some((_, joined, split)) = COMMANDS.iter().find(|one| one.0 == command) {
            options = Some((joined, split));
        }
    }
}

/// Find the passwords that statements of databases set: `IDENTIFIED BY 'password'`.
fn databases(line: &str, found: &mut Vec<Range<usize>>) {
    if !may_name(line) && !line.contains("dentified") && !line.contains("DENTIFIED") {
        return;
    }
    let small = line.to_ascii_lowercase();
    for (at, name) in small.match_indices("identified").chain(small.match_indices("password")) {
        let mut from = at + name.len();
        if name == "identified" {
            let Some(by) = small[from..].find(" by ").or_else(|| small[from..].find(" as ")) else { continue };
            from += by + 4;
        }
        let rest = line[from..].trim_start_matches(is_blank).trim_start_matches('\\');
        let Some(quote) = rest.chars().next().filter(|char| matches!(char, '\'' | '"')) else { continue };
        let is_apart = name == "identified" || line[from..].starts_with(is_blank);
        let from = line.len() - rest.len() + 1;
        let value = line[from..].split([quote, '\\']).next().unwrap_or_default();
        if is_apart && !value.is_empty() && !is_told(value) {
            found.push(from..from + value.len());
        }
    }
}

/// Find the value of a setting without quotes, which is a line's only word: `DB_PASSWORD=value`. `beside`: the line
/// follows one with a secret's name.
pub(crate) fn setting(line: &str, beside: bool, found: &mut Vec<Range<usize>>) {
    let bare = line.trim().trim_start_matches("- ");
    let bare =
        ["export ", "set ", "ENV ", "ARG ", "env "].iter().find_map(|word| bare.strip_prefix(word)).unwrap_or(bare);
    let Some(end) = bare.find(|char| !(is_word(char) || char == '-' || char == '.')) else { return };
    let (name, after) = bare.split_at(end);
    let Some(value) = after.trim_start_matches(is_blank).strip_prefix([':', '=']) else { return };
    if !beside && !may_name(name) {
        return;
    }
    let joined = after.starts_with('=') && !value.starts_with(is_blank);
    let sign = after.trim_start_matches(is_blank).starts_with(':');
    let is_upper = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let whole = value.trim();
    let value = if joined && is_upper { whole.split(is_blank).next().unwrap_or_default() } else { whole };
    let is_value = value.len() >= 4 && value.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_value || is_told(value) || value.contains(|char| "\"'`()[]{},;".contains(char)) || holds_name(value) {
        return;
    }
    let is_beside = beside && is_value_name(name);
    let is_named = is_sure(&name.replace(['-', '.'], "_"));
    if !is_beside && !is_named {
        return;
    }
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let is_type =
        TYPES.contains(&value.trim_end_matches(|char: char| char.is_ascii_digit()).to_ascii_lowercase().as_str());
    let is_number = value.starts_with("0x") || !value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_setting = (sign || joined) && value.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_value = (is_upper && joined) || has_digit || is_setting;
    if is_beside || (!is_type && !is_number && is_value) {
        let from = line.trim_end().len() - whole.len();
        found.push(from..from + value.len());
    }
}
