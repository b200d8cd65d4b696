//! Language definition: its TOML file, and its compiled form with lexemes and BNF rules. Lark lowers the grammar's EBNF
//! on the Python side.

use crate::error::Error;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Name of the lexeme that is the start of a file.
const FILE_START: &str = "{start of file}";

/// A whole language definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LanguageSpec {
    /// The language's name.
    pub name: String,
    /// The start nonterminal.
    pub start: String,
    /// All lexemes, in order of declaration.
    pub lexemes: Vec<LexemeSpec>,
    /// Names of lexemes that are lexed and not passed on to the parser.
    pub ignore: Vec<String>,
    /// Names of lexemes that are read at the first byte of a file alone, before all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_lexemes: Vec<String>,
    /// BNF rules. A symbol is a lexeme's name or a nonterminal's.
    pub rules: Vec<RuleSpec>,
    /// Indentation, for languages that have it.
    #[serde(default)]
    pub layout: Option<LayoutSpec>,
    /// Names of the opening and closing bracket lexemes, pairwise.
    #[serde(default)]
    pub brackets: Vec<(String, String)>,
    /// Modes: which lexemes are read where the parser is.
    #[serde(default)]
    pub modes: Vec<ModeSpec>,
    /// Limits on how deep texts of the language may nest.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// Names of literal lexemes that can also be the next best lexeme of the same length.
    #[serde(default)]
    pub soft_keywords: Vec<String>,
    /// Names of lexemes that are string literals: text inside of them is not code.
    #[serde(default)]
    pub strings: Vec<String>,
    /// Comments among the ignored lexemes. With indentation, the comment of `layout` counts without being named here.
    #[serde(default)]
    pub comments: Vec<CommentSpec>,
    /// Names of symbols that are comments: with a line break in or after them where that is a symbol, or documentation.
    #[serde(default)]
    pub comment_symbols: Vec<String>,
    /// Beginnings and ends of string literals.
    #[serde(default)]
    pub quotes: Vec<String>,
    /// The shortest name or value, such as `x`, for texts that are put together.
    #[serde(default)]
    pub placeholder: Option<String>,
    /// Characters with which operators begin. An operator needs another operand, so it leads away from an end.
    #[serde(default)]
    pub operators: String,
    /// Lines that open a block, or finish one whose end is due.
    #[serde(default)]
    pub block_lines: Vec<BlockLineSpec>,
    /// Texts that open a bracket, such as `x(`.
    #[serde(default)]
    pub openings: Vec<String>,
    /// Names of open constructs for people, the most informative first.
    #[serde(default)]
    pub constructs: Vec<ConstructSpec>,
    /// Marks: lexemes without a pattern for texts that bind or match.
    #[serde(default)]
    pub marks: Vec<MarkSpec>,
    /// Names of nonterminals that are written out for each slot; each entry lists one nonterminal's names, by slot.
    #[serde(default)]
    pub slotted: Vec<Vec<String>>,
}

/// A mark: a lexeme read along with others, where their text is in its slot.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkSpec {
    /// The name of its lexeme.
    pub name: String,
    /// Names of the lexemes with which it is read.
    pub of: Vec<String>,
    /// True if it binds the text; otherwise the text must match the bound one.
    pub binds: bool,
    /// Its slot.
    pub slot: u8,
}

/// A line that opens a block, such as `if x:`, or finishes one whose end is due, such as `except: x`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a text")]
pub struct BlockLineSpec {
    /// The line; it opens a block if it ends with the layout's `block_opener`.
    pub text: String,
    /// Words with which the line after its block begins; if empty, every line may follow.
    #[serde(default)]
    pub before: Vec<String>,
    /// Words with which the lines of its block begin; if empty, every line may be in it.
    #[serde(default)]
    pub holds: Vec<String>,
}

/// A comment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a lexeme and a prefix")]
pub struct CommentSpec {
    /// The name of its lexeme, an ignored one.
    pub lexeme: String,
    /// Beginning of the comment.
    pub prefix: String,
    /// End of the comment; without one, it ends with its line.
    #[serde(default)]
    pub suffix: Option<String>,
}

