"""Webhooks: what is posted, what counts as a success, and that errors do not show the path."""

import pytest

from memory_mesh import CallError, HookEvent, webhook_writethrough

from .servers import Answer, FaultServer

EVENT = HookEvent(
    "event_0000000000000001",
    "store",
    "2026-03-01T00:00:00.000Z",
    {"id": "mem_1", "content": "Grüße"},
)


@pytest.mark.req("GRAPH-86")
@pytest.mark.parametrize(
    "answer", [Answer(), Answer(status=204, body=b""), Answer(status=202, body="accepted")]
)
def test_an_event_is_posted_as_json_and_any_answer_of_200_to_299_will_do(answer: Answer) -> None:
    with FaultServer([answer]) as server:
        webhook_writethrough(
            f"{server.url}/in", headers={"Authorization": "Bearer k"}, allow_local=True
        ).deliver(EVENT)
    (request,) = server.requests
    assert (request.method, request.path, request.json) == ("POST", "/in", EVENT.as_dict())
    assert request.headers["authorization"] == "Bearer k"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.req("GRAPH-83", "GRAPH-88")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(status=500), "answered 500"),
        (Answer(status=410), "answered 410"),
        # It may quote what is erased later.
        (Answer(status=400, body="key-in-path and Grüße are refused"), "answered 400"),
        (
            Answer(status=302, headers={"Location": "http://169.254.169.254/"}),
            "redirects are not followed",
        ),
        (Answer(drop=True), "gave no answer"),
    ],
)
def test_any_other_answer_is_one_failure_which_does_not_show_the_path(
    answer: Answer, message: str
) -> None:
    with FaultServer([answer]) as server, pytest.raises(CallError, match=message) as error:
        webhook_writethrough(f"{server.url}/key-in-path", allow_local=True).deliver(EVENT)
    assert len(server.requests) == 1  # the queue repeats it
    assert not any(word in str(error.value) for word in ("key-in-path", "Grüße"))
