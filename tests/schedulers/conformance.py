"""The schedulers' own test tables through the rules here: each case either agrees or says what came out instead."""

import json
import math
from pathlib import Path

from gpureport.schedulers import kai, koordinator, pods, scheduler_plugins
from gpureport.schedulers.kueue import STRATEGIES, Cohorts, KueuePolicy, Node
from gpureport.schedulers.model import Holding, Quota, Rules, Terms
from gpureport.schedulers.nos import (
    Used,
    available_over_quota,
    base,
    exceeds,
    gpu_memory_gb,
    guaranteed_over_quota,
    in_order,
    rejections,
    share_ratios,
    sum_of_min,
    with_gpu_memory,
)
from gpureport.schedulers.nos_preemption import Situation, exposures
from gpureport.schedulers.volcano import VolcanoPolicy
from tests.schedulers.made import elastic, holding, pod

UPSTREAM = Path(__file__).parent / "upstream"


TABLES = {
    "kai_tests": ("KAI-Scheduler", "d5bc503, 2026-08"),
    "koordinator_tests": ("Koordinator", "a7a1b76, 2026-07"),
    "kueue_tests": ("Kueue", "ff69552, 2026-08"),
    "kueue_fair_tests": ("Kueue, fair sharing", "054bf63, 2026"),
    "volcano_tests": ("Volcano", "0201c23, 2026"),
    "nos_tests": ("nos", "12e0a72, 2024-04"),
    "scheduler_plugins_tests": ("scheduler-plugins", "903da7d, 2026-08"),
}
"""Files beside this one: whose tests they are, and of which version."""


DIFFERENT = {"volcano-05": "without `deserved`, read as proportion", "volcano-11": "closed queues are not read"}
"""Cases that come out otherwise, and why."""


def table():
    """The rows of the table of docs/quota.md: cases of each scheduler's own tests, and how many agree."""
    lines = ["| scheduler | version | cases | agree | differ |", "|---|---|---|---|---|"]
    for name, (scheduler, version) in TABLES.items():
        found = cases(name)
        differ = [case["id"] for case in found if not conforms(case)]
        why = "; ".join(f"{each}: {DIFFERENT[each]}" for each in differ) or "none"
        lines.append(f"| {scheduler} | {version} | {len(found)} | {len(found) - len(differ)} | {why} |")
    return "\n".join(lines) + "\n"


def cases(name):
    return json.loads((UPSTREAM / f"{name}.json").read_text())


def outcome(case):
    """What the rules here make of a case, in the form of its ``expect``."""
    return _KINDS[case["kind"]](case)


def conforms(case):
    """Whether the outcome is what upstream's test asserts; of preemptions it asserts which pods are among the victims."""
    found = outcome(case)
    return set(case["expect_within"]) <= set(found) if "expect_within" in case else agrees(case["expect"], found)


