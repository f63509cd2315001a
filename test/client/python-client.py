"""The rules of the Python client that need no server: python3 -m unittest test/client/python-client.py

They hold for the client that blocks, of which the one that awaits differs by its words alone (`scripts/blocking-client.py`).
"""

from __future__ import annotations

import json
import tempfile
import unittest
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, fields
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from agent_engine import AgentEngine, AgentEngineError, ApiError, ConnectionFailed, Event, FlowOutcome, RunFailed, RunLost, Settings, TextPieces
from agent_engine._documents import Page, PlanStep, RunResult, Start, TenantEvent, change_of, progress_of, steps_of
from agent_engine._events import Outage, is_end_of_flow, is_end_of_run, is_passing
from agent_engine._requests import Call, backoff, pause_before_repeat
from agent_engine._sse import SseEvent, SseParser
from agent_engine.errors import WrongAnswer

Json = dict[str, Any]
Answer = httpx.Response | Callable[[httpx.Request], httpx.Response]

PLAN: Json = {"id": "plan_1", "status": "queued", "steps": [{"id": "a", "title": "first"}, {"id": "b"}], "step_statuses": {"a": "pending", "b": "pending"}}
ASK: Json = {"id": "p", "tool_use_id": "c", "tool_name": "Write", "input": {"path": "a"}, "message": "Write a", "expires_at": "2026-11-25T10:00:00Z"}


def ok(body: object = None, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, headers=headers, json={} if body is None else body)


def refusal(status: int, **headers: str) -> httpx.Response:
    return ok({"error": {"type": "some_error", "message": "no", "code": "c", "param": "/a", "problems": [{"param": "/b", "message": "m"}]}}, status, **headers)


def stream(*events: tuple[object, str, object], status: int = 200, **headers: str) -> httpx.Response:
    text = "".join(f"id: {id}\nevent: {event}\ndata: {json.dumps(data)}\n\n" for id, event, data in events)
    return httpx.Response(status, headers={"content-type": "text/event-stream", **headers}, text=f"retry: 0\n\n{text}")


def run_stream(*events: tuple[object, str, object]) -> httpx.Response:
    return stream(*events, **{"x-run-id": "run_1"})


