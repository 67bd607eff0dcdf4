"""Which kubectl command lines may run on the harness's machine on an agent's behalf.

kubectl acts as the agent: what it does in the cluster is for the cluster to allow. But it runs here, where the answers
are, so it must not read this machine's files, use another identity, start programs, or never end. Only listed verbs run
(an unknown one would start a plug-in), and flags that name files or identities are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srearena.conductor.actions.kubectl_line import PARTS, KubectlLine, Piece, take_apart
from srearena.conductor.errors import BadAction

VERBS = frozenset(
    """annotate api-resources api-versions apply auth autoscale certificate cluster-info cordon create debug delete
    describe diff drain events exec explain expose get help label logs options patch replace rollout run scale set taint
    top uncordon version wait""".split()
)
_WHY_NOT = {
    "edit": "there is no terminal; use `kubectl patch` or `kubectl apply -f -`",
    "port-forward": "nothing here could use the port; use `kubectl exec` or `kubectl get --raw .../proxy/...`",
    "proxy": "nothing here could use the port; use `kubectl get --raw`",
    "attach": "there is no terminal; use `kubectl logs` or `kubectl exec`",
    "cp": "there are no files here; use `kubectl exec ... -- cat`",
    "kustomize": "there are no files here; give manifests in `kubectl apply -f -`",
    "config": "the configuration is given",
    "plugin": "plug-ins do not run here",
}
_REFUSED_FLAGS = frozenset(
    """kubeconfig server token certificate-authority client-certificate client-key cache-dir profile profile-output
    from-file from-env-file patch-file cert key kustomize user cluster context tls-server-name insecure-skip-tls-verify
    username password raw-file log-file log-dir kuberc editor custom""".split()
)
_MEANS_SOMETHING_ELSE = frozenset(
    (
        ("create", "clusterrolebinding", "user"),
        ("create", "rolebinding", "user"),
        ("set", "subject", "user"),
        ("debug", "", "profile"),
    )
)
"""Flags that these commands have for themselves; for all others the same name is about this machine."""
_ASKING = frozenset(("edit", "interactive"))


def check(words: Sequence[str]) -> list[str]:
    """The words after `kubectl`, if they may run as they are; BadAction says why they may not."""
    return list(checked(words).words)


def checked(words: Sequence[str]) -> KubectlLine:
    """The same, taken apart. A terminal that is asked for is left out: there is none."""
    line = take_apart(words)
    if line.verb not in VERBS:
        reason = _WHY_NOT.get(line.verb, "plug-ins do not run here; `kubectl help` names the commands there are")
        raise BadAction(f"`kubectl {line.verb}` cannot be used here: {reason}")
    if line.part == "edit-last-applied" or line.has(*_ASKING):
        raise BadAction("there is no terminal here to edit or confirm anything in; give the manifest with `-f -`")
    if line.verb == "create" and not line.part and any(not piece.flag for piece in line.pieces):
        kinds = ", ".join(sorted(set(PARTS["create"].values())))
        raise BadAction(f"`kubectl create` makes {kinds}, or what `-f -` describes; plug-ins do not run here")
    for piece in line.pieces:
        _check(line, piece)
    if line.verb in ("exec", "run", "debug") and line.values("tty"):
        pieces = tuple(piece for piece in line.pieces if piece.flag != "tty")
        line = replace(line, pieces=pieces)
        line = replace(line, words=tuple(line.rewritten()))
    return line


def _check(line: KubectlLine, piece: Piece) -> None:
    name, value = piece.flag, piece.value or ""
    if name in _REFUSED_FLAGS and (line.verb, line.part, name) not in _MEANS_SOMETHING_ELSE:
        raise BadAction(f"kubectl --{name} cannot be used here: it is about this machine, not about the cluster")
    if line.verb == "logs" and name == "follow" and line.has("follow"):
        raise BadAction("kubectl logs --follow would never end: use --tail or --since")
    if name == "filename" and value != "-":
        raise BadAction("there are no files here: pipe the manifest in, `kubectl apply -f - <<EOF ... EOF`")
    if name == "output-directory" and value not in ("-", "stdout"):
        raise BadAction("there are no files here: leave --output-directory out")
    if (name == "output" and "file" in value.split("=")[0]) or (name == "template" and "{{" not in value):
        raise BadAction("there are no files here: give the template itself")