/// One lexeme: exactly one of `literal`, `pattern` and neither (produced by the layout stage).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LexemeSpec {
    /// The lexeme's name.
    pub name: String,
    /// Text that matches literally.
    #[serde(default)]
    pub literal: Option<String>,
    /// Regular expression in `regex-syntax`'s dialect, without look-around.
    #[serde(default)]
    pub pattern: Option<String>,
    /// Larger wins among patterns of one match length; literals win over patterns.
    #[serde(default)]
    pub priority: i32,
    /// Texts of the lexeme for people, where it has few.
    #[serde(default)]
    pub shown: Vec<String>,
}

/// Limits on nesting. Deeper texts are not in the language.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table of numbers")]
pub struct LimitsSpec {
    /// Most brackets open at once.
    pub brackets: u32,
    /// Most blocks open at once, by their indentation.
    pub blocks: u32,
}

impl Default for LimitsSpec {
    fn default() -> Self {
        Self { brackets: u32::MAX, blocks: u32::MAX }
    }
}

/// A mode of the lexer. It is in force where the parser can take one of its lexemes; with layout only the first such
/// mode is. Where there is none, the lexemes outside all modes are read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a name and lexemes")]
pub struct ModeSpec {
    /// The mode's name.
    pub name: String,
    /// Names of its own lexemes.
    pub lexemes: Vec<String>,
    /// True if the lexemes outside all modes are read as well.
    #[serde(default)]
    pub code: bool,
    /// Names of lexemes outside all modes that are not read nevertheless.
    #[serde(default)]
    pub without: Vec<String>,
    /// Names of its own lexemes that open a bracket.
    #[serde(default)]
    pub open: Vec<String>,
    /// Names of its own lexemes that close a bracket.
    #[serde(default)]
    pub close: Vec<String>,
    /// True if the mode stands for mode 0 where it reads all of its lexemes that can come; reading both is the plain
    /// way, to test the other against.
    #[serde(default = "yes")]
    pub covers: bool,
}

/// A name for a construct around a cursor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstructSpec {
    /// The nonterminal; of one made from a template, the template's name.
    pub rule: String,
    /// The lexeme of its expansion that must have been read. If it is a bracket, it must also be open.
    #[serde(default)]
    pub lexeme: Option<String>,
    /// The name.
    pub name: String,
}

/// One BNF rule.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RuleSpec {
    /// The nonterminal.
    pub lhs: String,
    /// Its expansion; may be empty.
    pub rhs: Vec<String>,
}

/// The indentation rule: which lexemes the layout stage reads and makes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct LayoutSpec {
    /// The newline lexeme; significant at the end of a logical line outside brackets.
    pub newline: String,
    /// The lexeme made where a block opens.
    pub indent: String,
    /// The lexeme made where a block closes.
    pub dedent: String,
    /// Blanks between symbols.
    pub blank: String,
    /// Comments up to the end of the line.
    pub comment: String,
    /// Backslash and newline.
    #[serde(default)]
    pub join: Option<String>,
    /// End of a line that opens a block.
    #[serde(default)]
    pub block_opener: Option<String>,
    /// Indentation of a new block where nothing fixes it. Unit: columns.
    #[serde(default = "step")]
    pub step: u32,
    /// True if unknown columns are taken in classes; each by itself is the plain way to do it, to test the other against.
    #[serde(default = "yes")]
    pub column_classes: bool,
}

fn step() -> u32 {
    4
}

fn yes() -> bool {
    true
}

