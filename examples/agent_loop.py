"""An agent that learns from a failure: the loop of RFC-0011 §10.

In the first run the agent deploys with an expired token and fails. It stores what happened and
distills a lesson. In the second run it finds the lesson before it acts, and succeeds.

    # without a language model
    python examples/agent_loop.py
    # a server that speaks OpenAI's protocol
    python examples/agent_loop.py --url http://localhost:11434/v1 --model qwen3:4b
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.request import Request, urlopen

from memory_mesh import MemoryMesh

AGENT = "MyAgent"
REQUEST = "Deploy the billing service."
Ask = Callable[[str], str]


@dataclass(frozen=True)
class Result:
    """What came out of a task."""

    output: str
    error: str = ""


def run(mesh: MemoryMesh, request: str, session_id: str, ask: Ask) -> Result:
    """Do one task with what earlier sessions learnt, and remember it."""
    # Before acting: the rules of lessons, and memories that are relevant to the request.
    rules = [lesson.preventative_rule for lesson in mesh.query_lessons(request, limit=5)]
    memories = mesh.search(request, limit=10, mode="precise")

    # Memories are fenced: they are data for the model, and no memory can give it orders.
    lines = [
        *(f"Rule: {rule}" for rule in rules),
        mesh.format_for_model(memories, max_tokens=800),
        f"Task: {request}",
    ]
    plan = ask("\n".join([*lines, "Which steps do you take? Answer in one line."]))
    result = deploy(plan)

    # After acting: what happened, and a lesson if it went wrong.
    mesh.add(
        result.output,
        {
            "type": "event",
            "source": AGENT,
            "rationale": request,
            "hypothesis": plan[:200],
            "session_id": session_id,
        },
    )
    if result.error:
        mesh.distill_lesson(
            {
                "situation": f"{request} {result.output}",
                "error_pattern": "deploy_token_expired",
                "oversight": "The expiry of the token was not checked.",
                "fix": "A new token was requested.",
                "preventative_rule": "Refresh the token before you deploy a service.",
                "severity": "high",
                "applicable_scope": f"{AGENT} execution",
            }
        )
    return result


def deploy(plan: str) -> Result:
    """Stand in for the tools of a real agent: the token has expired, so that a deploy without a
    fresh one fails."""
    if "refresh" in plan.lower():
        return Result("The billing service was deployed with a fresh token.")
    return Result(
        "The deploy of the billing service failed with 401.", error="401: the token has expired"
    )


def without_model(prompt: str) -> str:
    """Stand in for a language model: follow the rules, then do the task."""
    rules = [
        line.removeprefix("Rule: ") for line in prompt.splitlines() if line.startswith("Rule: ")
    ]
    return " ".join([*rules, "Then deploy."])


def with_model(url: str, model: str) -> Ask:
    """Return a function that asks a language model."""

    def ask(prompt: str) -> str:
        body = {"model": model, "messages": [{"role": "user", "content": prompt}], "temperature": 0}
        call = Request(  # noqa: S310
            f"{url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urlopen(call, timeout=120) as answer:  # noqa: S310  (the address is the caller's own)
            return str(json.load(answer)["choices"][0]["message"]["content"])

    return ask


def main(words: Sequence[str] | None = None) -> None:
    """Run the task twice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--store",
        default="memory://",
        help="a file such as memory.db keeps the memory for the next time",
    )
    parser.add_argument("--url", help="the address of a language model")
    parser.add_argument("--model", default="default", help="its name")
    given = parser.parse_args(words)
    ask = with_model(given.url, given.model) if given.url else without_model
    with MemoryMesh(given.store, agent_id=AGENT) as mesh:
        mesh.init()
        for number in (1, 2):
            result = run(mesh, REQUEST, f"session-{number}", ask)
            print(f"Run {number}: {result.output}")
        print(f"Lessons: {[lesson.preventative_rule for lesson in mesh.query_lessons()]}")


if __name__ == "__main__":
    main()
