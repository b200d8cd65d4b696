"""Token healing: a middle that begins where the tokenizer may have cut otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.models.model import FimModel
    from fim_server.text.document import Split


@dataclass(frozen=True, slots=True)
class Healing:
    """What is taken from the prompt's end, to be written again: the tokens that would have been others.

    A model has rarely seen a word go on after its first letters, or a word without its blank: after ``return `` it
    writes what follows a blank that stands by itself. So the end of the cursor's line that the tokenizer would cut
    otherwise, had it seen what comes (:meth:`.vocabulary.Vocabulary.unsettled`), is not shown to the model, and what
    the model writes has to begin with it, in whatever tokens (design, section 10; *token healing*). The session stays
    that of the cursor: its matcher takes these bytes first (``Session.matcher(healing=...)``).
    """

    split: Split
    """The cut before that text: what the model reads."""
    text: str
    """The text; empty if there is nothing to heal."""

    @classmethod
    def of(cls, model: FimModel, split: Split, most: int | None = None) -> Healing:
        """Return the healing of a cut; none where it would take more than ``most`` characters."""
        text = model.vocabulary.unsettled(split.left)
        if most is not None and len(text) > most:
            text = ""
        return cls(replace(split, left=split.left.removesuffix(text)), text)

    def undo(self, completion: Completion) -> Completion:
        """The completion without what was written again; a token of both counts among the text's."""
        if not self.text or (completion.text is None and not completion.begun):
            return completion
        healed = len(self.text)
        written = tuple(replace(token, end=token.end - healed) for token in completion.written if token.end > healed)
        text = None if completion.text is None else completion.text[healed:]
        return replace(completion, text=text, begun=completion.begun[healed:], written=written)
