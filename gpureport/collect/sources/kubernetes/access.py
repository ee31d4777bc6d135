"""Configuration and credentials of a cluster: the `kubernetes` client reads kubeconfig files and service accounts.

The client is imported here and only when a cluster is to be read: no other command waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gpureport import __version__
from gpureport.collect.sources.exchange import watched
from gpureport.config import Kubernetes as KubernetesSettings
from gpureport.values.errors import AuthError, UsageError

if TYPE_CHECKING:
    from kubernetes.client.api_client import ApiClient

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOW_TO_NAME_A_CLUSTER = (
    "give --kubeconfig FILE, set KUBECONFIG, or run in a pod whose service account may list (see docs/operations.md)"
)


class NoClusterError(UsageError):
    """Nothing says which cluster to read."""


def kubeconfig(settings: KubernetesSettings, environ: Mapping[str, str]) -> str:
    """The kubeconfig file(s) in force: the configured, KUBECONFIG's, or the user's own where it exists; '' for none."""
    if settings.kubeconfig:
        return settings.kubeconfig
    if environ.get("KUBECONFIG"):
        return environ["KUBECONFIG"]
    own = Path(environ["HOME"]) / ".kube" / "config" if environ.get("HOME") else None
    return str(own) if own and own.is_file() else ""


def is_in_cluster(environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> bool:
    """Whether this is a pod with a service account."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (service_account / "token").is_file()


def open_client(settings: KubernetesSettings, environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> ApiClient:
    """A client with credentials; nothing is sent yet, but for what a credential plugin does.

    NoClusterError where no cluster is named, UsageError where a kubeconfig is wrong, AuthError where a plugin fails.
    """
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration

    configuration = Configuration()
    if path := kubeconfig(settings, environ):
        _load_kubeconfig(path, settings.context, configuration)
    elif is_in_cluster(environ, service_account):
        _load_service_account(environ, service_account, configuration)
    else:
        raise NoClusterError(f"no Kubernetes cluster to read; {HOW_TO_NAME_A_CLUSTER}")
    configuration.retries = False  # ours tell a refusal from an outage, and keep the server's words
    client = ApiClient(configuration)
    watched(client.rest_client.pool_manager)
    client.user_agent = f"gpureport/{__version__}"
    return client


def _load_kubeconfig(path: str, context: str, configuration: Any) -> None:
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.kube_config import load_kube_config

    if not any(Path(each).expanduser().is_file() for each in path.split(":") if each):
        raise UsageError(f"the kubeconfig {path} is not there; check --kubeconfig or KUBECONFIG")
    try:
        with _logged_errors() as problems:
            load_kube_config(path, context or None, configuration, persist_config=False)
    except ConfigException as error:
        text = " ".join(str(error).split())
        raise UsageError(f"the kubeconfig {path} cannot be used ({text}); check --kubeconfig and --context") from error
    except (yaml.YAMLError, OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        first = " ".join(str(error).split())[:160]
        raise UsageError(f"{path} is not a kubeconfig ({first}); check --kubeconfig or KUBECONFIG") from error
    if problems:
        raise AuthError(f"the credential plugin of {path} failed ({problems[0]}); run it by hand, or log in again")


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Log message of the client where a plugin fails; without this check it goes on without credentials."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(" ".join(record.getMessage().split()))  # type: ignore[method-assign]
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield found
    finally:
        root.removeHandler(handler)


def _load_service_account(environ: Mapping[str, str], folder: Path, configuration: Any) -> None:
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.incluster_config import InClusterConfigLoader

    try:
        InClusterConfigLoader(str(folder / "token"), str(folder / "ca.crt"), environ=environ).load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise UsageError(f"the service account at {folder} cannot be used ({error}); check how it is mounted") from error
