"""A model of a small alphabet."""

from __future__ import annotations

from support.models.bracket_language import (
    END,
    Script,
    ScriptedModel,
    scripted,
)

ALPHABET = [*b"()[]x", END]


class Read(list[int]):
    """Tokens that a scripted model has read."""

    def crop(self, length: int) -> None:
        del self[length:]


class Rereading(ScriptedModel):
    """One that can go back."""

    def new_cache(self, room: int | None = None) -> list[int]:
        return Read()


def model_of(script: Script) -> Rereading:
    model = scripted(script)
    return Rereading(model.name, model.backend, model.format, model.vocabulary, script=script)
