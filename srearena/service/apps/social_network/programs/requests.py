"""The requests to the web server of Social Network: what they read and write, and what they answer.

Written after the public API of DeathStarBench's nginx scripts and the collections and keys of its services: posts are
in MongoDB with memcached in front, timelines in MongoDB and Redis, the social graph in both, users in MongoDB.
"""

from __future__ import annotations

import json
import re
from typing import Any

from srearena.cluster.program_models import HttpResponse
from srearena.cluster.program_models.application_data import Exchange, handles
from srearena.service.apps.social_network.programs.data_sets import APPLICATION, digest

_PROGRAM = "nginx-web-server"
_MENTION = re.compile(r"@[a-zA-Z0-9_-]+")
_URL = re.compile(r"https?://[a-zA-Z0-9_\-./?=&%]+")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def _text(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(status, f"{text}\n".encode(), {"Content-Type": "text/plain"})


def _missing(fields: dict[str, str], *names: str) -> bool:
    return any(not fields.get(name) for name in names)


def _whole(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() else 0


# Posts


@handles(APPLICATION, _PROGRAM, "compose")
def compose(exchange: Exchange) -> HttpResponse:
    form = exchange.form
    if _missing(form, "user_id", "username", "post_type", "text"):
        return _text("Incomplete arguments", 400)
    moment = int(exchange.now * 1000)
    text, mentions = form["text"], _mentioned(exchange, form["text"])
    text, urls = _shortened(exchange, text)
    post: dict[str, Any] = {
        "post_id": (moment << 12) + exchange.random.getrandbits(12),
        "timestamp": moment,
        "text": text,
        "req_id": exchange.random.getrandbits(62),
        "post_type": _whole(form["post_type"]),
        "creator": {"user_id": _whole(form["user_id"]), "username": form["username"]},
        "urls": urls,
        "user_mentions": mentions,
        "media": _media(form),
    }
    exchange.mongo("post-storage-service", "post", "post-storage-mongodb", "write").insert(post)
    _write_user_timeline(exchange, _whole(form["user_id"]), post)
    receivers = set(_followers(exchange, _whole(form["user_id"])))
    receivers |= {int(mention["user_id"]) for mention in mentions}
    timeline = exchange.redis("home-timeline-service", "home-timeline-redis", "write")
    for receiver in sorted(receivers):
        timeline.command("ZADD", receiver, moment, post["post_id"])
    return _text("Successfully upload post")


def _mentioned(exchange: Exchange, text: str) -> list[dict[str, Any]]:
    names = sorted({found[1:] for found in _MENTION.findall(text)})
    if not names:
        return []
    users = exchange.mongo("user-mention-service", "user", "user-mongodb")
    known = (users.find_one({"username": name}) for name in names)
    return [{"user_id": user["user_id"], "username": user["username"]} for user in known if user is not None]


def _shortened(exchange: Exchange, text: str) -> tuple[str, list[dict[str, str]]]:
    urls = []
    for long in dict.fromkeys(_URL.findall(text)):
        short = "http://short-url/" + "".join(exchange.random.choices(_LETTERS, k=10))
        urls.append({"shortened_url": short, "expanded_url": long})
        text = text.replace(long, short)
    if urls:
        exchange.mongo("url-shorten-service", "url-shorten", "url-shorten-mongodb", "write").insert(*urls)
    return text, urls


def _media(form: dict[str, str]) -> list[dict[str, Any]]:
    try:
        ids, kinds = json.loads(form.get("media_ids") or "[]"), json.loads(form.get("media_types") or "[]")
    except ValueError:
        return []
    return [{"media_id": _whole(str(i)), "media_type": str(kind)} for i, kind in zip(ids, kinds, strict=False)]


def _write_user_timeline(exchange: Exchange, user: int, post: dict[str, Any]) -> None:
    entry = {"post_id": post["post_id"], "timestamp": post["timestamp"]}
    timelines = exchange.mongo("user-timeline-service", "user-timeline", "user-timeline-mongodb", "write")
    timelines.update({"user_id": user}, {"$push": {"posts": entry}}, upsert=True)
    redis = exchange.redis("user-timeline-service", "user-timeline-redis", "write")
    redis.command("ZADD", user, post["timestamp"], post["post_id"])


# Timelines


@handles(APPLICATION, _PROGRAM, "timeline")
def read_user_timeline(exchange: Exchange) -> HttpResponse:
    query = exchange.query
    if _missing(query, "user_id", "start", "stop"):
        return _text("Incomplete arguments", 400)
    user, start, stop = (_whole(query[name]) for name in ("user_id", "start", "stop"))
    if stop <= start or start < 0:
        return _posts(exchange, [])
    redis = exchange.redis("user-timeline-service", "user-timeline-redis")
    ids = redis.texts("ZREVRANGE", user, start, stop - 1)
    if len(ids) < stop - start:
        found = exchange.mongo("user-timeline-service", "user-timeline", "user-timeline-mongodb").find_one(
            {"user_id": user}
        )
        newest = list(reversed(found["posts"]))[start:stop] if found is not None else []
        ids = list(dict.fromkeys((*ids, *(str(entry["post_id"]) for entry in newest))))
    return _posts(exchange, ids)


@handles(APPLICATION, _PROGRAM, "home")
def read_home_timeline(exchange: Exchange) -> HttpResponse:
    query = exchange.query
    if _missing(query, "user_id", "start", "stop"):
        return _text("Incomplete arguments", 400)
    user, start, stop = (_whole(query[name]) for name in ("user_id", "start", "stop"))
    if stop <= start or start < 0:
        return _posts(exchange, [])
    redis = exchange.redis("home-timeline-service", "home-timeline-redis")
    return _posts(exchange, redis.texts("ZREVRANGE", user, start, stop - 1))


def _posts(exchange: Exchange, ids: list[str]) -> HttpResponse:
    """The posts as JSON; lua-cjson writes an empty table as an object."""
    posts = _stored_posts(exchange, ids) if ids else []
    body = json.dumps(posts, separators=(",", ":")) if posts else "{}"
    return HttpResponse(200, f"{body}\n".encode(), {"Content-Type": "application/json"})


def _parsed(cached: bytes | None) -> dict[str, Any] | None:
    """A cached post; None where there is none, or an operator has stored something else under the key."""
    try:
        post = json.loads(cached) if cached is not None else None
    except ValueError:
        return None
    return post if isinstance(post, dict) else None


def _stored_posts(exchange: Exchange, ids: list[str]) -> list[dict[str, Any]]:
    cache = exchange.memcached("post-storage-service", "post-storage-memcached")
    posts = []
    for post_id in ids:
        cached = _parsed(cache.get(post_id))
        if cached is not None:
            posts.append(cached)
            continue
        found = exchange.mongo("post-storage-service", "post", "post-storage-mongodb").find_one(
            {"post_id": _whole(post_id)}
        )
        if found is not None:
            shown = {key: value for key, value in found.items() if key != "_id"}
            shown["post_id"], shown["req_id"] = str(found["post_id"]), str(found["req_id"])
            cache.set(post_id, json.dumps(shown))
            posts.append(shown)
    return posts


# Users and the social graph


@handles(APPLICATION, _PROGRAM, "register")
def register(exchange: Exchange) -> HttpResponse:
    form = exchange.form
    if _missing(form, "first_name", "last_name", "username", "password", "user_id"):
        return _text("Incomplete arguments", 400)
    users = exchange.mongo("user-service", "user", "user-mongodb", "write")
    if users.find_one({"username": form["username"]}) is not None:
        return _text(f"User registration failure: User {form['username']} already existed", 500)
    salt = "".join(exchange.random.choices(_LETTERS, k=32))
    user = _whole(form["user_id"])
    users.insert(
        {
            "user_id": user,
            "first_name": form["first_name"],
            "last_name": form["last_name"],
            "username": form["username"],
            "salt": salt,
            "password": digest(form["password"], salt),
        }
    )
    graph = exchange.mongo("social-graph-service", "social-graph", "social-graph-mongodb", "write")
    graph.insert({"user_id": user, "followers": [], "followees": []})
    return _text("Success!")


@handles(APPLICATION, _PROGRAM, "login")
def login(exchange: Exchange) -> HttpResponse:
    form = exchange.form
    if _missing(form, "username", "password"):
        return _text("Incomplete arguments", 400)
    user = exchange.mongo("user-service", "user", "user-mongodb").find_one({"username": form["username"]})
    if user is None:
        return _text("User login failure: The user is not registered yet", 500)
    if user["password"] != digest(form["password"], user["salt"]):
        return _text("User login failure: Incorrect username or password", 500)
    return _text("Login success")


@handles(APPLICATION, _PROGRAM, "follow")
def follow(exchange: Exchange) -> HttpResponse:
    pair = _pair(exchange)
    if pair is None:
        return _text("Incomplete arguments", 400)
    user, followee = pair
    graph = exchange.mongo("social-graph-service", "social-graph", "social-graph-mongodb", "write")
    moment = int(exchange.now * 1000)
    for one, field, other in ((user, "followees", followee), (followee, "followers", user)):
        graph.update({"user_id": one}, {"$push": {field: {"user_id": other, "timestamp": moment}}}, upsert=True)
    redis = exchange.redis("social-graph-service", "social-graph-redis", "write")
    redis.command("ZADD", f"{user}:followees", moment, followee)
    if redis.texts("ZRANGE", f"{followee}:followers", 0, 0):
        redis.command("ZADD", f"{followee}:followers", moment, user)
    return _text("Success!")


@handles(APPLICATION, _PROGRAM, "unfollow")
def unfollow(exchange: Exchange) -> HttpResponse:
    pair = _pair(exchange)
    if pair is None:
        return _text("Incomplete arguments", 400)
    user, followee = pair
    graph = exchange.mongo("social-graph-service", "social-graph", "social-graph-mongodb", "write")
    for one, field, other in ((user, "followees", followee), (followee, "followers", user)):
        graph.update({"user_id": one}, {"$pull": {field: {"user_id": other}}})
    redis = exchange.redis("social-graph-service", "social-graph-redis", "write")
    redis.command("ZREM", f"{user}:followees", followee)
    redis.command("ZREM", f"{followee}:followers", user)
    return _text("Success!")


def _pair(exchange: Exchange) -> tuple[int, int] | None:
    """The two users of a request, given by number or by name; None where one is missing."""
    form = exchange.form
    if not _missing(form, "user_id", "followee_id"):
        return _whole(form["user_id"]), _whole(form["followee_id"])
    if _missing(form, "user_name", "followee_name"):
        return None
    users = exchange.mongo("user-service", "user", "user-mongodb")
    found = [users.find_one({"username": form[name]}) for name in ("user_name", "followee_name")]
    numbers = [int(user["user_id"]) for user in found if user is not None]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _followers(exchange: Exchange, user: int) -> list[int]:
    redis = exchange.redis("social-graph-service", "social-graph-redis")
    cached = redis.texts("ZRANGE", f"{user}:followers", 0, -1)
    if cached:
        return [_whole(number) for number in cached]
    found = exchange.mongo("social-graph-service", "social-graph", "social-graph-mongodb").find_one({"user_id": user})
    followers = list(found["followers"]) if found is not None else []
    for follower in followers:
        redis.command("ZADD", f"{user}:followers", follower.get("timestamp", 0), follower["user_id"])
    return [int(follower["user_id"]) for follower in followers]
