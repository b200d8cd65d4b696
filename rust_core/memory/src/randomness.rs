//! Detection of texts that look random: keys, tokens, hashes, and generated passwords.

use std::ops::Range;

/// Fewest characters of a string, or of a run without blanks, that may look random.
const LEAST_RANDOM: usize = 16;

/// Fewest hexadecimal digits that count as a key, even if parts of them are regular.
const LEAST_KEY: usize = 32;

/// Fewest characters of a text outside of quotes that may look random.
const LEAST_UNQUOTED: usize = 24;

/// Fewest usual pairs of letters, of a hundred, in words; random letters have 30.
const COMMON: usize = 56;

/// The 220 commonest pairs of letters in the words of 1,500 Python modules.
const PAIRS: &str = "erinonteretiatesenstorledentiocosealedarliraroetmeanngtatrriecceitnemaicacndaspeisnscttofidisiex\
    napaprcalagevelossunelamoueanccholrspoilurrtodemutthkehempnoomidtyadsotslldaplniepimigapbaulabck\
    rrvaochaefttotblmomiiaspypgrsuscfoopeeagclaiieptnfrmvircusltosumiruelytuholuqushdoevuptcfapiipci\
    hicrooegbeivsaowbuppifibubxtryrdwarnlsffcunngirgfeizboruaudsnvayldewbigaxpzeguuaddoggstpcceqdunu\
    fumutlobpywioveixeebflpspurksymmeyysofmsrvucixokdloiytki";

/// Beginnings of tokens of known services, which no other word has.
const ISSUED: [&str; 42] = [
    "AIza",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glptt-",
    "sk-ant-",
    "sk-proj-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "pk_live_",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "ya29.",
    "whsec_",
    "shpat_",
    "shpca_",
    "shppa_",
    "shpss_",
    "dop_v1_",
    "doo_v1_",
    "dckr_pat_",
    "lin_api_",
    "figd_",
    "PMAK-",
    "sq0atp-",
    "sq0csp-",
    "hvs.",
    "hvb.",
    "AGE-SECRET-KEY-",
];

/// Beginnings that other words have as well: a digit must follow, or, after `sk-`, characters that are no known word.
const PERHAPS: [&str; 8] = ["sk-", "npm_", "pypi-", "hf_", "AKIA", "ASIA", "SG.", "rubygems_"];

/// Fewest characters after such a beginning.
const LEAST_ISSUED: usize = 4;

/// Collect the runs of a line's characters that look random.
pub(crate) fn runs(line: &str, quoted: &[Range<usize>], found: &mut Vec<Range<usize>>) {
    let is_part = |char: char| char.is_ascii_alphanumeric() || "+/=_-.~".contains(char);
    let mut at = 0;
    while let Some(begin) = line[at..].find(is_part).map(|begin| at + begin) {
        let end = line[begin..].find(|char| !is_part(char)).map_or(line.len(), |end| begin + end);
        at = end;
        let run = &line[begin..end];
        let is_quoted = quoted.iter().any(|range| range.start <= begin && end <= range.end);
        let least = if is_quoted { LEAST_RANDOM } else { LEAST_UNQUOTED };
        if run.split(['=', '/']).any(is_issued) || (run.len() >= least && is_random(run)) {
            found.push(begin..end);
        }
    }
    for range in quoted {
        let text = &line[range.clone()];
        if text.len() >= LEAST_RANDOM && is_mixed(text) {
            found.push(range.clone());
        }
    }
}

/// Return whether a known service has issued a run as a token.
fn is_issued(run: &str) -> bool {
    let run = run.trim_start_matches(['.', '~']);
    let is_candidate = run.starts_with(|char| "gskrpxwydlfhenPASE".contains(char));
    if run.len() < 7 || !is_candidate || !run.contains(['_', '-', '.', 'A']) {
        return false;
    }
    let is_web_token = run.starts_with("eyJ") && run.len() > 30 && run.contains('.');
    let rest_of = |start: &str| run.strip_prefix(start).filter(|rest| rest.len() >= LEAST_ISSUED);
    let perhaps = |start: &&str| {
        rest_of(start).is_some_and(|rest| {
            let is_word = rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            rest.bytes().any(|byte| byte.is_ascii_digit()) || (*start == "sk-" && !(is_word && rest.contains("learn")))
        })
    };
    is_web_token || ISSUED.iter().any(|start| rest_of(start).is_some()) || PERHAPS.iter().any(perhaps)
}

/// Return whether a run of letters, digits and some signs looks random.
fn is_random(run: &str) -> bool {
    let text = run.trim_matches(|char: char| "=./-_~+".contains(char));
    let count = |of: fn(&u8) -> bool| text.bytes().filter(of).count();
    let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    let hex = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if is_hex && hex.len() >= LEAST_KEY && letters > 0 && distinct(hex) >= 6 {
        return true;
    }
    if text.len() < LEAST_RANDOM || distinct(text) < 8 || is_alphabet(text) {
        return false;
    }
    if is_hex && digits >= 2 && letters >= 2 && count(u8::is_ascii_hexdigit) >= LEAST_RANDOM {
        return true;
    }
    if letters == 0 {
        return false;
    }
    let (mixed, cased) = changes(text);
    // A third of random letters and digits change their kind, and half of random letters their case.
    let length = (digits + letters) as f64;
    (digits >= 2 && mixed as f64 >= 0.14 * length) || (mixed + cased) as f64 >= 0.25 * length || is_unspeakable(text)
}

/// Count changes between letters and digits, and from a small letter to a capital. The last change of a word does not
/// count: `sha256` is a word.
fn changes(text: &str) -> (usize, usize) {
    let (mut mixed, mut cased) = (0, 0);
    for word in text.split(|char: char| !char.is_ascii_alphanumeric()) {
        let pairs = word.as_bytes().windows(2);
        let changes = |pair: &&[u8]| pair[0].is_ascii_digit() != pair[1].is_ascii_digit();
        mixed += pairs.clone().filter(changes).count().saturating_sub(1);
        cased += pairs.filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
    }
    (mixed, cased)
}

/// Return whether the letters of a text follow each other as they hardly do in words.
fn is_unspeakable(text: &str) -> bool {
    let (mut pairs, mut common) = (0, 0);
    for pair in text.as_bytes().windows(2).filter(|pair| pair.iter().all(u8::is_ascii_alphabetic)) {
        let pair = [pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase()];
        pairs += 1;
        common += usize::from(PAIRS.as_bytes().chunks(2).any(|one| one == pair));
    }
    pairs >= 12 && 100 * common < COMMON * pairs
}

/// Return whether a string without blanks mixes letters, digits and signs as a generated password does.
fn is_mixed(text: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    // Patterns, formats, paths and calls mix them, too.
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains(|char| "\\()[]{}|<>:/?".contains(char)) {
        return false;
    }
    let mut counts = [0usize; 4];
    text.bytes().for_each(|byte| counts[kind(byte)] += 1);
    let turns = text.as_bytes().windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    counts.iter().filter(|&&count| count > 1).count() >= 3 && 2 * turns >= text.len() && distinct(text) >= 10
}

fn distinct(text: &str) -> usize {
    let mut seen = 0u128;
    text.bytes().for_each(|byte| seen |= 1 << (byte & 127));
    seen.count_ones() as usize
}

/// Return whether characters mostly follow each other as in the alphabet.
fn is_alphabet(text: &str) -> bool {
    let pairs = text.as_bytes().windows(2);
    2 * pairs.filter(|pair| pair[0].wrapping_add(1) == pair[1]).count() > text.len()
}