def agrees(expected, found):
    """Equal, floats to nine digits; what a case expects of some of several names is all that is compared."""
    if isinstance(expected, dict):
        return all(name in found and agrees(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(agrees, expected, found))
    if isinstance(expected, str | bool) or expected is None:
        return expected == found
    return abs(expected - found) <= 1e-9 * max(1, abs(expected)) + (0.001 if expected % 1 else 0)


def _kai(case):
    queues = [
        kai.Queue(
            each["name"],
            each["quota"] if each["quota"] is not None else float("inf"),
            each["request"],
            each["weight"],
            each["limit"],
            each["priority"],
            each["created_ms"],
            each.get("uid", ""),
            each["past_use"],
        )
        for each in case["queues"]
    ]
    found = kai.divide(case["amount"], queues, case["k"])
    return {"fair_share": found.fair_share, "remaining": found.remaining}


def _koordinator_siblings(case):
    rows = [
        koordinator.Sibling(each["name"], each["request"], each["min"], each["weight"], each["guaranteed"], each["lends"])
        for each in case["siblings"]
    ]
    return koordinator.redistribute(case["amount"], rows, case.get("rounding", "largest-remainder"))


def _koordinator_tree(case):
    rules, found = Rules(scales_minimums=case.get("scale_mins", True)), {}
    for number, resource in enumerate(("cpu", "memory")):
        holdings = [
            holding(
                each["name"],
                each["request"][number],
                resource=resource,
                parent=each["parent"],
                may_lend=each["lends"],
                guaranteed=each["min"][number],
                cap=each["max"][number],
                weight=each["weight"][number] if "weight" in each else None,
            )
            for each in case["quotas"]
        ]
        for name, share in koordinator.shares(resource, holdings, case["total"][number], rules).items():
            found.setdefault(name, []).append(share.fair_share)
    return found


def _kueue(case):
    nodes = [
        Node(
            each["name"],
            each["parent"],
            {
                (limit["flavor"], limit["resource"]): Terms(
                    limit["nominal"], borrowing_limit=limit["borrow"], lending_limit=limit["lend"]
                )
                for limit in each["limits"]
            },
            each["weight"],
            {(used["flavor"], used["resource"]): used["amount"] for used in case["usage"].get(each["name"], [])},
        )
        for each in case["nodes"]
    ]
    return Cohorts(nodes)


def _kueue_share(case):
    shares = {name: _kueue(case).weighted_share(name) for name in case["expect"]}
    return {name: {"share": share.as_status, "resource": share.resource} for name, share in shares.items()}


def _kueue_amounts(case):
    trees = _kueue(case)
    reckon = trees.available if case["kind"] == "kueue.available" else trees.potential
    return {  # the scheduler requests what a queue has left, never less than 0
        name: [{**each, "amount": max(0, reckon(name, (each["flavor"], each["resource"])))} for each in expected]
        for name, expected in case["expect"].items()
    }


def _kueue_fair(case):
    """Victims of a request, where fair sharing is on."""
    policy, rules = KueuePolicy(case.get("strategies", STRATEGIES)), Rules(fair_sharing=1)
    quotas = [
        Quota(
            "kueue",
            each["name"],
            {"cpu": Terms(guaranteed=each["nominal"], weight=each["weight"])},
            each["parent"],
            each.get("is_cohort", False),
            policy={"withinClusterQueue": each.get("within", "Never"), "reclaimWithinCohort": each.get("reclaim", "Never")},
        )
        for each in case["queues"]
    ]
    found = _cycle(policy, rules, quotas, math.inf, case["held"], [{"name": "new", **case["ask"]}])
    return sorted({each["name"] for each in case["held"]} - found.running.keys())


def _volcano(case):
    """Allocation of each queue after the requests."""
    quotas = [
        Quota(
            "volcano",
            each["name"],
            {"cpu": Terms(each["guaranteed"], each["cap"], 1, each["deserved"])},
            each["parent"],
            priority=each.get("priority"),
        )
        for each in case["queues"]
    ]
    found = _cycle(VolcanoPolicy(), Rules(), quotas, case["capacity"], case["held"], case["asks"])
    sums = dict.fromkeys(found.quotas, 0)
    for each in found.running.values():
        sums[each.quota] += each.amount
    return sums


def _cycle(policy, rules, quotas, capacity, held, requests):
    """The situation after all held and then the requests came."""
    there = [pods.Request(each["name"], each["queue"], each["amount"], each["priority"], 0, 0, None) for each in held]
    new = [pods.Request(each["name"], each["queue"], each["amount"], each["priority"], 1, None, None) for each in requests]
    found = pods.Replay(policy, "cpu", [*there, *new], rules)
    for at, some in ((0, there), (1, [*there, *new])):
        demanded = {quota.name: sum(each.amount for each in some if each.quota == quota.name) for quota in quotas}
        holdings = [Holding(quota, demanded[quota.name], 0) for quota in quotas]
        if at:
            found.step(at, holdings, capacity)
        else:
            found.restart(at, holdings, capacity, is_changed=False)
    return found.now


def _held(case):
    return [
        Used(elastic(name, quota["min"], quota["max"] or None), _amounts(case, quota["used"]))
        for name, quota in case["quotas"].items()
    ]


def _amounts(case, amounts):
    return with_gpu_memory(amounts, case["gb_per_gpu"]) if "gb_per_gpu" in case and "nvidia.com/gpu" in amounts else amounts


def _nos_guaranteed(case):
    found = guaranteed_over_quota(_held(case))[case["quota"]].get(case["resource"], 0)
    return base(case["resource"], found)


def _nos_ratio(case):
    held = _held(case)
    own = next(each.quota for each in held if each.quota.name == case["quota"])
    return share_ratios(own, sum_of_min(held)).get(case["resource"], 0)


def _nos_available(case):
    return base(case["resource"], available_over_quota(_held(case)).get(case["resource"], 0))


def _units(amounts):
    return None if amounts is None else {name: round(amount * (1000 if name == "cpu" else 1)) for name, amount in amounts.items()}


def _prefilter(case):
    rules = rejections if case["peer"] == "nos" else scheduler_plugins.rejections
    waiting = pod("new", _amounts(case, case["request"]), case["namespace"])
    return "refused" if rules(waiting, _held(case)) else "admitted"


def _victims(case):
    held, waiting = _held(case), case["waiting"]
    pods = [
        pod(each["name"], _amounts(case, each["request"]), each["namespace"], priority=each["priority"]) for each in case["pods"]
    ]
    new = pod("new", _amounts(case, waiting["request"]), waiting["namespace"], priority=waiting["priority"], is_bound=False)
    if case["peer"] == "nos":
        over = frozenset(f"uid-{each['name']}" for each in case["pods"] if each["over"])
        found = exposures([new], Situation(held, pods, over))
    else:
        found = scheduler_plugins.exposures([new], held, pods)
    return sorted(each.pod_uid.removeprefix("uid-") for each in found)


_KINDS = {
    "kai.divide": _kai,
    "koordinator.redistribute": _koordinator_siblings,
    "koordinator.scaled": lambda case: koordinator.scaled_minimums(case["amount"], case["mins"], frozenset(case["fixed"])),
    "koordinator.tree": _koordinator_tree,
    "kueue.fair": _kueue_fair,
    "kueue.share": _kueue_share,
    "kueue.available": _kueue_amounts,
    "kueue.potential": _kueue_amounts,
    "volcano.cycle": _volcano,
    "nos.guaranteed": _nos_guaranteed,
    "nos.ratio": _nos_ratio,
    "nos.available": _nos_available,
    "nos.exceeds": lambda case: bool(exceeds(_units(case["used"]), _units(case["request"]), _units(case["bound"]))),
    "nos.prefilter": _prefilter,
    "nos.victims": _victims,
    "nos.memory": lambda case: gpu_memory_gb(case["request"], case["gb_per_gpu"]),
    "nos.order": lambda case: [
        each.name
        for each in in_order(
            pod(row["name"], {"nvidia.com/gpu": row["gpus"]}, created=row["created"], priority=row["priority"])
            for row in case["pods"]
        )
    ],
    "sp.over_min": lambda case: bool(
        scheduler_plugins.over_min(_units(case["used"]), _units(case["request"]), _units(case["bound"] or {}))
    ),
    "sp.over_max": lambda case: bool(
        scheduler_plugins.over_max(_units(case["used"]), _units(case["request"]), _units(case["bound"]))
    ),
    "sp.prefilter": _prefilter,
    "sp.victims": _victims,
}
