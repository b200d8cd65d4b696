//! A language definition as the Python side hands it over: lexemes and BNF rules, lowered from Lark EBNF by Lark.

use serde::{Deserialize, Serialize};

/// A whole language definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LanguageSpec {
    /// The language's name.
    pub name: String,
    /// The start nonterminal.
    pub start: String,
    /// All lexemes, in order of declaration.
    pub lexemes: Vec<LexemeSpec>,
    /// Names of the lexemes that are lexed and not passed on to the parser.
    pub ignore: Vec<String>,
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
    /// How deep texts of the language may nest.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// Names of literal lexemes that are also whatever the next best lexeme of the same length is.
    #[serde(default)]
    pub soft_keywords: Vec<String>,
    /// Names of the lexemes that are string literals: what is written inside of them is not code.
    #[serde(default)]
    pub strings: Vec<String>,
    /// Lines that open a block, or finish one whose end is owed.
    #[serde(default)]
    pub block_lines: Vec<BlockLineSpec>,
    /// Texts that open a bracket, such as `x(`.
    #[serde(default)]
    pub openings: Vec<String>,
    /// What people are told is open, the most telling first.
    #[serde(default)]
    pub constructs: Vec<ConstructSpec>,
}

/// A line that opens a block, such as `if x:`, or finishes one whose end is still owed, such as `except: x`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockLineSpec {
    /// The line; it opens a block if it ends with a colon.
    pub text: String,
    /// Words of which the line after its block begins with one; without any, every line may follow.
    #[serde(default)]
    pub before: Vec<String>,
    /// Words of which the lines of its block begin with one; without any, every line may be in it.
    #[serde(default)]
    pub holds: Vec<String>,
}

/// One lexeme: exactly one of `literal`, `pattern` and neither (produced by the layout stage).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LexemeSpec {
    /// The lexeme's name.
    pub name: String,
    /// Text matched as it stands.
    #[serde(default)]
    pub literal: Option<String>,
    /// Regular expression in `regex-syntax`'s dialect, without look-around.
    #[serde(default)]
    pub pattern: Option<String>,
    /// Larger wins among patterns of one match length; literals win over patterns.
    #[serde(default)]
    pub priority: i32,
}

/// How deep texts of a language may nest; deeper ones are not in it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSpec {
    /// Brackets that are open at once.
    pub brackets: u32,
    /// Blocks that are open at once, by their indentation.
    pub blocks: u32,
}

impl Default for LimitsSpec {
    fn default() -> Self {
        Self { brackets: u32::MAX, blocks: u32::MAX }
    }
}

/// A mode of the lexer. The first one of which the parser can take a lexeme is in force; where there is none, the lexemes are
/// read that are in no mode.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeSpec {
    /// The mode's name.
    pub name: String,
    /// Names of its own lexemes.
    pub lexemes: Vec<String>,
    /// Whether the lexemes that are in no mode are read as well.
    #[serde(default)]
    pub code: bool,
    /// Names of the lexemes in no mode that are not read nevertheless.
    #[serde(default)]
    pub without: Vec<String>,
    /// Names of its own lexemes that open a bracket.
    #[serde(default)]
    pub open: Vec<String>,
    /// Names of its own lexemes that close a bracket.
    #[serde(default)]
    pub close: Vec<String>,
}

/// A name for a construct that a cursor can be inside of.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstructSpec {
    /// The nonterminal; of one made from a template, the template's name.
    pub rule: String,
    /// The lexeme of its expansion that must have been read; a bracket must not be closed either.
    #[serde(default)]
    pub lexeme: Option<String>,
    /// What it is called.
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
    /// Whether unknown columns are taken in classes; each by itself is the plain way to do it, to test the other against.
    #[serde(default = "yes")]
    pub column_classes: bool,
}

fn yes() -> bool {
    true
}
