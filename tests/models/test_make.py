"""The embedder that the settings select, with its cache and folder."""

import json
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from memory_mesh.api.build import check_models, make_embedder, model_paths
from memory_mesh.api.settings import Settings, load
from memory_mesh.core.errors import EmbeddingError, ModelMissing, SettingsError
from memory_mesh.models import PUBLISHED_MODEL


def loaded(folder: Path, **arguments: object) -> Settings:
    return load(arguments, environ={"MEMORY_MESH_HOME": str(folder / "home")}, cwd=folder)


@pytest.mark.req("MESH-134")
def test_the_local_model_is_the_default(tmp_path: Path) -> None:
    embedder = make_embedder(loaded(tmp_path))
    assert embedder is not None
    assert (embedder.model, embedder.window) == ("memory-mesh/MiniLM-everyday-2", 256)


def test_hashing_and_none_are_chosen_by_name(tmp_path: Path) -> None:
    embedder = make_embedder(loaded(tmp_path, embedder="hash"))
    assert embedder is not None
    assert embedder.embed(["tea"])[0].model == embedder.model == "hashing/256"
    assert make_embedder(loaded(tmp_path, embedder="none")) is None
    with pytest.raises(SettingsError, match="local, hash, none"):
        loaded(tmp_path, embedder="nobody")


def test_a_wrong_model_path_is_refused_at_the_first_use(tmp_path: Path) -> None:
    embedder = make_embedder(loaded(tmp_path, model_path=str(tmp_path / "nowhere")))
    assert embedder is not None
    with pytest.raises(ModelMissing, match="nowhere"):
        embedder.embed(["tea"])


def test_the_cache_folder_is_that_of_the_setting_or_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))

    def cache(environ: dict[str, str], **arguments: object) -> Path:
        found = load(arguments, environ=environ, cwd=tmp_path)
        assert model_paths(found).cache == found.cache
        return found.cache

    assert cache({}) == tmp_path / "me" / ".cache" / "memory-mesh"
    assert cache({"XDG_CACHE_HOME": str(tmp_path / "xdg")}) == tmp_path / "xdg" / "memory-mesh"
    assert cache({"XDG_CACHE_HOME": "relative"}) == tmp_path / "me" / ".cache" / "memory-mesh"
    assert (
        cache({"XDG_CACHE_HOME": str(tmp_path / "xdg")}, cache_dir="~/mine")
        == tmp_path / "me" / "mine"
    )
    assert cache({"MEMORY_MESH_CACHE_DIR": str(tmp_path / "env")}) == tmp_path / "env"
    with pytest.raises(SettingsError, match="cache_dir"):
        cache({}, cache_dir="~nobody-of-that-name/x")


def test_without_a_user_folder_the_cache_is_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(self: Path) -> Path:
        if str(self).startswith("~"):
            raise RuntimeError("no home")
        return self

    monkeypatch.setattr(Path, "expanduser", nowhere)
    assert loaded(tmp_path).cache == tmp_path / "home" / "cache" / "memory-mesh"


# --- fallbacks ---


class EmbeddingServer:
    """A server on this machine that speaks the protocol of embeddings, or refuses every call."""

    def __init__(self, *, works: bool) -> None:
        self.keys: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.keys.append(self.headers.get("authorization"))
                texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
                body = {
                    "data": [
                        {"index": at, "embedding": [float(len(text)), 1.0]}
                        for at, text in enumerate(texts)
                    ]
                }
                sent = json.dumps(body if works else {"error": "down"}).encode()
                self.send_response(200 if works else 403)
                self.send_header("content-length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/v1"


@pytest.fixture
def servers() -> Iterator[tuple[EmbeddingServer, EmbeddingServer]]:
    down, works = EmbeddingServer(works=False), EmbeddingServer(works=True)
    yield down, works
    for server in (down, works):
        server.http.shutdown()
        server.http.server_close()


@pytest.mark.req("MESH-133")
def test_the_fallbacks_of_the_settings_are_tried_in_order(
    tmp_path: Path,
    servers: tuple[EmbeddingServer, EmbeddingServer],
    caplog: pytest.LogCaptureFixture,
) -> None:
    down, works = servers
    settings = loaded(
        tmp_path, embedder="ollama", embedding_model="m", embedding_url=down.url,
        embedding_api_key="k-1", embedding_fallbacks=[down.url, works.url, "local"],
    )  # fmt: skip
    embedder = make_embedder(settings)
    assert embedder is not None
    assert [vector.model for vector in embedder.embed(["tea"])] == ["ollama/m"]
    assert "embedded by the fallback ollama/m" in caplog.text
    assert (len(down.keys), works.keys) == (2, ["Bearer k-1"])


@pytest.mark.req("MESH-134")
@pytest.mark.parametrize(
    "name", ["all-minilm", "all-minilm:latest", "sentence-transformers/all-MiniLM-L6-v2"]
)
def test_a_server_that_runs_the_published_model_has_it_as_its_fallback(
    tmp_path: Path,
    servers: tuple[EmbeddingServer, EmbeddingServer],
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = loaded(
        tmp_path, embedder="ollama", embedding_model=name, embedding_url=servers[0].url
    )
    embedder, local = make_embedder(settings), make_embedder(loaded(tmp_path))
    assert embedder is not None
    assert local is not None
    published = local.of_model(PUBLISHED_MODEL)
    vector = embedder.embed(["tea"])[0]
    assert vector.data == published.embed(["tea"])[0].data != local.embed(["tea"])[0].data
    assert vector.model == f"ollama/{name}"  # it is compared with the vectors of the server
    assert embedder.window == local.window
    assert f"embedded by the fallback {PUBLISHED_MODEL}, because" in caplog.text


@pytest.mark.parametrize(
    ("name", "given"),
    [("all-minilm:33m", None), ("nomic-embed-text", None), ("all-minilm", []), ("all-minilm", "")],
)
def test_another_model_has_no_fallback_by_default(
    tmp_path: Path,
    servers: tuple[EmbeddingServer, EmbeddingServer],
    name: str,
    given: list[str] | str | None,
) -> None:
    fallbacks = {} if given is None else {"embedding_fallbacks": given}
    settings = loaded(
        tmp_path, embedder="ollama", embedding_model=name, embedding_url=servers[0].url, **fallbacks
    )
    embedder = make_embedder(settings)
    assert embedder is not None
    with pytest.raises(EmbeddingError):
        embedder.embed(["tea"])


def test_a_key_for_the_providers_own_address_is_not_sent_to_a_fallback(
    tmp_path: Path, servers: tuple[EmbeddingServer, EmbeddingServer]
) -> None:
    _, works = servers
    settings = loaded(
        tmp_path,
        embedder="openai",
        embedding_api_key="sk-mine",
        embedding_allow_local=True,
        embedding_fallbacks=works.url,
    )
    first, second = make_embedder(settings)._embedders  # type: ignore[union-attr]
    assert first.model == second.model == "openai/text-embedding-3-small"
    with suppress(EmbeddingError):  # its vectors have another dimension
        second.embed(["tea"])
    assert works.keys == [None]


@pytest.mark.parametrize("wrong", ["openai", "nonsense", ["local", "cohere"]])
def test_an_unknown_fallback_is_refused_when_the_mesh_is_opened(
    tmp_path: Path, wrong: object
) -> None:
    with pytest.raises(SettingsError, match="embedding_fallbacks") as error:
        check_models(loaded(tmp_path, embedder="ollama", embedding_fallbacks=wrong).options)
    assert "lmstudio" in str(error.value.expected)
