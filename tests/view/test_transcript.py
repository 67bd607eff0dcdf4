"""Event logs and trajectories as steps."""

from __future__ import annotations

from srearena.view.transcript import SessionTranscript, Step, trajectory_steps
from tests.view.results import session


def steps_of(*entries: dict[str, object]) -> list[Step]:
    return SessionTranscript.of(entries).steps


def test_an_action_has_its_answer_time_and_the_model_calls_that_led_to_it() -> None:
    transcript = SessionTranscript.of(session([("kubectl get pods", "none")]))
    stage, step = transcript.steps
    assert (stage.kind, stage.stage, transcript.model) == ("stage", "detection", "example/model-1")
    assert (step.command, step.answer, step.thought) == ("kubectl get pods", "none", "Thought 1: look at it.")
    assert (step.seconds, step.tokens_in, step.tokens_out, step.cost) == (0.5, 1000, 20, 0.0125)


def test_several_model_calls_before_an_action_are_added_up_and_none_is_lost() -> None:
    call = {"what": "model call", "tokens_in": 5, "tokens_out": 1, "cost": 0.5, "text": "hm"}
    first, last = steps_of(call, call, {"what": "action", "text": "wait(1)"}, {"what": "state", "text": "ok"}, call)
    assert (first.tokens_in, first.cost, first.thought) == (10, 1.0, "hm\n\nhm")
    assert (last.kind, last.tokens_in) == ("model", 5)


def test_a_submission_by_an_action_is_one_step_and_over_http_it_is_its_own() -> None:
    submission = {"what": "submission", "stage": "localization", "value": ["cart"]}
    (by_action,) = steps_of({"what": "action", "text": 'submit(["cart"])'}, submission, {"what": "state", "text": "x"})
    assert (by_action.kind, by_action.title) == ("submission", 'Submitted for localization: ["cart"]')
    (by_itself,) = steps_of(submission)
    assert (by_itself.kind, by_itself.command) == ("submission", '["cart"]')


def test_tool_calls_and_shell_commands_show_whether_they_failed() -> None:
    call = {"what": "tool call", "tool": "kubectl", "arguments": {"command": "get pods"}, "seconds": 1.5}
    good, bad, command = steps_of(
        {**call, "characters": 20}, {**call, "error": "refused"}, {"what": "command", "text": "false", "status": 1}
    )
    assert (good.failed, good.seconds, good.title) == (False, 1.5, 'kubectl {"command": "get pods"}')
    assert (bad.failed, bad.answer, command.failed) == (True, "refused", True)


def test_verdicts_and_innocent_changes_are_not_in_the_transcript_of_a_running_trial() -> None:
    assert steps_of({"what": "noise", "acts": ["x"]}, {"what": "verdict", "stage": "detection"}) == []


def test_an_error_and_an_unknown_entry_are_shown() -> None:
    action, note = steps_of(
        {"what": "action", "text": "kubectl get podz"},
        {"what": "state", "text": "Error: no such thing"},
        {"what": "compaction", "tokens_before": 10},
    )
    assert action.failed
    assert (note.kind, note.title, note.answer) == ("note", "compaction", '{"tokens_before": 10}')


def test_a_trajectory_has_one_step_for_each_call() -> None:
    steps = trajectory_steps(
        {
            "steps": [
                {"source": "user", "message": "Investigate."},
                {
                    "source": "agent",
                    "message": "Two things.",
                    "reasoning_content": "Hm.",
                    "tool_calls": [
                        {"tool_call_id": "1", "function_name": "logs", "arguments": {"pod": "a"}},
                        {"tool_call_id": "2", "function_name": "events", "arguments": {}},
                    ],
                    "observation": {
                        "results": [
                            {"source_call_id": "2", "content": "second"},
                            {"source_call_id": "1", "content": "first"},
                        ]
                    },
                    "metrics": {"prompt_tokens": 7, "completion_tokens": 3, "cost_usd": 0.1},
                    "extra": {"failed_calls": ["2"]},
                },
            ]
        }
    )
    message, first, second = steps
    assert message.answer == "Investigate."
    assert (first.command, first.answer, first.thought) == ('logs {"pod": "a"}', "first", "Hm.\n\nTwo things.")
    assert (first.tokens_in, first.cost, first.failed) == (7, 0.1, False)
    assert (second.answer, second.thought, second.failed) == ("second", "", True)


def test_what_is_no_trajectory_has_no_steps() -> None:
    for document in (None, [], {"steps": 3}, {"steps": [1, "x"]}):
        assert trajectory_steps(document) == []
