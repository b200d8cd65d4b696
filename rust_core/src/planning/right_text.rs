//! Facts that searches read off R's text: the columns to which its lines return, and their first words.

use crate::language::spelling::Spelling;
use crate::lexing::layout::Column;
use crate::limits;

/// Lines of R, from the second on, that are indented less than all before them: column and first word.
pub(super) fn returns(spelling: &Spelling, text: &[u8]) -> Vec<(Column, Box<[u8]>)> {
    let mut found: Vec<(Column, Box<[u8]>)> = Vec::new();
    for line in text.split(|&byte| byte == b'\n').skip(1) {
        let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let (blanks, rest) = line.split_at(blanks);
        if rest.first().is_none_or(|&byte| byte.is_ascii_whitespace()) || spelling.begins_comment(rest) {
            continue;
        }
        let column = Column::ZERO.after_all(blanks);
        if found.last().is_none_or(|last| column.wide < last.0.wide) {
            found.push((column, first_word(rest).into()));
        }
        if column == Column::ZERO || found.len() == limits::SCAFFOLD_DEPTH {
            break;
        }
    }
    found
}

/// Letters and digits with which a text begins.
pub(super) fn first_word(text: &[u8]) -> &[u8] {
    let length = text.iter().take_while(|&&byte| byte < 0x80 && is_word(byte)).count();
    &text[..length]
}

/// Return whether a byte belongs to names, numbers and keywords.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
