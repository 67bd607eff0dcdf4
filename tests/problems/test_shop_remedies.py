"""Fake repairs fail; valid repairs other than the reference remedy pass."""

from __future__ import annotations

import json

from tests.problems.broken_shop import broken, judged, names, typed


def test_skipping_the_backlog_of_a_flooded_topic_is_no_remedy_and_undoing_the_flag_is() -> None:
    with broken("kafka_queue_problems") as problem:
        problem.kubernetes.scale("deployments", "fraud-detection", 0, problem.namespace)
        problem.cluster.wait(60)
        reset = "kafka-consumer-groups.sh --bootstrap-server localhost:9092 --group fraud-detection --topic orders"
        typed(problem, "kafka", "sh", "-c", f"/opt/kafka/bin/{reset} --reset-offsets --to-latest --execute")
        problem.kubernetes.scale("deployments", "fraud-detection", 1, problem.namespace)
        problem.cluster.wait(60)
        assert names(judged(problem)) == {"consumption", "flag"}
        problem.recover_fault()
        problem.cluster.wait(120)
        healed = judged(problem)
        assert healed.passed, healed.reasons


def test_setting_the_old_password_again_is_no_remedy_for_a_rotation() -> None:
    with broken("secret_rotation_stale_env_credentials_astronomy_shop") as problem:
        alter = "ALTER USER otelu WITH PASSWORD 'otelp'"
        assert typed(problem, "postgresql", "psql", "-U", "root", "otel", "-c", alter).ok
        problem.cluster.wait(60)
        assert "old-password" in names(judged(problem))


def test_ending_a_lock_is_no_remedy_while_the_job_takes_it_again() -> None:
    with broken("postgres_lock_contention_product_catalog") as problem:
        end = (
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted "
            "AND pid <> pg_backend_pid()"
        )
        assert typed(problem, "postgresql", "psql", "-U", "root", "otel", "-c", end).ok
        problem.cluster.wait(60)
        assert "frontend" in names(judged(problem))
        problem.kubernetes.delete("jobs", "catalog-reindex", problem.namespace)
        problem.cluster.wait(120)
        healed = judged(problem)
        assert healed.passed, healed.reasons


def test_more_memory_for_the_broker_is_no_remedy_for_a_flood_of_records() -> None:
    with broken("kafka_producer_leak") as problem:
        roomy = {"name": "kafka", "resources": {"limits": {"memory": "4Gi"}}}
        template = {"spec": {"containers": [roomy]}}
        problem.kubernetes.patch("deployments", "kafka", {"spec": {"template": template}}, problem.namespace)
        problem.cluster.wait(120)
        assert "measure" in names(judged(problem))


def test_telling_the_client_the_password_is_as_good_as_taking_it_away() -> None:
    with broken("valkey_auth_disruption") as problem:
        server = {"name": "valkey-cart", "args": ["valkey-server", "--requirepass", "n3w"]}
        client = {"name": "cart", "env": [{"name": "VALKEY_ADDR", "value": "valkey-cart:6379,password=n3w"}]}
        for name, container in (("valkey-cart", server), ("cart", client)):
            template = {"spec": {"containers": [container]}}
            problem.kubernetes.patch("deployments", name, {"spec": {"template": template}}, problem.namespace)
            problem.cluster.wait(60)
        healed = judged(problem)
        assert healed.passed, healed.reasons


def test_a_flag_turned_on_the_page_of_flags_comes_back_with_the_next_pod_of_flagd() -> None:
    with broken("astronomy_shop_ad_service_failure") as problem:
        assert names(judged(problem)) == {"flag", "requests"}
        page = ("flagd", 4000, "/feature/api/read", problem.namespace)
        flags = json.loads(problem.kubernetes.request_service(*page).text)
        flags["flags"]["adFailure"]["defaultVariant"] = "off"
        body = json.dumps({"data": flags}).encode()
        write = ("flagd", 4000, "/feature/api/write", problem.namespace)
        assert problem.kubernetes.request_service(*write, method="POST", body=body).ok
        problem.cluster.wait(60)
        assert names(judged(problem)) == {"lasting"}
        problem.recover_fault()
        healed = judged(problem)
        assert healed.passed, healed.reasons


def test_pictures_are_held_back_for_pages_only_and_sending_no_browsers_is_no_remedy() -> None:
    with broken("astronomy_shop_ad_service_image_slow_load") as problem:
        assert names(judged(problem)) == {"flag", "measure"}
        picture = "/images/products/NationalParkFoundationExplorascope.jpg"
        reply = problem.kubernetes.request_service("frontend-proxy", 8080, picture, problem.namespace)
        assert reply.ok and reply.seconds < 1, "the header that asks for the delay comes from the page"
        browsing = {"name": "load-generator", "env": [{"name": "LOCUST_BROWSER_TRAFFIC_ENABLED", "value": "false"}]}
        template = {"spec": {"containers": [browsing]}}
        problem.kubernetes.patch("deployments", "load-generator", {"spec": {"template": template}}, problem.namespace)
        problem.cluster.wait(180)
        assert "measure" in names(judged(problem))
        browsing["env"] = [{"name": "LOCUST_BROWSER_TRAFFIC_ENABLED", "value": "true"}]
        problem.kubernetes.patch("deployments", "load-generator", {"spec": {"template": template}}, problem.namespace)
        problem.recover_fault()
        healed = judged(problem)
        assert healed.passed, healed.reasons


def test_deleting_the_topic_is_no_remedy_for_one_bad_record_and_going_on_behind_it_is() -> None:
    with broken("kafka_poison_pill_hol_block") as problem:
        assert {"readiness", "progress"} <= names(judged(problem))
        problem.recover_fault()
        healed = judged(problem)
        assert healed.passed, healed.reasons
        problem.fault_injected = True
        tool = ("/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", "localhost:9092", "--delete", "--topic")
        assert typed(problem, "kafka", *tool, "orders-fulfillment").status == 0
        problem.cluster.wait(120)
        assert "progress" in names(judged(problem))


def test_taking_the_idle_pods_away_is_no_remedy_while_nobody_follows_the_pods() -> None:
    with broken("workload_imbalance") as problem:
        assert "measure" in names(judged(problem))
        problem.kubernetes.scale("deployments", "frontend", 1, problem.namespace)
        problem.cluster.wait(180)
        assert not judged(problem).passed, "a fresh pod is not in anybody's rules"
        problem.recover_fault()
        problem.cluster.wait(60)
        healed = judged(problem)
        assert healed.passed, healed.reasons
