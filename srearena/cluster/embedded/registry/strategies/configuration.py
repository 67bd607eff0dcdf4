"""ConfigMaps, Secrets and ServiceAccounts: what pods are given to read and to be."""

from __future__ import annotations

import base64

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.parts import fill_empty, items, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext


def _default_secret(obj: Obj) -> None:
    fill_empty(obj, {"type": "Opaque"})
    plain = obj.pop("stringData", None)
    if plain:
        part(obj, "data").update((key, base64.b64encode(str(text).encode()).decode()) for key, text in plain.items())


def _keep_secret_names_only(obj: Obj) -> None:
    """Of the secrets an account lists, only the names mean anything."""
    if obj.get("secrets"):
        obj["secrets"] = [{"name": secret.get("name", "")} for secret in items(obj, "secrets")]


def _prepare_account(obj: Obj, context: WriteContext) -> None:
    _keep_secret_names_only(obj)


def _prepare_account_update(new: Obj, old: Obj, context: WriteContext) -> None:
    _keep_secret_names_only(new)


STRATEGIES = {
    "secrets": Strategy(default=_default_secret),
    "serviceaccounts": Strategy(prepare_create=_prepare_account, prepare_update=_prepare_account_update),
}
