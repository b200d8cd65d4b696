"""fim-server: fill-in-the-middle completion whose text always fits the code around it.

The public API is what this module exports; everything else may change.
"""

from fim_server.errors import LanguageError, StoppedError, VocabularyError
from fim_server.language import Explanation, Language, Matcher, Session, State, Stop, Verdict
from fim_server.tokens.vocabulary import Vocabulary

__all__ = [
    "Explanation",
    "Language",
    "LanguageError",
    "Matcher",
    "Session",
    "State",
    "Stop",
    "StoppedError",
    "Verdict",
    "Vocabulary",
    "VocabularyError",
]
