"""The policy for kubectl commands that run on the harness's machine on behalf of an agent.

kubectl runs with the agent's identity, so the cluster decides what it may do there. But it runs on the machine that
holds the answers, so it must not read local files, use another identity, start programs, or run forever. Only listed
verbs run (an unknown verb would start a plug-in), and flags that name files or identities are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srearena.conductor.actions.kubectl_command import SUBCOMMANDS, Argument, KubectlCommand, parse_command
from srearena.conductor.errors import BadAction

VERBS = frozenset(
    """annotate api-resources api-versions apply auth autoscale certificate cluster-info cordon create debug delete
    describe diff drain events exec explain expose get help label logs options patch replace rollout run scale set taint
    top uncordon version wait""".split()
)
_REFUSED_VERBS = {
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
_ALLOWED_EXCEPTIONS = frozenset(
    (
        ("create", "clusterrolebinding", "user"),
        ("create", "rolebinding", "user"),
        ("set", "subject", "user"),
        ("debug", "", "profile"),
    )
)
"""Commands for which a refused flag has another, harmless meaning."""
_INTERACTIVE = frozenset(("edit", "interactive"))


def check(words: Sequence[str]) -> list[str]:
    """Return the words after `kubectl`, if the policy allows them; BadAction with the reason otherwise."""
    return list(checked(words).words)


def checked(words: Sequence[str]) -> KubectlCommand:
    """Parse and check the words. A request for a terminal is dropped, because there is none."""
    command = parse_command(words)
    if command.verb not in VERBS:
        reason = _REFUSED_VERBS.get(
            command.verb, "plug-ins do not run here; `kubectl help` names the commands there are"
        )
        raise BadAction(f"`kubectl {command.verb}` cannot be used here: {reason}")
    if command.subcommand == "edit-last-applied" or command.has(*_INTERACTIVE):
        raise BadAction("there is no terminal here to edit or confirm anything in; give the manifest with `-f -`")
    if command.verb == "create" and not command.subcommand and any(not argument.flag for argument in command.arguments):
        kinds = ", ".join(sorted(set(SUBCOMMANDS["create"].values())))
        raise BadAction(f"`kubectl create` creates {kinds}, or what `-f -` describes; plug-ins do not run here")
    for argument in command.arguments:
        _check(command, argument)
    if command.verb in ("exec", "run", "debug") and command.values("tty"):
        arguments = tuple(argument for argument in command.arguments if argument.flag != "tty")
        command = replace(command, arguments=arguments)
        command = replace(command, words=tuple(command.rewritten()))
    return command


def _check(command: KubectlCommand, argument: Argument) -> None:
    name, value = argument.flag, argument.value or ""
    if name in _REFUSED_FLAGS and (command.verb, command.subcommand, name) not in _ALLOWED_EXCEPTIONS:
        raise BadAction(f"kubectl --{name} cannot be used here: it refers to this machine, not to the cluster")
    if command.verb == "logs" and name == "follow" and command.has("follow"):
        raise BadAction("kubectl logs --follow would never end: use --tail or --since")
    if name == "filename" and value != "-":
        raise BadAction("there are no files here: pipe the manifest in, `kubectl apply -f - <<EOF ... EOF`")
    if name == "output-directory" and value not in ("-", "stdout"):
        raise BadAction("there are no files here: leave --output-directory out")
    if (name == "output" and "file" in value.split("=")[0]) or (name == "template" and "{{" not in value):
        raise BadAction("there are no files here: give the template itself")
