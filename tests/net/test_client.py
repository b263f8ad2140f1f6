"""The HTTP client against a local server that misbehaves as each test says."""

import gc
import logging
import pickle
import re
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from threading import Event, Thread

import pytest

from memory_mesh.core.errors import (
    CallError,
    CallRefused,
    CallTimedOut,
    Cancelled,
    RateLimited,
    SettingsError,
)
from memory_mesh.core.model.background import cancellable
from memory_mesh.core.ports import Secret
from memory_mesh.net import HttpClient, System

from .servers import Answer, FaultServer

KEY = "sk-swordfish-0123456789abcdef"
GOOD = Answer(body={"said": "yes"})
FAR_OFF = "Mon, 01 Jan 2031 00:00:00 +9999999999999"  # a time zone that no number can hold
QUICK = 0.5  # seconds, for calls that should time out


class Pauses(list[float]):
    """Records the pauses of a client without waiting. Jitter always takes the maximum."""

    def system(self, **replaced: object) -> System:
        return System(pause=self.append, jitter=lambda maximum: maximum, **replaced)  # type: ignore[arg-type]


@contextmanager
def served(
    *scripted: Answer, **options: object
) -> Iterator[tuple[HttpClient, FaultServer, Pauses]]:
    pauses = Pauses()
    options = {"system": pauses.system(), **options}
    with (
        FaultServer(scripted) as server,
        closing(HttpClient(f"{server.url}/v1", allow_local=True, **options)) as client,
    ):  # type: ignore[arg-type]
        yield client, server, pauses


# --- one call ---


def test_json_is_posted_below_the_base_url_and_json_is_returned() -> None:
    with served(GOOD, headers={"Authorization": Secret(f"Bearer {KEY}"), "X-Plain": "1"}) as (
        client,
        server,
        pauses,
    ):
        assert client.post("/chat/completions", {"text": "tea é \ud800"}) == {"said": "yes"}
        request = server.requests[0]
        assert (request.method, request.path, request.json) == (
            "POST",
            "/v1/chat/completions",
            {"text": "tea é \ud800"},
        )
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["host"] == f"127.0.0.1:{server.port}"
        assert (request.headers["accept-encoding"], request.headers["content-type"]) == (
            "identity",
            "application/json",
        )
        assert request.headers["x-plain"] == "1"
        assert client.address == f"{server.url}/v1"
        assert pauses == []


def test_one_connection_serves_many_calls() -> None:
    with served(GOOD) as (client, server, _):
        for _ in range(3):
            client.post("a", {})
        assert len(server.requests) == 3
        assert server.connections == 1


def test_many_threads_share_a_client() -> None:
    with served(GOOD) as (client, server, _):
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda n: client.post("a", {"n": n}), range(40)))
        assert answers == [{"said": "yes"}] * 40
        assert sorted(request.json["n"] for request in server.requests) == list(range(40))  # type: ignore[index, call-overload]


