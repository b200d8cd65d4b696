//! Token healing: tokens that rewrite a given text before they go on with new bytes.

use crate::bits;
use crate::masking::plain::Recognizer;
use crate::masking::trie::TrieNode;
use crate::masking::vocabulary::Vocabulary;
use crate::stop::poll;

/// Fill a packed mask with the tokens with which a healed middle can begin. `recognizer` continues after the text;
/// `rewritable` is [`rewritable`] of the text.
///
/// # Panics
/// If `rewritable` is not one longer than the text.
pub(crate) fn fill_mask(
    recognizer: &mut impl Recognizer,
    text: &[u8],
    rewritable: &[bool],
    vocabulary: &Vocabulary,
    words: &mut [u32],
) {
    assert_eq!(rewritable.len(), text.len() + 1, "one for each place");
    words.fill(0);
    each_token(recognizer, text, vocabulary, |node| {
        if rewritable[text.len().min(node.depth as usize)] {
            vocabulary.ending(node).iter().for_each(|&token| bits::insert(words, token.index()));
        }
        true
    });
}

/// Find the places of a text from which tokens lead to its end, or beyond it. The entry of the end itself is
/// `is_viable`: whether anything may follow.
pub(crate) fn rewritable(
    recognizer: &mut impl Recognizer,
    text: &[u8],
    is_viable: bool,
    vocabulary: &Vocabulary,
) -> Vec<bool> {
    let mut rewritable = vec![is_viable; text.len() + 1];
    let mut along = Vec::new();
    for at in (0..text.len()).rev() {
        let rest = &text[at..];
        along.clear();
        vocabulary.tokens_along(rest, &mut along);
        rewritable[at] = is_viable && along.iter().any(|&(length, _)| rewritable[at + length]);
        if is_viable && !rewritable[at] {
            each_token(recognizer, rest, vocabulary, |node| {
                rewritable[at] |= node.depth as usize > rest.len();
                !rewritable[at]
            });
        }
    }
    rewritable
}

/// Visit the nodes where a token ends that is a prefix of a text, or extends it as a recognizer allows, until `visit`
/// returns false.
fn each_token(
    recognizer: &mut impl Recognizer,
    text: &[u8],
    vocabulary: &Vocabulary,
    mut visit: impl FnMut(&TrieNode) -> bool,
) {
    let nodes = vocabulary.nodes();
    let mut at = 0;
    while at < nodes.len() {
        poll();
        let node = &nodes[at];
        let before = node.depth as usize - 1;
        let fits = match text.get(before) {
            Some(&byte) => byte == node.byte,
            None => {
                recognizer.pop_to(before - text.len());
                recognizer.try_push(node.byte)
            }
        };
        if !fits {
            at = node.skip as usize;
            continue;
        }
        if !vocabulary.ending(node).is_empty() && !visit(node) {
            break;
        }
        at += 1;
    }
    recognizer.pop_to(0);
}
