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
    """End of the left context that the model writes again, because its tokens would have been others.

    A model has rarely seen a word go on after its first letters, or a word without its blank: after ``return `` it
    writes what follows a lone blank. So the prompt lacks the end of the cursor's line that the tokenizer might cut
    otherwise (:meth:`.vocabulary.Vocabulary.unsettled`). The model's text has to begin with that end, in whatever
    tokens (design, section 10; *token healing*). The session stays that of the cursor: its matcher takes these bytes
    first (``Session.matcher(healing=...)``).
    """

    split: Split
    """The cut before the healed text: the model reads this."""
    text: str
    """The healed text; empty if there is nothing to heal."""

    @classmethod
    def of(cls, model: FimModel, split: Split, most: int | None = None) -> Healing:
        """Return the healing of a cut; none where it would take more than ``most`` characters."""
        text = model.vocabulary.unsettled(split.left)
        if most is not None and len(text) > most:
            text = ""
        return cls(replace(split, left=split.left.removesuffix(text)), text)

    def undo(self, completion: Completion) -> Completion:
        """Return the completion without the healed text; a token of both counts among the text's."""
        if not self.text or (completion.text is None and not completion.begun):
            return completion
        healed = len(self.text)
        written = tuple(replace(token, end=token.end - healed) for token in completion.written if token.end > healed)
        text = None if completion.text is None else completion.text[healed:]
        return replace(completion, text=text, begun=completion.begun[healed:], written=written)