def test_a_client_loads_nothing_heavy_and_does_not_connect_before_its_first_call() -> None:
    program = """
import sys
from memory_mesh.net import HttpClient
client = HttpClient("https://api.example.com/v1", headers={"a": "b"})
assert "memory_mesh.net.client" in sys.modules
print(sorted({"httpcore2", "ssl", "h11", "numpy", "asyncio"} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_closed_client_stays_closed_and_may_be_closed_again() -> None:
    with served(GOOD) as (client, server, _):
        client.post("a", {})
        client.close()
        client.close()
        with pytest.raises(CallError, match="closed"):
            client.post("a", {})
        assert len(server.requests) == 1


def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer([GOOD]) as proxy, served(GOOD) as (client, server, _):
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        client.post("a", {})
        assert (len(server.requests), proxy.requests) == (1, [])


def test_a_deleted_client_closes_its_connections() -> None:
    with FaultServer([GOOD]) as server:
        client = HttpClient(server.url, allow_local=True)
        client.post("a", {})
        pool = client._pool
        assert pool
        assert len(pool.connections) == 1
        del client
        gc.collect()
        assert pool.connections == []


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": 1e10}, "at most 86400"),
        ({"per_minute": 0}, "calls a minute"),
        ({"attempts": 0}, "attempts"),
        ({"headers": {"Host": "elsewhere"}}, "Host"),
        ({"headers": {"a b": "c"}}, "a b"),
        ({"headers": {"a": f"{KEY}\r\nb: c"}}, "cannot be sent"),
        ({"headers": {"a": Secret(f"{KEY} ")}}, "cannot be sent"),
    ],
)
def test_invalid_arguments_are_refused_at_once(options: dict[str, object], wrong: str) -> None:
    with pytest.raises(SettingsError, match=wrong) as caught:
        HttpClient("https://api.example.com", **options)  # type: ignore[arg-type]
    assert KEY not in str(caught.value)


# --- retries ---


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_server_error_is_retried(status: int) -> None:
    with served(Answer(status=status), Answer(status=status), GOOD) as (client, server, pauses):
        assert client.post("a", {"n": 1}) == {"said": "yes"}
        assert [request.json for request in server.requests] == [{"n": 1}] * 3
        assert pauses == [0.5, 1.0]


@pytest.mark.parametrize(
    "fault",
    [
        Answer(drop=True),
        Answer(reset=True),
        Answer(body={"long": "x" * 99}, cut=20),
        Answer(body={"long": "x" * 99}, chunked=True, cut=30),
        Answer(
            raw=b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\nnothing of the kind\r\n"
        ),
        Answer(raw=b"this is not HTTP\r\n\r\n"),
        Answer(raw=b""),
    ],
    ids=["dropped", "reset", "cut", "cut within a chunk", "no chunk", "no HTTP", "nothing"],
)
def test_a_broken_response_is_retried(fault: Answer) -> None:
    with served(fault, GOOD) as (client, server, pauses):
        assert client.post("a", {}) == {"said": "yes"}
        assert (len(server.requests), pauses) == (2, [0.5])


def test_a_failed_connection_is_tried_as_often_as_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    pauses = Pauses()
    client = HttpClient(
        f"http://127.0.0.1:{port}", allow_local=True, system=pauses.system(), attempts=3
    )
    with closing(client), pytest.raises(CallError, match="cannot be reached"):
        client.post("a", {})
    assert pauses == [0.5, 1.0]


def test_the_backoff_doubles_up_to_twenty_seconds_and_jitter_may_shorten_it() -> None:
    maxima: list[float] = []
    waited: list[float] = []

    def half(maximum: float) -> float:
        maxima.append(maximum)
        return maximum / 2

    system = System(pause=waited.append, jitter=half)
    with served(Answer(status=500), system=system, attempts=8) as (client, server, _):
        with pytest.raises(CallError, match="500"):
            client.post("a", {})
        assert len(server.requests) == 8
    assert maxima[:7] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0]
    assert waited == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0]


def test_retry_after_is_respected() -> None:
    with served(Answer(status=429, headers={"Retry-After": "7"}), GOOD) as (client, _, pauses):
        client.post("a", {})
        assert pauses == [7.0]


def test_a_retry_date_is_compared_with_the_servers_own_clock() -> None:
    now, then = (
        datetime(2031, 5, 1, 12, 0, 0, tzinfo=UTC),
        datetime(2031, 5, 1, 12, 0, 9, tzinfo=UTC),
    )
    headers = {"Retry-After": format_datetime(then, usegmt=True)}
    with served(
        Answer(status=503, headers={**headers, "Date": format_datetime(now, usegmt=True)}), GOOD
    ) as (client, _, pauses):
        client.post("a", {})
        assert pauses == [9.0]
    waited = Pauses()
    ours = waited.system(clock=lambda: now.timestamp() + 1)
    with served(Answer(status=503, headers=headers), GOOD, system=ours) as (client, _, _):
        client.post("a", {})
        assert waited == [8.0]


@pytest.mark.parametrize(
    "nonsense", ["soon", "-5", "nan", "inf", "", "1e999", "Mon, 99 Foo 2031 99:99:99 GMT", FAR_OFF]
)
def test_an_invalid_retry_after_is_ignored(nonsense: str) -> None:
    with served(Answer(status=429, headers={"Retry-After": nonsense}), GOOD) as (client, _, pauses):
        client.post("a", {})
        assert pauses == [0.5]


def test_a_retry_after_beyond_the_deadline_is_an_error_at_once() -> None:
    with served(Answer(status=429, headers={"Retry-After": "90"}), GOOD, timeout=60) as (
        client,
        server,
        pauses,
    ):
        with pytest.raises(RateLimited, match="in 90 s"):
            client.post("a", {})
        assert (len(server.requests), pauses) == (1, [])


def test_a_backoff_beyond_the_end_of_the_call_is_not_begun() -> None:
    system = System(pause=lambda _: pytest.fail("it waited"), jitter=lambda _: 99.0)
    with served(Answer(status=502), system=system) as (client, server, _):
        with pytest.raises(CallError, match="502"):
            client.post("a", {})
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"), [(429, RateLimited), (529, RateLimited), (500, CallError), (503, CallError)]
)
def test_the_last_error_quotes_the_server(status: int, kind: type[CallError]) -> None:
    with served(Answer(status=status, body={"error": {"message": "too much tea"}})) as (
        client,
        server,
        _,
    ):
        with pytest.raises(kind, match="too much tea") as caught:
            client.post("a", {})
        assert type(caught.value) is kind
        assert len(server.requests) == 4


# --- refusals ---


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no such model", "param": "model"}}, "no such model"),
        ({"error": "no such model"}, "no such model"),
        ({"message": "no such model"}, "no such model"),
        ({"detail": [{"msg": "no such model"}]}, "no such model"),
        ("no such\nmodel", "no such model"),
    ],
)
def test_a_refusal_is_final_and_carries_status_and_message(body: object, message: str) -> None:
    with served(Answer(status=404, body=body), GOOD) as (client, server, pauses):  # type: ignore[arg-type]
        with pytest.raises(CallRefused, match=message) as caught:
            client.post("a", {})
        assert (caught.value.status, caught.value.body) == (404, body)
        assert isinstance(caught.value, CallRefused)
        assert (len(server.requests), pauses) == (1, [])


def test_a_long_message_is_cut_and_an_html_page_is_left_out() -> None:
    with served(
        Answer(status=400, body={"error": "x" * 5000}),
        Answer(status=400, body="<html>Oh no</html>"),
    ) as (client, _, _):
        with pytest.raises(CallRefused, match=r"x{200}$"):
            client.post("a", {})
        with pytest.raises(CallRefused, match=r"400$"):
            client.post("a", {})


def test_a_refusal_survives_pickling() -> None:
    error = CallRefused("no", expected="yes", remedy="ask", status=422, body={"error": ["a", 1]})
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again), again.status, again.body) == (
        CallRefused,
        "no; expected yes; ask",
        422,
        {"error": ["a", 1]},
    )


@pytest.mark.req("GRAPH-83")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_only_its_host_is_named(status: int) -> None:
    with FaultServer([GOOD]) as elsewhere:
        where = f"http://user:pass@127.0.0.1:{elsewhere.port}/secret?key={KEY}"
        with served(Answer(status=status, headers={"Location": where}), GOOD) as (
            client,
            server,
            _,
        ):
            with pytest.raises(
                CallRefused, match=r"redirects to 127\.0\.0\.1 .*not followed"
            ) as caught:
                client.post("a", {})
            assert not re.search(f"secret|key|pass|{KEY}", str(caught.value))
            assert len(server.requests) == 1
        assert (elsewhere.requests, elsewhere.connections) == ([], 0)


# --- unusable responses ---


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (Answer(body="{'said': 'yes'}"), "invalid JSON"),
        (Answer(body=b"\xff\xfe"), "invalid JSON"),
        (Answer(body=""), "invalid JSON"),
        (Answer(body='{"n": NaN}'), "invalid JSON"),
        (Answer(body='{"n": ' + "9" * 5000 + "}"), "invalid JSON"),
        (Answer(body="[" * 200_000), "invalid JSON"),
        (Answer(body=[1, 2]), "not an object"),
        (
            Answer(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"}),
            r"compressed response \(gzip\)",
        ),
        (Answer(status=501), "501"),
    ],
)
def test_an_answer_that_cannot_be_used_is_final(answer: Answer, wrong: str) -> None:
    with served(answer, GOOD) as (client, server, pauses):
        with pytest.raises(CallError, match=wrong):
            client.post("a", {})
        assert (len(server.requests), pauses) == (1, [])


@pytest.mark.parametrize("chunked", [False, True])
def test_a_response_that_is_too_large_is_not_read(
    chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_mesh.net.client.MAX_BYTES", 100_000)
    with served(
        Answer(body={"a": "x" * 90_000}), Answer(body={"a": "x" * 200_000}, chunked=chunked)
    ) as (client, server, _):
        assert len(str(client.post("a", {})["a"])) == 90_000
        with pytest.raises(CallError, match="too large"):
            client.post("a", {})
        assert len(server.requests) == 2


# --- deadlines, cancellation and the rate limit ---


@pytest.mark.parametrize(
    "slow",
    [
        Answer(hang=True),
        Answer(delay=60),
        Answer(raw=b"HTTP/1.1 200 Fine\r\n" + b"X-Slow: 1\r\n" * 1000, drip=0.05),
        Answer(raw=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, drip=0.01),
        Answer(body={"a": "x" * 1000}, headers={"Connection": "close"}, drip=0.02),
        Answer(body={"a": "x" * 1000}, chunked=True, drip=0.02),
    ],
    ids=["hangs", "late", "dripping headers", "only promises", "dripping body", "dripping chunks"],
)
def test_no_server_can_extend_a_call_beyond_its_deadline(slow: Answer) -> None:
    with served(slow, GOOD, timeout=QUICK) as (client, server, _):
        with pytest.raises(CallTimedOut, match=r"within 0\.5 s"):
            client.post("a", {})
        assert len(server.requests) == 1
        assert client.post("a", {}) == {"said": "yes"}  # the next call has its own time


def test_a_server_that_does_not_read_cannot_extend_a_call() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with (
            closing(HttpClient(url, allow_local=True, timeout=QUICK)) as client,
            pytest.raises(CallTimedOut),
        ):
            client.post("a", {"long": "x" * 30_000_000})


def test_a_call_can_be_cancelled_while_the_server_hangs() -> None:
    stop = Event()
    with served(Answer(hang=True)) as (client, server, _):

        def cancel() -> None:
            while not server.requests:
                stop.wait(0.01)
            stop.set()

        other = Thread(target=cancel)
        other.start()
        with cancellable(stop), pytest.raises(Cancelled):
            client.post("a", {})
        other.join()
        assert len(server.requests) == 1


def test_a_call_that_was_cancelled_before_sends_nothing() -> None:
    stop = Event()
    with served(GOOD) as (client, server, _), cancellable(stop):
        client.post("a", {})
        stop.set()
        with pytest.raises(Cancelled):
            client.post("a", {})
        assert len(server.requests) == 1


def test_a_call_can_be_cancelled_between_two_attempts() -> None:
    stop = Event()
    with served(Answer(status=500), system=System(jitter=lambda _: 30.0)) as (client, server, _):

        def cancel() -> None:
            while not server.requests:
                stop.wait(0.01)
            stop.set()

        other = Thread(target=cancel)
        other.start()
        with cancellable(stop), pytest.raises(Cancelled):
            client.post("a", {})
        other.join()
        assert len(server.requests) == 1


def test_a_call_above_the_rate_limit_waits() -> None:
    time = [100.0]
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        time[0] += seconds

    system = System(now=lambda: time[0], pause=pause)
    with served(GOOD, system=system, per_minute=2, timeout=50) as (client, server, _):
        client.post("a", {})
        time[0] += 20
        client.post("a", {})
        assert waited == []
        client.post("a", {})  # 60 s after the first
        assert waited == [40.0]
        time[0] += 1
        client.post("a", {})  # 60 s after the second
        assert waited == [40.0, 19.0]
        assert len(server.requests) == 4


def test_a_rate_limit_beyond_the_deadline_is_an_error_at_once() -> None:
    system = System(pause=lambda _: pytest.fail("it waited"))
    with served(GOOD, system=system, per_minute=1, timeout=30) as (client, server, _):
        client.post("a", {})
        with pytest.raises(RateLimited, match="limit of 1 calls a minute"):
            client.post("a", {})
        assert len(server.requests) == 1


# --- secrets ---


def echoing(status: int) -> Answer:
    return Answer(
        status=status,
        body={
            "error": {
                "message": f"Incorrect API key: {KEY}",
                "headers": [f"Bearer {KEY}", {KEY: 1}],
            }
        },
    )


@pytest.mark.parametrize("status", [400, 401, 429, 500, 501])
def test_a_server_that_quotes_the_key_does_not_get_it_into_errors(status: int) -> None:
    with served(echoing(status), headers={"Authorization": Secret(f"Bearer {KEY}")}) as (
        client,
        server,
        _,
    ):
        with pytest.raises(CallError, match="Incorrect API key") as caught:
            client.post("a", {})
        assert KEY in server.requests[0].headers["authorization"]
        assert KEY not in (
            f"{caught.value!s}{caught.value!r}{vars(caught.value)}{caught.value.__cause__!r}"
            f"{client!r}"
        )


def test_garbage_that_quotes_the_key_does_not_get_it_into_errors() -> None:
    fault = Answer(raw=f"{KEY} is not HTTP\r\n\r\n".encode())
    with served(fault, headers={"Authorization": Secret(f"Bearer {KEY}")}) as (client, _, _):
        with pytest.raises(CallError, match="is not HTTP") as caught:
            client.post("a", {})
        assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("quoting", "message"),
    [
        (Answer(status=307, headers={"Location": f"//{KEY}/v1"}), "redirects to"),
        (Answer(headers={"Content-Encoding": KEY}), "compressed"),
    ],
)
def test_a_header_that_quotes_the_key_does_not_get_it_into_errors(
    quoting: Answer, message: str
) -> None:
    with served(quoting, headers={"Authorization": Secret(f"Bearer {KEY}")}) as (client, server, _):
        with pytest.raises(CallError, match=message) as caught:
            client.post("a", {})
        assert KEY in server.requests[0].headers["authorization"]
        assert KEY.lower() not in str(caught.value).lower()


def test_reports_with_local_variables_do_not_show_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_mesh.net.client.MAX_BYTES", 10)
    failures = [Answer(body="x" * 20), Answer(hang=True)]
    with served(*failures, headers={"Authorization": Secret(f"Bearer {KEY}")}, timeout=QUICK) as (
        client,
        server,
        _,
    ):
        for wrong in ("too large", "no answer within"):
            with pytest.raises(CallError, match=wrong) as caught:
                client.post("a", {})
            report = "".join(
                traceback.TracebackException.from_exception(
                    caught.value, capture_locals=True
                ).format()
            )
            assert "deadline = " in report, "the frames are shown"
            assert KEY not in report
        assert KEY in server.requests[0].headers["authorization"]


def test_nothing_is_logged_of_keys_bodies_or_answers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    scripted = [
        Answer(status=500),
        Answer(drop=True),
        echoing(401),
        Answer(body={"said": "private"}),
    ]
    with served(
        *scripted, headers={"Authorization": Secret(f"Bearer {KEY}"), "x-api-key": Secret(KEY)}
    ) as (client, server, _):
        with pytest.raises(CallRefused):
            client.post("a", {"text": "personal"})
        assert client.post("a", {"text": "personal"}) == {"said": "private"}
        assert KEY in str(server.requests[-1].headers)
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "send_request_headers.started" in logged  # httpcore2 does log
    assert not re.search(f"{KEY}|personal|private|Bearer", logged)
