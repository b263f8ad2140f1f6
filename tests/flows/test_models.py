"""Checks of the models, and secrets that are never shown."""

import pickle

import pytest

from memory_mesh.core.errors import AnswerUnreadable, Cancelled, Conflict, StoreBusy, Unreachable
from memory_mesh.core.language.prompts.answers import build_check_prompt, read_check_reply
from memory_mesh.core.learning import Caps
from memory_mesh.core.ports import Secret, Tokens
from memory_mesh.flows.learning.models import Ledger, check_models
from memory_mesh.models import FallbackEmbedder, HashingEmbedder
from memory_mesh.testing.fakes import DownEmbedder, ScriptedChat


def test_what_is_not_set_is_no_failure(context):
    assert [(one.ok, one.model) for one in check_models(context)] == [(True, None), (True, None)]


def test_models_that_answer_are_told_with_what_they_said(context):
    chat, embedder = check_models(
        context.with_models(chat=ScriptedChat('{"ready": true}'), embedder=HashingEmbedder(8))
    )
    assert (chat.ok, embedder.ok, embedder.model) == (True, True, "hashing/8")
    assert "returns 8 numbers" in embedder.detail


@pytest.mark.parametrize(
    "answer",
    [
        Unreachable("nobody answers"),
        "no JSON",
        '{"ready": "yes"}',
        '{"other": 1}',
        Cancelled("off"),
    ],
)
def test_a_model_that_does_not_answer_as_asked_is_a_failure_with_a_reason(context, answer):
    chat, embedder = check_models(
        context.with_models(chat=ScriptedChat(answer), embedder=DownEmbedder("far"))
    )
    assert not chat.ok
    assert chat.detail
    assert (embedder.ok, embedder.detail, embedder.remedy) == (
        False,
        "far does not answer",
        "try again later",
    )


def test_a_fallback_does_not_hide_an_embedder_that_does_not_answer(context):
    fallback = FallbackEmbedder([DownEmbedder("far"), HashingEmbedder(8)])
    assert fallback.embed(["tea"])  # the control
    _, embedder = check_models(context.with_models(embedder=fallback))
    assert (embedder.ok, embedder.model) == (False, "far")
    _, embedder = check_models(
        context.with_models(embedder=FallbackEmbedder([HashingEmbedder(8), DownEmbedder("far")]))
    )
    assert embedder.ok


def test_an_answer_of_another_form_is_unreadable():
    reply = ScriptedChat('{"ready": 1}').reply(build_check_prompt())
    with pytest.raises(AnswerUnreadable, match="another form"):
        read_check_reply(reply)


def test_a_secret_is_shown_only_by_reveal():
    secret = Secret("sk-hunter2")
    assert "hunter2" not in f"{secret!r} {secret} {[secret]}"
    assert secret.reveal() == "sk-hunter2"
    assert secret.hidden_in("the key sk-hunter2 is wrong") == "the key *** is wrong"
    assert Secret("").hidden_in("as it is") == "as it is"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)


def test_accounts_that_others_keep_changing_are_given_up_with_a_reason(context, monkeypatch):
    def moved(*_, **__):
        raise Conflict("it moved")

    monkeypatch.setattr(context.store, "apply", moved)
    with pytest.raises(StoreBusy, match="other writers kept changing it"):
        Ledger(
            store=context.store, clock=context.clock, ids=context.ids, caps=Caps(tokens=9)
        ).reserve("x", "m", Tokens(1))
