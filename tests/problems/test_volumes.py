"""Deleted volumes and failing disks."""

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


def test_a_disk_that_fails_ends_the_databases_on_it_until_it_is_well() -> None:
    with broken("latent_sector_error") as problem:
        labels = "io.kompose.service=mongodb-rate"
        (pod,) = problem.kubernetes.list("pods", problem.namespace, labels=labels)
        log = problem.kubernetes.logs(pod["metadata"]["name"], problem.namespace)
        assert "Input/output error" in log
        assert [entity.name for entity in problem.roots] == [pod["spec"]["nodeName"]]
        problem.recover_fault()
        problem.cluster.wait(400)
        (pod,) = problem.kubernetes.list("pods", problem.namespace, labels=labels)
        assert pod["status"]["containerStatuses"][0]["ready"]
