"""Quotas and pods in the few words that a case is about."""

from gpureport.schedulers.model import Holding, Pod, Quota, Terms
from gpureport.schedulers.nos import GPU_MEMORY, Used


def elastic(name, minimum, maximum=None, namespaces=()):
    """A nos quota over one namespace of its own name, or over several."""
    caps = maximum or {}
    terms = {resource: Terms(minimum.get(resource), caps.get(resource)) for resource in {**minimum, **caps}}
    return Quota("nos", name, terms, namespaces=namespaces or (name,))


def used(name, minimum, amounts, maximum=None, namespaces=()):
    return Used(elastic(name, minimum, maximum, namespaces), amounts)


def memory(name, minimum, amount, **more):
    """A nos quota of gpu-memory alone, in GB."""
    return used(name, {GPU_MEMORY: minimum}, {GPU_MEMORY: amount}, **more)


def pod(name, requests, quota="a", created=0, priority=0, namespace=None, is_running=True, is_bound=True):
    return Pod(f"uid-{name}", namespace or quota, name, quota, requests, created, priority, is_bound, is_running)


def holding(name, demanded, delivered=0, *, resource="gpu", system="", parent="", is_parent=False, priority=None, **terms):
    more = {key: terms.pop(key) for key in ("may_lend", "created_at_ms", "uid", "tree") if key in terms}
    quota = Quota(system, name, {resource: Terms(**terms)}, parent, is_parent, priority=priority, **more)
    return Holding(quota, demanded, delivered)
