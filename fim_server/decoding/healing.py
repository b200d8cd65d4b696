"""Token healing: a middle that begins where the last token left of the cursor begins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fim_server.decoding.protocols import CheckingSession

if TYPE_CHECKING:
    from fim_server.decoding.protocols import Session
    from fim_server.decoding.results import Completion
    from fim_server.models.model import FimModel
    from fim_server.text.document import Split

HEALED_CHARACTERS = 48
"""How much of the cursor's line is looked at for its last token."""


@dataclass(frozen=True, slots=True)
class Healing:
    """A cut that is moved back to where a token begins, for a tokenizer that would not have cut there.

    A model has rarely seen a word go on after its first letters, or a word without its blank: after ``return `` it
    writes what follows a blank that stands by itself. So the last token left of the cursor is taken from the prompt,
    and the middle has to begin with its text (design, section 10; *token healing*). Of several blanks only the last one
    is taken: tokenizers leave it to the word that follows. An indentation is left as it is.
    """

    split: Split
    """The cut before that token."""
    text: str
    """The token's text; empty if there is nothing to heal."""

    @classmethod
    def of(cls, model: FimModel, split: Split) -> Healing:
        """The healing of a cut: the last token of its line left of the cursor."""
        line = split.left[split.left.rfind("\n") + 1 :][-HEALED_CHARACTERS:]
        try:
            tokens = model.vocabulary.encode(line) if line.strip() else []
            text = model.vocabulary.token_bytes(tokens[-1]).decode() if tokens else ""
        except ValueError:  # it ends a character that began before, or has one that the vocabulary lacks
            text = ""
        if not text:
            return cls(split, "")
        if text.isspace():
            text = text[-1]
        return cls(replace(split, left=split.left[: -len(text)]), text)

    def undo(self, completion: Completion) -> Completion:
        """The completion for the cut as it was."""
        if not self.text or completion.text is None:
            return completion
        return replace(completion, text=completion.text[len(self.text) :])


def takes(session: Session, text: str, guarantee: str) -> bool:
    """Whether a middle may begin with a text in a session, which is to have a guarantee."""
    if session.guarantee != guarantee:
        return False
    return guarantee == "none" or (isinstance(session, CheckingSession) and session.check(text).viable)
