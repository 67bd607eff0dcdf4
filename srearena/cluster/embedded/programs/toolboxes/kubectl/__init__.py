"""kubectl inside a pod: the commands that scripts and CronJobs in a cluster use, with the pod's own identity."""

from srearena.cluster.embedded.programs.toolboxes.kubectl.program import Kubectl

__all__ = ["Kubectl"]
