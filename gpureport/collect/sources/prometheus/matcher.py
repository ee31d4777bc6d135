"""Label matchers, as PromQL and remote read both have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

_CLASSIC_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Operator = Literal["=", "!=", "=~", "!~"]


@dataclass(frozen=True)
class Matcher:
    """One condition on a label; regular expressions are anchored, as everywhere in Prometheus."""

    name: str
    operator: Operator
    value: str

    def to_selector(self) -> str:
        """The condition as PromQL; names beyond the classic ones are quoted, as 3.x has it."""
        name = self.name if _CLASSIC_NAME.fullmatch(self.name) else json.dumps(self.name, ensure_ascii=False)
        return f"{name}{self.operator}{json.dumps(self.value, ensure_ascii=False)}"


def selector(matchers: Sequence[Matcher]) -> str:
    """A PromQL selector of all conditions."""
    return "{" + ",".join(matcher.to_selector() for matcher in matchers) + "}"


def one_of(name: str, values: Iterable[str]) -> Matcher:
    """The label is one of these values, taken literally."""
    found = sorted(set(values))
    if len(found) == 1:
        return Matcher(name, "=", found[0])
    return Matcher(name, "=~", "|".join(_literal(value) for value in found))


def _literal(value: str) -> str:
    """Escaped for RE2, which refuses Python's escapes of characters that need none."""
    return re.sub(r"([.+*?()|\[\]{}^$\\])", r"\\\1", value)
