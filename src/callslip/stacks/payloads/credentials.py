"""Who we are to an object store: what the environment says, as obstore takes it.

obstore reads the environment itself: keys, web identity, container and machine roles, for AWS, Google
and Azure. Here is what it leaves out: our time limits beside the environment's options, a profile's
keys, and that a machine without any credentials says so at once.
"""

from __future__ import annotations

import configparser
import importlib
import os
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlsplit

from callslip import limits
from callslip.errors import SettingsError, StoreUnavailable

__all__ = ["given", "options"]

_PREFIXES = {"s3": "aws_", "s3a": "aws_", "gs": "google_"}
_CLIENT = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "root_certificate",
    "timeout",
    "user_agent",
)
_ENDPOINTS = ("aws_endpoint", "aws_endpoint_url", "aws_endpoint_url_s3", "azure_storage_endpoint")
_ELSEWHERE = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)
"""With one of these set, obstore knows where its credentials are."""
_GIVEN = ("AWS_", "GOOGLE_", "AZURE_")
_FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
    "GOOGLE_APPLICATION_CREDENTIALS": "~/.config/gcloud/application_default_credentials.json",
}
_METADATA = "http://169.254.169.254"


def given() -> object:
    """What the environment and its files say of credentials now: equal as long as they say the same."""
    names = sorted(name for name in os.environ if name.startswith(_GIVEN))
    return [(name, os.environ.get(name)) for name in names], [
        _stamp(os.environ.get(name) or os.path.expanduser(path)) for name, path in _FILES.items()
    ]


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def options(scheme: str) -> dict[str, Any]:
    """What `obstore.store.from_url` is given for a URL of that scheme.

    Raises SettingsError for a profile that is not there and an endpoint that is no URL, and
    StoreUnavailable (`permission denied`) where no credentials are to be had.
    """
    if scheme == "memory":
        return {}
    environment = {name.lower(): value for name, value in os.environ.items()}
    prefix = _PREFIXES.get(scheme, "azure_")
    for name in _ENDPOINTS:
        value = environment.get(name, "")
        if name.startswith(prefix) and value and "://" not in value:  # the library would panic
            raise SettingsError(f"{name.upper()}: write http:// or https:// before the host")
    # Options given here replace those that obstore takes from the environment: so both are given.
    client: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=limits.OBJECT_CONNECT_SECONDS),
        "timeout": timedelta(seconds=limits.OBJECT_REQUEST_SECONDS),
    }
    client |= {
        name: environment[prefix + name] for name in _CLIENT if environment.get(prefix + name)
    }
    found: dict[str, Any] = {
        "client_options": client,
        "retry_config": {
            "retry_timeout": timedelta(seconds=limits.OBJECT_RETRY_SECONDS),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=limits.OBJECT_WAIT_SECONDS),
                "base": 2,
            },
        },
    }
    if prefix == "aws_" and not any(os.environ.get(name) for name in _ELSEWHERE):
        found |= _of_profile(os.environ)
    return found


def _of_profile(environment: Mapping[str, str]) -> dict[str, Any]:
    """The keys that stand in a profile, or its session by boto3; else the machine's role."""
    name = environment.get("AWS_PROFILE", "")
    keys = _section(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials", name or "default")
    more = _section(environment, "AWS_CONFIG_FILE", "config", _config_name(name))
    profile = {**more, **keys}
    config: dict[str, Any] = {}
    if region := environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"):
        profile["region"] = region
    if "region" in profile:
        config["region"] = profile["region"]
    if "aws_access_key_id" in profile and "aws_secret_access_key" in profile:
        config["access_key_id"] = profile["aws_access_key_id"]
        config["secret_access_key"] = profile["aws_secret_access_key"]
        if "aws_session_token" in profile:
            config["session_token"] = profile["aws_session_token"]
        return {"config": config}
    if profile.keys() & {"role_arn", "sso_session", "sso_start_url", "credential_process"}:
        return {"config": config, "credential_provider": _by_boto3(name)}
    if name and not profile:
        raise SettingsError(f"AWS_PROFILE={name!r}: there is no such profile with credentials")
    _ask_machine(environment)
    return {"config": config} if config else {}


def _config_name(name: str) -> str:
    return f"profile {name}" if name and name != "default" else "default"


def _section(
    environment: Mapping[str, str], variable: str, file: str, section: str
) -> dict[str, str]:
    path = environment.get(variable) or os.path.expanduser(f"~/.aws/{file}")
    parser = configparser.RawConfigParser(default_section="")
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError):
        # Its own message would show the line that it could not read.
        raise SettingsError(f"{path} is no readable file of AWS profiles") from None
    return dict(parser[section]) if section in parser else {}


def _by_boto3(name: str) -> Callable[..., Any]:
    try:
        boto3 = importlib.import_module("boto3")
        provider = importlib.import_module("obstore.auth.boto3").Boto3CredentialProvider
    except ImportError:
        raise SettingsError(
            f"the AWS profile {name or 'default'!r} has no keys of its own: pip install boto3, "
            "which opens such profiles, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from None
    return cast("Callable[..., Any]", provider(boto3.Session(profile_name=name or None)))


def _ask_machine(environment: Mapping[str, str]) -> None:
    """Whether there is anything that gives a machine's credentials. obstore would try for seconds,
    at every operation."""
    url = urlsplit(environment.get("AWS_METADATA_ENDPOINT") or _METADATA)
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true":
        try:
            place = (url.hostname or "", url.port or 80)
            socket.create_connection(place, limits.METADATA_SECONDS).close()
        except OSError:
            pass  # said below, with what to do
        else:
            return
    raise StoreUnavailable(
        "the object store: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        "AWS_PROFILE, or run where the machine has a role",
        reason="permission denied",
    )
