"""What members of Social Network do from end to end."""

from __future__ import annotations

from typing import Any

from srearena.service.journeys import Answer, Journey, Visitor


def _register(visitor: Visitor, user: int) -> Answer:
    return visitor.send(
        "POST",
        "/wrk2-api/user/register",
        form={
            "first_name": "Kim",
            "last_name": f"Berg{user}",
            "username": f"kim_{user}",
            "password": f"pw{user}",
            "user_id": user,
        },
    )


def _timeline(visitor: Visitor, kind: str, user: int) -> tuple[Answer, list[dict[str, Any]]]:
    answer = visitor.send("GET", f"/wrk2-api/{kind}-timeline/read", {"user_id": user, "start": 0, "stop": 10})
    answer.must(answer.status == 200, "a timeline must be readable")
    found = answer.document
    return answer, found if isinstance(found, list) else []


def post_to_followers(visitor: Visitor) -> None:
    """Two people register; one follows the other, whose post appears on both timelines, and on no stranger's."""
    author, reader = visitor.marker * 2, visitor.marker * 2 + 1
    for user in (author, reader):
        registered = _register(visitor, user)
        registered.must(registered.status == 200, "a new user must be registered")
    again = _register(visitor, author)
    again.must(again.status >= 400, "a name that is taken must be refused")
    followed = visitor.send(
        "POST", "/wrk2-api/user/follow", form={"user_name": f"kim_{reader}", "followee_name": f"kim_{author}"}
    )
    followed.must(followed.status == 200, "one user must be able to follow another")
    text = f"good morning {visitor.marker}"
    composed = visitor.send(
        "POST",
        "/wrk2-api/post/compose",
        form={
            "username": f"kim_{author}",
            "user_id": author,
            "text": text,
            "media_ids": "[]",
            "media_types": "[]",
            "post_type": 0,
        },
    )
    composed.must(composed.status == 200, "a post must be accepted")
    for kind, user in (("user", author), ("home", reader)):
        answer, posts = _timeline(visitor, kind, user)
        found = [post for post in posts if post.get("text") == text]
        answer.must(bool(found), f"the post must be on the {kind} timeline")
        answer.must(
            str(found[0].get("creator", {}).get("username")) == f"kim_{author}", "the post must name its author"
        )
    answer, posts = _timeline(visitor, "user", reader)
    answer.must(not posts, "someone who has posted nothing must have an empty timeline")


def compose_nothing(visitor: Visitor) -> None:
    """A post without a text is refused."""
    answer = visitor.send("POST", "/wrk2-api/post/compose", form={"username": "kim", "user_id": visitor.marker})
    answer.must(answer.status == 400, "a post without a text must be refused")


JOURNEYS = (Journey("post to followers", post_to_followers), Journey("compose nothing", compose_nothing))
