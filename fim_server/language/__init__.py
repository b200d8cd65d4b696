"""Languages as compiled data, and the sessions, states and matchers opened on them."""

from fim_server.language.language import Language
from fim_server.language.matcher import Matcher
from fim_server.language.session import OpenConstruct, Session, Verdict
from fim_server.language.state import Explanation, State
from fim_server.language.stop import Stop

__all__ = ["Explanation", "Language", "Matcher", "OpenConstruct", "Session", "State", "Stop", "Verdict"]
