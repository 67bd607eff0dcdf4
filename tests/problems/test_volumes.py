"""Volumes that are gone: putting the very same ones back is a repair, as new claims are."""

from __future__ import annotations

from tests.problems.broken_shop import broken, judged, names


def test_claims_are_lost_with_their_volumes_and_bound_again_when_these_come_back() -> None:
    with broken("redeploy_without_PV") as problem:

        def phases() -> set[str]:
            claims = problem.kubernetes.list("persistentvolumeclaims", problem.namespace)
            return {claim["status"]["phase"] for claim in claims}

        assert phases() == {"Lost"}
        assert "readiness" in names(judged(problem))
        problem.recover_fault()
        problem.cluster.wait(60)
        assert phases() == {"Bound"}
        healed = judged(problem)
        assert healed.passed, healed.reasons
