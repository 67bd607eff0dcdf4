"""Ground truth of incidents: one class and one reader for recordings, live problems, the judge and the leaderboard.

model     `GroundTruth` and its parts
parsing   documents in the ITBench formats (flat, `itbench.io/v1`, `itbench.io/v2`)
files     where ground truth files are, and how they are read
kinds     canonical names of Kubernetes kinds
"""

from srearena.ground_truth.model import Alert, Fault, GroundTruth, Group, Propagation

__all__ = ["Alert", "Fault", "GroundTruth", "Group", "Propagation"]
