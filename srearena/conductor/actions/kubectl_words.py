"""Which kubectl command lines may run on the harness's machine on an agent's behalf.

kubectl acts as the agent: what it does in the cluster is for the cluster to allow. But it runs here, where the answers
are, so it must not read this machine's files, use another identity, start programs, or never end. Only listed verbs run
(an unknown one would start a plug-in), and flags that name files or identities are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from srearena.conductor.errors import BadAction

VERBS = frozenset(
    """annotate api-resources api-versions apply auth autoscale certificate cluster-info cordon create debug delete
    describe diff drain events exec explain expose get label logs patch replace rollout run scale set taint top uncordon
    version wait""".split()
)
_WHY_NOT = {
    "edit": "there is no terminal; use `kubectl patch` or `kubectl apply -f -`",
    "port-forward": "nothing here could use the port; use `kubectl exec` or `kubectl get --raw .../proxy/...`",
    "proxy": "nothing here could use the port; use `kubectl get --raw`",
    "attach": "there is no terminal; use `kubectl logs` or `kubectl exec`",
    "cp": "there are no files here; use `kubectl exec ... -- cat`",
    "config": "the configuration is given",
}
_REFUSED_FLAGS = frozenset(
    """--kubeconfig --server --token --certificate-authority --client-certificate --client-key --cache-dir --profile
    --profile-output --from-file --from-env-file --patch-file --cert --key --kustomize --user --cluster --context
    --tls-server-name --insecure-skip-tls-verify --username --password --output-directory --raw-file --log-file
    --log-dir --kuberc --editor --output-watch-events""".split()
)
_FILE_FLAGS = frozenset(("--filename", "-f"))
_TAKE_VALUES = frozenset("noLlcpfksv")
_ALSO_BEFORE_VERB = frozenset(("-n", "--namespace", "--request-timeout", "-v", "--v", "--as", "--as-group"))


def check(words: Sequence[str]) -> list[str]:
    """The words after `kubectl`, if they may run as they are; BadAction says why they may not."""
    own, remote = _split(words)
    verb = _verb(own)
    if verb not in VERBS:
        reason = _WHY_NOT.get(verb, f"it is not one of {', '.join(sorted(VERBS))}")
        raise BadAction(f"`kubectl {verb}` cannot be used here: {reason}")
    for position, word in enumerate(own):
        following = own[position + 1] if position + 1 < len(own) else ""
        _check_word(verb, word, following)
    if verb in ("exec", "run", "debug") and any(word in ("-it", "-ti", "-i", "-t", "--stdin", "--tty") for word in own):
        own = [word for word in own if word not in ("-it", "-ti", "-i", "-t", "--stdin", "--tty")]
    return [*own, *remote]


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """kubectl's own words, and those after `--`, which are for the cluster to run."""
    if "--" not in words:
        return list(words), []
    at = list(words).index("--")
    return list(words[:at]), list(words[at:])


def _verb(words: Sequence[str]) -> str:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            return word
        if word in _ALSO_BEFORE_VERB and rest:
            rest.pop(0)
    raise BadAction("kubectl wants a verb: kubectl get pods --all-namespaces")


def _check_word(verb: str, word: str, following: str) -> None:
    if not word.startswith("-") or word == "-":
        return
    name, equals, value = word.partition("=")
    if not word.startswith("--"):
        name, value = _short(verb, word, following)
    elif not equals:
        value = following
    if name in _REFUSED_FLAGS or name in ("-k", "-s"):
        raise BadAction(f"kubectl {name} cannot be used here: it is about this machine, not about the cluster")
    follows = verb == "logs" and name in ("-f", "--follow")
    if follows:
        raise BadAction("kubectl logs --follow would never end: use --tail or --since")
    if name in _FILE_FLAGS and value != "-":
        raise BadAction("there are no files here: pipe the manifest in, `kubectl apply -f - <<EOF ... EOF`")
    if name in ("-o", "--output", "--template") and (
        "file" in value.split("=")[0] or (name == "--template" and _is_path(value))
    ):
        raise BadAction("there are no files here: give the template itself")


def _is_path(value: str) -> bool:
    return "{{" not in value


def _short(verb: str, word: str, following: str) -> tuple[str, str]:
    """The flag in a group of short ones that matters most, and its value."""
    letters = word[1:]
    for position, letter in enumerate(letters):
        if letter in _TAKE_VALUES:
            if verb == "logs" and letter in "fp":
                if letter == "f":
                    return "-f", ""
                continue
            rest = letters[position + 1 :]
            return f"-{letter}", rest.removeprefix("=") or following
    return word, ""
