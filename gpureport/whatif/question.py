"""What-if question: changed quotas, added nodes, or another order of pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from gpureport.schedulers.change import Change, parse_rule, parse_setting
from gpureport.schedulers.nos import ORDER, in_order
from gpureport.values.errors import UsageError
from gpureport.values.text import formats


@dataclass(frozen=True)
class Question:
    """All changes, and the cluster and system that they apply to."""

    change: Change
    added_gpus: float = 0
    added_nodes: int = 0
    """Number of added nodes, each with the most common number of GPUs per node."""
    pod_order: tuple[str, ...] = ORDER
    cluster: str = ""
    """Cluster of the question; '' for all."""
    system: str = ""
    rules: tuple[tuple[str, float], ...] = ()
    """Changed settings of schedulers."""

    @property
    def is_empty(self) -> bool:
        """Return whether the question has no changes."""
        return (
            self.change == Change()
            and not self.rules
            and not self.added_gpus
            and not self.added_nodes
            and self.pod_order == ORDER
        )

    def words(self) -> list[str]:
        """Return the changes as a list of phrases."""
        settings = [
            f"{each.quota}: {each.term}{f' of {each.resource}' if each.resource else ''} is "
            f"{each.word or ('none' if each.value is None else f'{each.value:g}')}"
            for each in self.change.settings
        ]
        return [
            *settings,
            *(f"{name.replace('_', ' ')} is {value:g}" for name, value in self.rules),
            *(f"{name}: removed" for name in self.change.removed),
            *([f"{self.added_gpus:g} added GPUs"] if self.added_gpus else []),
            *([f"{formats.counted(self.added_nodes, 'added node')}"] if self.added_nodes else []),
            *([f"pods are counted in the order {', '.join(self.pod_order)}"] if self.pod_order != ORDER else []),
        ]


def parse_question(
    settings: Sequence[str],
    removed: Sequence[str],
    added_gpus: float = 0,
    added_nodes: int = 0,
    pod_order: str = "",
    cluster: str | None = None,
    system: str | None = None,
) -> Question:
    """Return the question from command-line values; UsageError for an invalid value or no change."""
    for name, value in (("--add-gpus", added_gpus), ("--add-nodes", added_nodes)):
        if not 0 <= value < inf:
            raise UsageError(f"{name} {value:g} is not possible; give 0 or more")
    order = tuple(each.strip() for each in pod_order.split(",")) if pod_order else ORDER
    in_order([], order)
    rules = {text: rule for text in settings if (rule := parse_rule(text))}
    own = tuple(parse_setting(text) for text in settings if text not in rules)
    change = Change(own, tuple(name.removeprefix("quota.") for name in removed))
    question = Question(change, added_gpus, added_nodes, order, cluster or "", system or "", tuple(rules.values()))
    if question.is_empty:
        of_quotas = "--set, --remove, --add-gpus, --add-nodes, --pod-order"
        raise UsageError(f"no change is given; use {of_quotas}, --nodes, --wait-below, --idle-timeout, --return-idle or --mig")
    return question