/// A language's TOML file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "says which keys there are, and of which types; the Python side reads them")]
struct DefinitionFile {
    name: String,
    suffixes: Vec<String>,
    start: String,
    reference: Option<String>,
    #[serde(default)]
    soft_keywords: Vec<String>,
    #[serde(default)]
    error_lexemes: Vec<String>,
    #[serde(default)]
    first_lexemes: Vec<String>,
    #[serde(default)]
    brackets: Vec<(Text, Text)>,
    /// Lexemes that may also be read as several others in sequence. The grammar received here has them in its rules.
    #[serde(default)]
    split: BTreeMap<String, Vec<Text>>,
    /// Texts that have to come again. The grammar received here has marks for them.
    matched: Option<MatchedFile>,
    #[serde(default)]
    strings: Vec<String>,
    #[serde(default)]
    comments: Vec<CommentSpec>,
    #[serde(default)]
    comment_symbols: Vec<String>,
    #[serde(default)]
    quotes: Vec<Text>,
    placeholder: Option<Text>,
    operators: Option<String>,
    closers: Option<String>,
    #[serde(default)]
    block_lines: Vec<BlockLineSpec>,
    #[serde(default)]
    openings: Vec<Text>,
    #[serde(default)]
    modes: Vec<ModeSpec>,
    /// Read before the other keys, by the part that narrows a definition to a version.
    versions: Option<Value>,
    #[serde(default)]
    constructs: BTreeMap<String, String>,
    #[serde(default)]
    shown: BTreeMap<String, Vec<Text>>,
    #[serde(default)]
    limits: LimitsSpec,
    layout: Option<LayoutSpec>,
    #[serde(default)]
    recovery: RecoveryFile,
}

/// Rules that bind a text, and rules in which it comes again.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a symbol and two lists of rules")]
#[expect(dead_code, reason = "says which keys there are, and of which types; the Python side reads them")]
struct MatchedFile {
    symbol: String,
    binds: Vec<String>,
    matches: Vec<String>,
}

/// Texts in place of lines that are left out, and between two texts that have to meet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table of lists of texts")]
struct RecoveryFile {
    stand_ins: Vec<Text>,
    joints: Vec<Text>,
    headers: Vec<Text>,
}

/// A text of at least one character.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
#[expect(dead_code, reason = "only its type is asked for")]
struct Text(String);

impl TryFrom<String> for Text {
    type Error = serde_json::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.is_empty() { Err(serde_json::Error::custom("a text must not be empty")) } else { Ok(Self(text)) }
    }
}

/// Check the keys of a language's TOML file and their types; the file comes as JSON.
///
/// # Errors
/// The path of the first key that is unknown, missing or invalid.
pub fn check_definition(json: &str) -> Result<(), Error> {
    let mut file: Value =
        serde_json::from_str(json).map_err(|error| Error::language(format!("language definition: {error}")))?;
    let name = file.get("name").and_then(Value::as_str).unwrap_or("(without a name)").to_string();
    if let Some(layout) = file.get_mut("layout").and_then(Value::as_object_mut) {
        match layout.remove("rule").as_ref().map(|rule| (rule, rule.as_str())) {
            None | Some((_, Some("indent"))) => {}
            Some((_, Some("none"))) => file["layout"] = Value::Null,
            Some((rule, _)) => {
                return Err(Error::language(format!(
                    "language {name}: layout.rule: unknown rule {rule}, expected \"indent\" or \"none\""
                )));
            }
        }
    }
    match serde_path_to_error::deserialize::<_, DefinitionFile>(file) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::language(format!("language {name}: {}", at_path(&error)))),
    }
}

/// An error that begins with the path to its key, unless the key is at the top.
fn at_path(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    match error.path().to_string() {
        path if path == "." => error.inner().to_string(),
        path => format!("{path}: {}", error.inner()),
    }
}

impl LanguageSpec {
    /// Read a definition from JSON.
    ///
    /// # Errors
    /// The flaw, with its path.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let spec = serde_path_to_error::deserialize(&mut reader).map_err(|error| at_path(&error));
        let spec = spec.and_then(|spec| reader.end().map(|()| spec).map_err(|error| error.to_string()));
        let spec: Self = spec.map_err(|message| Error::language(format!("language definition: {message}")))?;
        Ok(spec.with_file_start())
    }

    /// This definition with a lexeme for the start of a file, if it has lexemes that stand there.
    #[must_use]
    pub fn with_file_start(mut self) -> Self {
        if !self.first_lexemes.is_empty() && self.file_start().is_none() {
            let name = FILE_START.to_string();
            self.lexemes.push(LexemeSpec { name, literal: None, pattern: None, priority: 0, shown: Vec::new() });
        }
        self
    }

    /// The place of that lexeme.
    #[must_use]
    pub fn file_start(&self) -> Option<usize> {
        let place = || self.lexemes.iter().position(|lexeme| lexeme.name == FILE_START);
        if self.first_lexemes.is_empty() { None } else { place() }
    }
}