def broken(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("broken", request=request)


DONE: Json = {"stop_reason": "end_turn"}


class Model:
    """As a class of pydantic has it."""

    @staticmethod
    def model_json_schema() -> Json:
        return {"type": "object"}

    @staticmethod
    def model_validate(value: object) -> tuple[str, object]:
        return "made of", value


class Server:
    """Answers requests one after the other. A request too many fails."""

    def __init__(self, *answers: Answer, **options: Any) -> None:
        self.requests: list[httpx.Request] = []
        self._left = list(answers)
        self.engine = AgentEngine("http://engine.test/v1/", client=httpx.Client(transport=httpx.MockTransport(self._answer)), **options)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self._left.pop(0)
        return answer if isinstance(answer, httpx.Response) else answer(request)

    @property
    def sent(self) -> list[str]:
        return [f"{request.method} {request.url.raw_path.decode().removeprefix('/v1')}" for request in self.requests]

    def body(self, at: int = 0) -> Any:
        content = self.requests[at].content
        return json.loads(content) if content else None


def outcome_of(outcome: FlowOutcome) -> tuple[bool, Any, list[Json]]:
    return outcome.ok, outcome.output, outcome.problems


#: A call, the request that it sends with its body, the answer, and what it returns.
ROWS: Sequence[tuple[Callable[[AgentEngine], Any], str, Any, Json | httpx.Response, Any]] = (
    (lambda it: it.me(), "GET /me", None, {"tenant": "t"}, {"tenant": "t"}),
    (lambda it: it.runs.start("hi", model="m"), "POST /agent/run", {"prompt": "hi", "model": "m", "background": True}, {"run_id": "r"}, "r"),
    (lambda it: it.runs.get("a/b"), "GET /runs/a%2Fb", None, {"status": "done"}, {"status": "done"}),
    (lambda it: it.runs.list(status="done", flag=True, no=None).all(), "GET /runs?status=done&flag=true", None, {"runs": [1], "next_cursor": None}, [1]),
    (lambda it: it.runs.steer("r", "stop"), "POST /runs/r/steer", {"prompt": "stop"}, {"id": "s"}, {"id": "s"}),
    (lambda it: it.runs.cancel("r"), "DELETE /runs/r", None, httpx.Response(204), None),
    (lambda it: it.run("hi", temperature=0).result().output, "POST /agent/run", {"prompt": "hi", "temperature": 0}, run_stream((1, "text", {"text": "a"}), (2, "done", DONE)), "a"),
    (lambda it: it.runs.resume("r", after=7).result().usage, "GET /runs/r/events", None, stream((8, "done", DONE)), DONE),
    (lambda it: it.estimate("hi"), "POST /agent/run?dry_run=true", {"prompt": "hi"}, {"budget": 1}, {"budget": 1}),
    (lambda it: it.sessions.open("s", messages=[{"role": "user"}]).id, "POST /sessions", {"session_id": "s", "messages": [{"role": "user"}]}, {"session_id": "t"}, "t"),
    (lambda it: it.sessions.open().id, "POST /sessions", {}, {"session_id": "t"}, "t"),
    (lambda it: it.sessions.open("s").id, "POST /sessions", {"session_id": "s"}, refusal(409), "s"),
    (lambda it: it.sessions.list(limit=2).page("c"), "GET /sessions?limit=2&cursor=c", None, {"sessions": [], "next_cursor": "d"}, None),
    (lambda it: it.flows.run("total", {"n": 1}, instance="main", model="m").output, "POST /flows/total/run", {"input": {"n": 1}, "provider_instance": "main", "model": "m"}, run_stream((1, "result", {"verdict": "ok", "output": 2})), 2),
    (lambda it: outcome_of(it.flows.run("t", {}, instance="i")), "POST /flows/t/run", {"input": {}, "provider_instance": "i"}, run_stream((1, "result", {"verdict": "no", "output": 2, "problems": [3]})), (False, None, [3])),
    (lambda it: it.flows.estimate("t", {}, instance="i"), "POST /flows/t/run?dry_run=true", {"input": {}, "provider_instance": "i"}, {"budget": 1}, {"budget": 1}),
    (lambda it: it.flows.get("t"), "GET /flows/t", None, {"name": "t"}, {"name": "t"}),
    (lambda it: it.flows.list().all(), "GET /flows", None, {"flows": [], "next_cursor": None}, []),
    (lambda it: it.plans.submit(PLAN).id, "POST /plans/submit", PLAN, {"id": "plan_1"}, "plan_1"),
    (lambda it: it.plans.estimate(PLAN), "POST /plans/submit?dry_run=true", PLAN, {"budget": 1}, {"budget": 1}),
    (lambda it: it.plans.check(PLAN), "POST /plans/check", PLAN, {"waves": []}, {"waves": []}),
    (lambda it: it.plans.list().all(), "GET /plans", None, {"plans": [1], "next_cursor": None}, [1]),
    (lambda it: it.plans.of("p").cancel(), "POST /plans/p/cancel", None, {}, None),
    (lambda it: it.plans.of("p").retry().id, "POST /plans/p/retry", None, {"id": "q"}, "q"),
    (lambda it: it.files.upload(b"x", name="a", expires_in_secs=60), "POST /files?name=a&expires_in_secs=60", None, {"file_id": "f"}, {"file_id": "f"}),
    (lambda it: it.files.get("f"), "GET /files/f", None, {"file_id": "f"}, {"file_id": "f"}),
    (lambda it: it.files.list().all(), "GET /files", None, {"files": [1], "next_cursor": None}, [1]),
    (lambda it: it.files.delete("f"), "DELETE /files/f", None, {}, None),
    (lambda it: it.dispatches.get("t"), "GET /dispatches/t", None, {"trace_id": "t"}, {"trace_id": "t"}),
    (lambda it: it.dispatches.list().all(), "GET /dispatches", None, {"dispatches": [1], "next_cursor": None}, [1]),
    (lambda it: it.usage(by="day").all(), "GET /usage?by=day", None, {"rows": [1], "next_cursor": None}, [1]),
    (lambda it: it.permissions.list().all(), "GET /permissions", None, {"permissions": [1], "next_cursor": None}, [1]),
    (lambda it: it.permissions.decided(since="2026").all(), "GET /permissions?state=decided&since=2026", None, {"permissions": [1], "next_cursor": None}, [1]),
    (lambda it: it.permissions.remembered().all(), "GET /permissions?state=remembered", None, {"remembered": [1], "next_cursor": None}, [1]),
    (lambda it: it.permissions.reply("s", "p", {"allow": True}), "POST /sessions/s/permissions/p", {"allow": True}, {}, None),
    (lambda it: it.permissions.forget("s", "Write"), "DELETE /permissions/remembered?session_id=s&tool_name=Write", None, {"count": 1}, {"count": 1}),
    (lambda it: it.request("PUT", "/a", query={"b": 1}, body=[1]), "PUT /a?b=1", [1], {"c": 1}, {"c": 1}),
)  # fmt: skip


class Requests(unittest.TestCase):
    def test_each_method_sends_its_request_and_returns_what_is_in_the_answer(self) -> None:
        for call, request, body, answer, made in ROWS:
            with self.subTest(request):
                server = Server(answer if isinstance(answer, httpx.Response) else ok(answer))
                result = call(server.engine)
                self.assertEqual(server.sent, [request])
                if not request.startswith("POST /files"):
                    self.assertEqual(server.body(), body)
                if made is not None:
                    self.assertEqual(result, made)

    def test_an_answer_without_the_field_that_it_has_to_have_is_one_of_something_else(self) -> None:
        for call, request, _, answer, _ in ROWS:
            if isinstance(answer, httpx.Response) or answer == {}:
                continue
            with self.subTest(request), self.assertRaises(ConnectionFailed if "/a?" not in request else AssertionError):
                call(Server(ok({"other": 1})).engine)
                self.fail("any object is an answer to a request of the caller's own")

    def test_a_session_sends_its_requests_below_its_path(self) -> None:
        done = run_stream((1, "done", DONE))
        server = Server(ok({"session_id": "a/b"}), done, ok({"session_id": "s"}), ok({"messages": [], "next_cursor": None}), ok({"session_id": "c"}), ok({"session_id": "s"}), httpx.Response(204))
        chat = server.engine.sessions.open("a/b")
        chat.send("hi", model="m").result()
        chat.get()
        chat.messages(head="m1").all()
        self.assertEqual(chat.fork("m1", id="c").id, "c")
        chat.rename("new")
        chat.delete()
        own = "/sessions/a%2Fb"
        self.assertEqual(server.sent[1:], [f"POST {own}/messages", f"GET {own}", f"GET {own}/messages?head=m1", f"POST {own}/fork", f"PATCH {own}", f"DELETE {own}"])
        self.assertEqual([server.body(at) for at in (1, 4, 5)], [{"prompt": "hi", "model": "m"}, {"at": "m1", "session_id": "c"}, {"title": "new"}])

    def test_a_session_is_joined_only_where_it_exists(self) -> None:
        for status, id in ((403, "s"), (409, None)):
            with self.assertRaises(ApiError):
                Server(refusal(status)).engine.sessions.open(id)

    def test_what_begins_something_has_a_key_made_at_random_unless_given(self) -> None:
        starts: Sequence[tuple[Callable[..., Any], Json]] = (
            (lambda it, **key: it.runs.start("hi", **key), {"run_id": "r"}),
            (lambda it, **key: it.runs.steer("r", "hi", **key), {"id": "s"}),
            (lambda it, **key: it.plans.submit({}, **key), {"id": "p"}),
        )
        for start, answer in starts:
            keys = []
            for key in ({}, {"idempotency_key": "k"}, {"idempotency_key": None}):
                server = Server(ok(answer))
                start(server.engine, **key)
                keys.append(server.requests[0].headers.get("idempotency-key"))
            self.assertRegex(keys[0], "^auto-[0-9a-f]{32}$")
            self.assertEqual(keys[1:], ["k", None])

    def test_a_list_is_read_page_by_page_up_to_as_many_as_are_wanted(self) -> None:
        pages = ok({"runs": [1, 2], "next_cursor": "c"}), ok({"runs": [3], "next_cursor": None})
        server = Server(*pages)
        self.assertEqual(server.engine.runs.list().all(), [1, 2, 3])
        self.assertEqual(server.sent, ["GET /runs", "GET /runs?cursor=c"])
        server = Server(*pages)
        self.assertEqual((server.engine.runs.list().all(2), server.engine.runs.list().all(0), len(server.sent)), ([1, 2], [], 1))

    def test_a_file_is_sent_as_its_bytes_under_its_name(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "notes.txt"
            path.write_bytes(b"x" * 100_000)
            server = Server(ok({"file_id": "f"}), ok({"file_id": "g"}), ok({"file_id": "h"}))
            server.engine.files.upload(path, name="other")
            self.assertEqual(server.engine.files.attach(str(path), str(path)), [{"file_id": "g"}, {"file_id": "h"}])
            self.assertEqual(server.sent, ["POST /files?name=other", "POST /files?name=notes.txt", "POST /files?name=notes.txt"])
            self.assertEqual([len(each.content) for each in server.requests], [100_000] * 3)
            self.assertEqual(server.requests[0].headers["content-type"], "application/octet-stream")
            with self.assertRaises(FileNotFoundError):
                server.engine.files.upload(Path(folder) / "none")


class Transport(unittest.TestCase):
    def test_the_headers_of_a_request(self) -> None:
        server = Server(ok({"tenant": "t"}), run_stream((1, "done", DONE)), token="secret", headers=lambda: {"x-team": "blue"})
        server.engine.me()
        server.engine.run("hi", traceparent="00-1", idempotency_key="k").result()
        first, second = ({name: each.headers.get(name) for name in ("accept", "content-type", "authorization", "x-team", "traceparent", "idempotency-key")} for each in server.requests)
        common = {"authorization": "Bearer secret", "x-team": "blue"}
        self.assertEqual(first, {"accept": "application/json", "content-type": None, "traceparent": None, "idempotency-key": None, **common})
        self.assertEqual(second, {"accept": "text/event-stream", "content-type": "application/json", "traceparent": "00-1", "idempotency-key": "k", **common})

    def test_the_token_is_asked_for_before_each_request_and_once_more_after_a_401(self) -> None:
        asked: list[str | None] = []

        def token(refused: str | None) -> str:
            asked.append(refused)
            return "new" if refused else "old"

        refused = httpx.Response(401, content=iter([b""]))
        server = Server(refused, ok(), refusal(401), refusal(401), token=token)
        server.engine.request("GET", "/a")
        self.assertTrue(refused.is_closed)
        self.assertEqual(asked, [None, "old"])
        self.assertEqual([each.headers["authorization"] for each in server.requests], ["Bearer old", "Bearer new"])
        with self.assertRaises(ApiError):
            server.engine.request("GET", "/a")
        with self.assertRaises(ApiError):
            Server(refusal(401), token="fixed").engine.request("GET", "/a")

    def test_a_refusal_has_what_the_server_says_and_one_of_a_proxy_its_text(self) -> None:
        with self.assertRaises(ApiError) as caught:
            Server(refusal(400, **{"x-request-id": "r1", "retry-after": "7"})).engine.request("GET", "/a")
        found = caught.exception
        self.assertEqual((str(found), found.status, found.type, found.code, found.param, found.request_id, found.retry_after), ("no", 400, "some_error", "c", "/a", "r1", 7.0))
        self.assertEqual(found.problems, [{"param": "/b", "message": "m"}])
        for text in ("<h1>too large</h1>" * 20, '{"error": 1}', "[]", ""):
            with self.assertRaises(ApiError) as caught:
                Server(httpx.Response(413, headers={"retry-after": "soon"}, text=text)).engine.request("GET", "/a")
            found = caught.exception
            self.assertEqual((str(found), found.type, found.problems, found.retry_after), (f"413 {text[:200]}".strip(), "unknown", [], None))

    def test_what_is_sent_and_returned_is_not_changed_by_anyone(self) -> None:
        progress = progress_of(PLAN, {"a": PlanStep("a", "done")}, "queued")
        made = Settings(), Call(), SseEvent("1", "a", ""), Event(1, "a", {}), TenantEvent("1", "a", {}), Page([], None), progress, progress.steps[0]
        for each in (*made, Start("/", {}, None), RunResult("r", "", None, "end_turn"), FlowOutcome(True, 1, [], {})):
            with self.assertRaises(FrozenInstanceError):
                setattr(each, fields(each)[0].name, 1)

    def test_how_long_an_answer_may_take(self) -> None:
        self.assertEqual(Settings(), Settings(4, 30, 30, 45))
        server = Server(ok(), ok({"file_id": "f"}), ok({"file_id": "f"}), run_stream((1, "done", DONE)), settings=Settings(request=7, stall=9))
        server.engine.request("GET", "/a")
        server.engine.files.upload(b"x")
        server.engine.files.upload(b"x", timeout=3)
        server.engine.run("hi").result()
        self.assertEqual([each.extensions["timeout"]["read"] for each in server.requests], [7, 600, 3, 9])

    def test_its_own_connections_are_closed_and_those_of_a_given_client_are_not(self) -> None:
        for given in (None, httpx.Client()):
            with AgentEngine("http://engine.test", client=given) as engine:
                used = engine._io._client
            self.assertEqual(used.is_closed, given is None)
            used.close()

    def test_a_redirect_is_not_followed(self) -> None:
        for status in (300, 302):
            response = httpx.Response(status, headers={"location": "/page"}, content=iter([b""]))
            with self.assertRaisesRegex(ConnectionFailed, f"{status} /page"):
                Server(response).engine.request("GET", "/a")
            self.assertTrue(response.is_closed)
        page = httpx.Response(200, headers={"content-type": "text/html"}, content=iter([b"<html>"]))
        with self.assertRaisesRegex(ConnectionFailed, "text/html"):
            Server(page).engine.run("hi").result()
        self.assertTrue(page.is_closed)

    def test_requests_that_mean_the_same_twice_are_repeated(self) -> None:
        with patch("time.sleep") as sleep:
            for answer in (broken, refusal(429), refusal(500), refusal(503)):
                for method, key in (("GET", None), ("DELETE", None), ("POST", "k")):
                    server = Server(answer, ok({"fine": True}))
                    self.assertEqual(server.engine.request(method, "/a", idempotency_key=key), {"fine": True})
            server = Server(refusal(429), broken)
            with self.assertRaises(ConnectionFailed):
                server.engine.request("POST", "/a")
            server = Server(refusal(503), refusal(503), ok(), settings=Settings(attempts=2))
            with self.assertRaises(ApiError):
                server.engine.request("GET", "/a")
            self.assertEqual(len(server.sent), 2)
            sleep.reset_mock()
            Server(refusal(429, **{"retry-after": "60"}), ok()).engine.request("POST", "/a")
            sleep.assert_called_once_with(60.0)
            with self.assertRaises(ApiError):
                Server(refusal(429, **{"retry-after": "61"})).engine.request("GET", "/a")

    def test_what_is_repeated_and_after_which_pause(self) -> None:
        with patch("random.random", lambda: 1.0):
            self.assertEqual([backoff(failures, 0.25) for failures in (1, 2, 3, 9)], [0.25, 0.5, 1.0, 5.0])
            self.assertEqual(pause_before_repeat(ConnectionFailed(), "GET", False, 2), 0.5)
            for cause in (WrongAnswer("x"), AgentEngineError(), ApiError(404, {}, "")):
                self.assertIsNone(pause_before_repeat(cause, "GET", False, 1))
            self.assertIsNone(pause_before_repeat(ApiError(500, {}, ""), "PUT", False, 1))
        with patch("random.random", lambda: 0.0):
            self.assertEqual(backoff(1, 0.25), 0.125)

    def test_the_time_of_the_server_is_told_by_this_clock(self) -> None:
        for ahead, shift in ((3_600, 3_600), (-3_600, -3_600), (0, 0)):
            server = Server(ok(date=format_datetime(datetime.now(timezone.utc) + timedelta(seconds=ahead), usegmt=True)))
            server.engine.request("GET", "/a")
            there = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)
            self.assertAlmostEqual((there - server.engine.local_time("2026-01-01T01:00:00Z")).total_seconds(), shift, delta=2 if shift else 0)


class Streams(unittest.TestCase):
    def test_events_are_read_wherever_the_bytes_are_divided(self) -> None:
        text = ": hello\r\nid: 1\r\nevent: a\r\ndata: ö\r\ndata:  b\r\n\r\ndata\ndata:\n\nid: 2\0\nid\nretry: 5\nretry: x\n\rdata: c\r\rdata: cut"
        expected = [SseEvent("1", "a", "ö\n b"), SseEvent("1", "message", "\n"), SseEvent("", "message", "c")]
        for size in (1, 2, 3, 7, 500):
            parser, data = SseParser(), text.encode()
            found = [event for at in range(0, len(data), size) for event in parser.feed(data[at : at + size])]
            self.assertEqual((found, parser.retry), (expected, 0.005))
        with patch("agent_engine._sse.MAX_EVENT_CHARS", 9):
            parser = SseParser()
            parser.feed(b"data: 1\n\n" * 3)
            parser.feed(b"data: 123")
            with self.assertRaises(ValueError):
                parser.feed(b"4")
        parser = SseParser()
        parser.feed(b"x" * 32 * 1024 * 1024)
        self.assertRaises(ValueError, parser.feed, b"x")

    def test_the_text_of_a_run_comes_in_pieces_with_a_gap_between_blocks(self) -> None:
        def turn(number: int) -> Event:
            return Event(0, "turn_start", {"turn_number": number})

        def again(number: int) -> Event:
            return Event(0, "warning", {"code": "run_recovered", "detail": {"turn_number": number}})

        def say(kind: str, text: str) -> Event:
            return Event(0, kind, {"text": text})

        rows: Sequence[tuple[Sequence[Event], Sequence[str]]] = (
            ([say("text_delta", ""), say("text_delta", "on"), say("text", "one"), say("text", "two")], ["", "on", "e", "\n\ntwo"]),
            ([say("text_delta", "a"), say("text_delta", "b"), say("text", "ab")], ["a", "b", ""]),
            ([turn(1), say("text_delta", "a"), again(1), turn(1), say("text_delta", "b")], ["", "a", "", "", "\n\nb"]),
            ([turn(1), say("text_delta", "a"), again(2), say("text", "ab")], ["", "a", "", "b"]),
            ([say("text_delta", "a"), Event(0, "warning", {"code": "other"}), say("text_delta", "b")], ["a", "", "b"]),
        )
        for events, shown in rows:
            pieces = TextPieces()
            self.assertEqual([pieces.take(event) for event in events], shown)

    def test_which_error_ends_a_run_and_which_its_connection(self) -> None:
        for code, is_known, before, is_end in (
            ("provider_auth", True, None, True),
            ("relay_unavailable", False, None, True),
            ("relay_unavailable", True, "relay_unavailable", False),
            ("stream_gap", True, None, False),
            ("stream_gap", True, "internal", False),
            ("stream_gap", True, "stream_gap", True),
        ):
            self.assertEqual(is_end_of_run({"code": code}, is_known, before), is_end)
        self.assertEqual([is_end_of_flow(data, True, None) for data in ({"trace_id": "t"}, {})], [True, False])
        causes = (ConnectionFailed(), WrongAnswer("x"), ApiError(429, {}, ""), ApiError(500, {}, ""), ApiError(499, {}, ""), AgentEngineError())
        self.assertEqual([is_passing(cause) for cause in causes], [True, False, True, True, False, False])

    def test_a_stream_that_broke_is_given_up_in_time(self) -> None:
        now = 100.0
        with patch("time.monotonic", lambda: now), patch("random.random", lambda: 1.0):
            outage = Outage(resume=10, patience=30)
            self.assertEqual([outage.pause(None), outage.pause(ConnectionFailed())], [0.1, 0.2])
            self.assertEqual(outage.pause(ApiError(503, {"retry-after": "70"}, "")), 60)
            outage.retry = 2.0
            self.assertEqual(outage.pause(None), 2.0)
            self.assertEqual(outage.pause(ApiError(503, {}, "")), 0.4)
            now = 110.0
            self.assertEqual(outage.pause(None), 2.0)
            outage.is_answered()
            now = 120.1
            outage.pause(None)
            now = 130.2
            self.assertRaises(ConnectionFailed, outage.pause, None)
            outage.is_over()
            outage.is_answered()
            outage.retry = None
            self.assertEqual(outage.pause(None), 0.1)
            unanswered = Outage(resume=10, patience=99)
            unanswered.pause(None)
            now += 10.1
            self.assertRaises(ConnectionFailed, unanswered.pause, None)

    def test_a_server_that_answers_is_not_given_up_before_its_patience_is_over(self) -> None:
        with patch("time.sleep") as sleep, patch("time.monotonic", count(0, 20).__next__):
            events = (stream((at, "text_delta", {"text": "b"})) for at in range(2, 102))
            server = Server(run_stream((1, "text", {"text": "a"})), *[stream()] * 3, *events, stream((102, "done", DONE)))
            self.assertEqual((server.engine.run("hi").result().output, sleep.call_count), ("a", 104))

    def test_a_run_is_resumed_behind_its_last_event_and_ends_as_its_record_says(self) -> None:
        with patch("time.sleep"):
            server = Server(run_stream((1, "text_delta", {"text": "a"})), broken, stream((1, "text_delta", {"text": "a"}), (2, "text", {"text": "ab"}), (3, "done", DONE)))
            run = server.engine.run("hi")
            self.assertEqual(("".join(run.text()), run.id, run.last_event_id), ("ab", "run_1", 3))
            self.assertEqual(server.sent, ["POST /agent/run", "GET /runs/run_1/events", "GET /runs/run_1/events"])
            self.assertEqual([each.headers.get("last-event-id") for each in server.requests], [None, "1", "1"])
            record = {"status": "done", "input_tokens": 2, "output_tokens": 3, "cost_usd": 0.5, "turns": 4}
            result = Server(run_stream((1, "text", {"text": "a"})), httpx.Response(204), ok(record)).engine.run("hi").result()
            usage = {"total_input_tokens": 2, "total_output_tokens": 3, "total_tokens": 5, "cost_usd": 0.5, "turn_count": 4, "stop_reason": "end_turn"}
            self.assertEqual((result.output, result.usage, result.stop_reason), ("a", usage, "end_turn"))
            result = Server(run_stream(), httpx.Response(204), ok({"status": "done"})).engine.run("hi").result()
            self.assertEqual(result.usage, {**dict.fromkeys(usage, 0), "stop_reason": "end_turn"})
            unnamed = stream((1, "text", {"text": "a"}))
            server = Server(unnamed, run_stream((1, "text", {"text": "a"}), (2, "done", DONE)))
            self.assertEqual((server.engine.run("hi").result().run_id, server.sent), ("run_1", ["POST /agent/run"] * 2))
            server = Server(unnamed)
            with self.assertRaisesRegex(ConnectionFailed, "X-Run-ID"):
                server.engine.run("hi", idempotency_key=None).result()
            self.assertEqual(len(server.sent), 1)
            with self.assertRaises(RunFailed) as failed:
                Server(run_stream(), httpx.Response(204), ok({"status": "failed", "code": "timeout"})).engine.run("hi").result()
            self.assertEqual((failed.exception.code, failed.exception.run_id, str(failed.exception)), ("timeout", "run_1", "the run has ended: timeout"))
            run = Server(run_stream(), refusal(404)).engine.run("hi")
            for _ in range(2):
                with self.assertRaises(RunLost) as lost:
                    run.result()
                self.assertEqual(lost.exception.run_id, "run_1")
            with self.assertRaises(ApiError):
                Server(run_stream(), refusal(403)).engine.run("hi").result()

    def test_the_end_of_a_run(self) -> None:
        plan = Server(run_stream((1, "text", {"text": "a"}), (2, "text", {"text": "b"}), (3, "plan_queued", {"plan_id": "p", "note": "n"}))).engine.run("hi").result()
        self.assertEqual((plan.run_id, plan.output, plan.usage, plan.stop_reason, plan.plan_id, plan.note), ("run_1", "a\n\nb", None, "plan_queued", "p", "n"))
        error = {"error": "it failed", "code": "c", "suggestion": "wait", "retryable": True}
        run = Server(run_stream((1, "error", error))).engine.run("hi")
        seen = []
        with self.assertRaises(RunFailed) as failed:
            seen.extend(event.event for event in run)
        found = failed.exception
        self.assertEqual((str(found), found.code, found.suggestion, found.retryable), ("it failed", "c", "wait", True))
        found = RunFailed({}, None)
        self.assertEqual((str(found), found.code, found.suggestion, found.retryable), ("the run has failed", "internal", "", False))
        whole = run_stream((1, "text", {"text": "a"}), (2, "done", DONE))
        response = httpx.Response(200, headers=whole.headers, content=iter([whole.content]))
        with Server(response).engine.run("hi") as run:
            self.assertEqual((next(iter(run)).id, response.is_closed), (1, False))
        self.assertTrue(response.is_closed)
        response = httpx.Response(200, headers=whole.headers, content=iter([whole.content]))
        with self.assertRaises(ZeroDivisionError):
            Server(response).engine.flows.run("t", {}, instance="i", on_event=lambda _: 1 / 0)
        self.assertTrue(response.is_closed)
        again = [("turn_start", {"turn_number": 1}), ("text", {"text": "kept"}), ("turn_start", {"turn_number": 2}), ("text", {"text": "void"}), ("warning", {"code": "run_recovered", "detail": {"turn_number": 2}}), ("text", {"text": "new"}), ("done", DONE)]
        events = [(at + 1, *event) for at, event in enumerate(again)]
        self.assertEqual(Server(run_stream(*events)).engine.run("hi").result().output, "kept\n\nnew")
        typed = run_stream((1, "text", {"text": "a"}), (2, "done", {**DONE, "output": {"n": 1}}))
        for schema, output in (({"type": "object"}, {"n": 1}), (Model, ("made of", {"n": 1}))):
            server = Server(typed)
            result = server.engine.run("hi", schema=schema).result()
            self.assertEqual((result.run_id, result.output), ("run_1", output))
            self.assertEqual(server.body()["response_schema"], {"type": "object"})

    def test_a_run_that_was_not_started_is_cancelled_without_a_request(self) -> None:
        server = Server()
        run = server.engine.run("hi")
        run.cancel()
        with self.assertRaises(RunFailed) as failed:
            run.result()
        self.assertEqual((failed.exception.code, server.sent), ("cancelled", []))
        server = Server(run_stream((1, "text_delta", {"text": "a"}), (2, "done", DONE)), httpx.Response(204))
        run = server.engine.run("hi")
        self.assertEqual(run.started(), "run_1")
        run.cancel()
        self.assertEqual(server.sent[1:], ["DELETE /runs/run_1"])
        self.assertEqual([event.id for event in run], [1, 2])

    def test_the_events_of_a_tenant_begin_with_a_reset_where_they_may_miss_something(self) -> None:
        with patch("time.sleep"):
            server = Server(stream(), stream(("x", "run.started", {"a": 1})), stream(("y", "run.ended", {})))
            events = server.engine.events(types=("run.started", "run.ended"))
            self.assertEqual([next(events).event for _ in range(3)], ["reset", "run.started", "run.ended"])
            self.assertEqual(server.sent, ["GET /events?types=run.started%2Crun.ended"] * 3)
            self.assertEqual([each.headers.get("last-event-id") for each in server.requests], [None, None, "x"])

    def test_the_events_of_a_tenant_say_that_they_are_open_with_a_reset(self) -> None:
        events = Server(stream(("x", "run.started", {"a": 1}))).engine.events(reset=True)
        self.assertEqual([next(events).event for _ in range(2)], ["reset", "run.started"])


class Plans(unittest.TestCase):
    def test_the_progress_is_shown_after_each_change_of_a_step(self) -> None:
        events = ((1, "plan_started", {}), (2, "step_started", {"step_id": "a"}), (3, "step_ended", {"step_id": "a", "status": "failed", "error": "no"}), (4, "plan_ended", {}))
        ended = {**PLAN, "status": "failed", "step_statuses": {"a": "failed", "b": "skipped"}, "step_errors": {"a": "no"}}
        server = Server(ok(PLAN), stream(*events), ok(ended))
        shown = [(each.status, each.done, each.total, [(step.status, step.error) for step in each.steps]) for each in server.engine.plans.of("plan_1").progress()]
        waits = ("pending", None)
        self.assertEqual(
            shown,
            [
                ("queued", 0, 2, [waits, waits]),
                ("running", 0, 2, [("running", None), waits]),
                ("running", 1, 2, [("failed", "no"), waits]),
                ("failed", 2, 2, [("failed", "no"), ("skipped", None)]),
            ],
        )
        over = Server(ok(ended), ok(ended))
        self.assertEqual((over.engine.plans.of("plan_1").result(), over.sent), (ended, ["GET /plans/plan_1"] * 2))

    def test_what_an_event_changes(self) -> None:
        steps = steps_of({**PLAN, "step_statuses": {"a": "running"}})
        self.assertEqual(steps, {"a": PlanStep("a", "running", "first"), "b": PlanStep("b", "pending")})
        for event, step_id, made in (("step_started", "a", None), ("step_started", "b", "running"), ("step_ended", "b", "done"), ("step_ended", "x", None), ("other", "b", None)):
            changed = change_of(Event(1, event, {"step_id": step_id, "status": "done"}), steps)
            self.assertEqual(changed and changed.status, made)
        self.assertIsNone(change_of(Event(1, "step_started", {"step_id": "a"}), {"a": PlanStep("a", "done")}))
        self.assertEqual(progress_of(PLAN, {"a": PlanStep("a", "done"), "b": PlanStep("b", "running")}, "running").done, 1)


def inline(work: Callable[[], Any], _: object) -> None:
    work()


class ToolCalls(unittest.TestCase):
    def use(self, at: int, id: str) -> tuple[int, str, Json]:
        return at, "tool_use", {"id": id, "tool_name": "pick", "input": {}, "expires_at": "2026-11-25T10:00:00Z"}

    def result(self, server: Server, make: Callable[[Json], object], beside: Callable[..., None] = inline) -> None:
        with patch.object(server.engine._io, "beside", beside):
            server.engine.run("hi", on_tool_call=make).result()

    def test_each_is_made_once_and_its_end_is_the_answer(self) -> None:
        def make(call: Json) -> object:
            if call["id"] == "b":
                raise KeyError("no")
            return {"a": {"n": 1}, "c": "late", "d": None}[call["id"]]

        of_the_server = 2, "tool_use", {"id": "s", "tool_name": "Read", "input": {}}
        events = self.use(1, "a"), of_the_server, self.use(3, "b"), self.use(4, "c"), self.use(5, "a"), self.use(6, "d"), (7, "done", DONE)
        server = Server(run_stream(*events), ok(), ok(), refusal(409))
        self.result(server, make)
        self.assertEqual(server.sent[1:], [f"POST /runs/run_1/tool-calls/{id}" for id in "abc"])
        answers = {"output": '{"n": 1}'}, {"output": "KeyError: 'no'", "is_error": True}, {"output": "late"}
        self.assertEqual([server.body(at) for at in (1, 2, 3)], list(answers))

    def test_an_answer_that_was_lost_is_sent_again_and_what_is_refused_ends_the_reading(self) -> None:
        events = self.use(1, "a"), (2, "done", DONE)
        with patch("time.sleep") as sleep, patch("random.random", lambda: 1.0):
            server = Server(run_stream(*events), *[broken] * 3, ok())
            self.result(server, str)
            self.assertEqual((len(server.sent), [call.args for call in sleep.call_args_list]), (5, [(0.5,)] * 3))
            for left, failure in (([broken] * 4, ConnectionFailed), ([refusal(403)], ApiError)):
                server = Server(run_stream(*events), *left)
                self.assertRaises(failure, self.result, server, str)
                self.assertEqual(len(server.sent), 1 + len(left))
        bug = RuntimeError("a bug")
        self.assertRaises(RuntimeError, self.result, Server(run_stream(*events)), str, lambda _, fail: fail(bug))


class Permissions(unittest.TestCase):
    def test_a_run_asks_at_its_session_and_for_each_request_once(self) -> None:
        wrapped = 1, "subagent_event", {"event_type": "permission_request", "subagent_id": "sub", **ASK}
        asked = wrapped, (2, "permission_request", ASK), (3, "permission_request", ASK), (4, "permission_resolved", {"id": "p", "how": "reply"})
        asks: list[Any] = []
        server = Server(run_stream(*asked, (5, "permission_request", {**ASK, "id": "q"}), (6, "done", DONE)))
        with patch.object(server.engine._io, "beside", inline):
            server.engine.run("hi", on_permission=asks.append).result()
        self.assertEqual([(ask.id, ask.subagent_id, ask.resolution["how"]) for ask in asks], [("p", "sub", "reply"), ("q", None, "ended")])
        events = run_stream((1, "permission_request", ASK), (2, "done", DONE))
        rows: Sequence[tuple[Callable[..., Any], str, Sequence[Answer]]] = (
            (lambda it, ask: it.run("hi", on_permission=ask), "run_1", [events]),
            (lambda it, ask: it.sessions.open().send("hi", on_permission=ask), "a%2Fb", [ok({"session_id": "a/b"}), events]),
            (lambda it, ask: it.runs.resume("run_1", on_permission=ask), "s", [events, ok({"status": "done", "session_id": "s"})]),
            (lambda it, ask: it.runs.resume("run_1", on_permission=ask), "run_1", [events, ok({"status": "done"})]),
        )
        for start, session, answers in rows:
            server = Server(*answers, ok())
            with patch.object(server.engine._io, "beside", inline):
                start(server.engine, lambda ask: ask.allow()).result()
            self.assertEqual(server.sent[-1], f"POST /sessions/{session}/permissions/p")

    def ask(self, *answers: Answer, request: Json = ASK) -> tuple[Any, Server]:
        server = Server(ok({"permissions": [{**request, "run_id": "run_1", "session_id": "a/b"}], "next_cursor": None}), *answers)
        server._left.insert(0, stream())
        return next(server.engine.permissions.watch()), server

    def test_a_request_is_answered_at_its_session(self) -> None:
        ask, server = self.ask(ok(), ok(), ok())
        self.assertEqual((ask.id, ask.tool_name, ask.input, ask.message, ask.preview, ask.run_id), ("p", "Write", {"path": "a"}, "Write a", None, "run_1"))
        self.assertEqual(ask.expires_at, datetime(2026, 11, 25, 10, tzinfo=timezone.utc))
        self.assertTrue(ask.allow(remember=True, input={"path": "b"}, reason="fine"))
        self.assertTrue(ask.deny("no"))
        self.assertTrue(ask.allow())
        self.assertEqual(server.sent[2:], ["POST /sessions/a%2Fb/permissions/p"] * 3)
        self.assertEqual([server.body(at) for at in (2, 3, 4)], [{"allow": True, "remember": "session", "input": {"path": "b"}, "reason": "fine"}, {"allow": False, "reason": "no"}, {"allow": True}])

    def test_one_that_others_have_decided_is_not_ours_but_where_our_own_answer_was_lost(self) -> None:
        with patch("time.sleep"), patch("agent_engine._blocking.permissions._TOLD", 0):
            for status in (404, 409):
                self.assertFalse(self.ask(refusal(status))[0].allow())
            with self.assertRaises(ApiError):
                self.ask(refusal(403))[0].allow()
            ask, server = self.ask(*[broken] * 4)
            self.assertRaises(ConnectionFailed, ask.allow)
            self.assertEqual(len(server.sent), 6)
            for resolution, is_ours in (({"how": "reply", "allow": True}, True), ({"how": "reply", "allow": False}, False), ({"how": "timeout", "allow": True}, False), (None, False)):
                ask, _ = self.ask(broken, refusal(409))
                decided: Callable[[float], None] = lambda _: resolution and ask.settle(resolution)  # noqa: B023, E731
                with patch("time.sleep", decided):
                    self.assertEqual(ask.allow(), is_ours)
            late, server = self.ask(broken, refusal(409))
            with patch.object(server.engine._io, "wait", lambda *_: late.settle({"how": "reply", "allow": False})):
                self.assertTrue(late.deny(), "it is told after the refusal")
            ask.settle({"how": "ended"})
            ask.settle({"how": "reply"})
            self.assertEqual((ask.resolution, ask.allow()), ({"how": "ended"}, False))

    def test_the_inbox_shows_each_request_once_and_how_it_was_decided(self) -> None:
        def listed(*ids: str) -> httpx.Response:
            return ok({"permissions": [{**ASK, "id": id, "run_id": f"run_{id}", "session_id": "s"} for id in ids], "next_cursor": None})

        events = (("x1", "permission.requested", {"request_id": "b"}), ("x2", "permission.requested", {"request_id": "b"}), ("x3", "permission.resolved", {"request_id": "a", "how": "reply"}))
        rest = (("x4", "run.ended", {"run_id": "run_b"}), ("x5", "permission.requested", {"request_id": "c"}), ("x6", "reset", {}))
        server = Server(stream(*events, *rest), listed("a"), listed("a", "b"), listed("c"), listed("d"))
        inbox = server.engine.permissions.watch()
        asks = [next(inbox) for _ in range(4)]
        self.assertEqual([ask.id for ask in asks], ["a", "b", "c", "d"])
        self.assertEqual([ask.resolution and ask.resolution["how"] for ask in asks], ["reply", "ended", "unknown", None])


if __name__ == "__main__":
    unittest.main()
