"""What pods of a busy cluster carry that nobody here reads: managed fields, environment, volumes. About 6 kB each.

Without it a list of simulated pods would be a third of the size that an API server sends, and reading one no measure of anything.
"""

from __future__ import annotations

from typing import Any

_VARIABLES = tuple(f"VARIABLE_{number}" for number in range(24))
_VOLUMES = tuple(f"volume-{number}" for number in range(5))
_MANAGERS = ("kube-controller-manager", "kube-scheduler", "kubelet")


def managed_fields() -> list[dict[str, Any]]:
    """Who wrote which field, as an API server keeps it of each writer."""
    fields: dict[str, Any] = {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}} for name in _VARIABLES}
    written = {"f:spec": {"f:containers": fields}}
    return [
        {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": written}
        for manager in _MANAGERS
    ]


def container_fields() -> dict[str, Any]:
    """Environment and mounts of a container."""
    return {
        "env": [{"name": name, "value": name.lower()} for name in _VARIABLES],
        "volumeMounts": [{"name": name, "mountPath": f"/mnt/{name}", "readOnly": True} for name in _VOLUMES],
        "terminationMessagePath": "/dev/termination-log",
    }


def volumes() -> list[dict[str, Any]]:
    """The volumes that the mounts name."""
    return [{"name": name, "configMap": {"name": name, "defaultMode": 420}} for name in _VOLUMES]
