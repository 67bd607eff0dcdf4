"""How the server reaches a webhook: by URL or by service, speaking which versions of the review."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems

REVIEW_VERSIONS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"


def check_client(problems: Problems, path: str, client: Obj) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        problems.append(FieldError.required(path, "exactly one of url or service is required"))
    elif url is not None:
        _url(problems, f"{path}.url", url)
    else:
        _service(problems, f"{path}.service", service or {})


def check_review_versions(problems: Problems, path: str, versions: list[str], *, missing: str) -> None:
    if not versions:
        problems.append(FieldError.required(path, missing))
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            problems.append(FieldError.invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        checks.invalid_each(problems, f"{path}[{index}]", version, names.label_1035_errors(version))
    if not seen & set(REVIEW_VERSIONS):
        text = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        problems.append(FieldError.invalid(path, versions, text))


def _url(problems: Problems, path: str, url: str) -> None:
    try:
        parsed: SplitResult = urlsplit(url)
    except ValueError:
        problems.append(FieldError.required(path, f"url must be a valid URL: parse error{_FORM}"))
        return
    if parsed.scheme != "https":
        text = f"'https' is the only allowed URL scheme{_FORM}"
        problems.append(FieldError.invalid(path, parsed.scheme, text))
    if not parsed.netloc:
        problems.append(FieldError.invalid(path, parsed.netloc, f"host must be specified{_FORM}"))
    if parsed.username is not None:
        text = "user information is not permitted in the URL"
        problems.append(FieldError.invalid(path, parsed.netloc.rpartition("@")[0], text))
    if parsed.fragment:
        text = "fragments are not permitted in the URL"
        problems.append(FieldError.invalid(path, parsed.fragment, text))
    if parsed.query:
        text = "query parameters are not permitted in the URL"
        problems.append(FieldError.invalid(path, parsed.query, text))


def _service(problems: Problems, path: str, service: Obj) -> None:
    # The real server mixes the two up: a missing namespace is reported as the name and the other way round.
    checks.required(problems, f"{path}.name", service.get("namespace"))
    checks.required(problems, f"{path}.namespace", service.get("name"))
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        problems.append(FieldError.invalid(f"{path}.port", port, f"port is not valid: {checks.PORT_RANGE}"))
    place = service.get("path") or "/"
    if place == "/":
        return
    if place == "//":
        problems.append(FieldError.invalid(f"{path}.path", place, "segment[0] may not be empty"))
        return
    if not place.startswith("/"):
        problems.append(FieldError.invalid(f"{path}.path", place, "must start with a '/'"))
    for index, segment in enumerate(place[1:].removesuffix("/").split("/")):
        if not segment:
            problems.append(FieldError.invalid(f"{path}.path", place, f"segment[{index}] may not be empty"))
            continue
        for text in names.subdomain_errors(segment):
            problems.append(FieldError.invalid(f"{path}.path", place, f"segment[{index}]: {text}"))
