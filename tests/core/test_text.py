"""URLs are displayed without their passwords, wherever these stand."""

import pytest

from memory_mesh.core.text import shown_url, without_passwords

HIDDEN = {
    "postgresql://bob:hunter2@host:5432/db": "postgresql://bob:***@host:5432/db",
    "postgresql://bob:p@hunter2@host/db": "postgresql://bob:***@host/db",
    "postgresql://bob:p/hunter2@host/db": "postgresql://bob:***@host/db",
    "postgresql://bob:a hunter2@host/db": "postgresql://bob:***@host/db",
    "redis://:hunter2@cache": "redis://:***@cache",
    "https://hunter2@host/db": "https://***@host/db",
    "postgresql://host/db?user=bob&password=hunter2&sslmode=require": "postgresql://host/db?user=bob&password=***&sslmode=require",
    "postgresql://host/db?PGPASSWORD=a hunter2": "postgresql://host/db?PGPASSWORD=***",
    "https://x.supabase.co?apikey=hunter2#top": "https://x.supabase.co?apikey=***#top",
    "s3://bucket/x?aws_secret_access_key=hunter2;region=eu": "s3://bucket/x?aws_secret_access_key=***",
    "sqlite:///m.db?key=hunter2": "sqlite:///m.db?key=***",
}


@pytest.mark.parametrize("url", HIDDEN)
def test_no_password_of_a_url_is_shown(url: str) -> None:
    assert shown_url(url) == HIDDEN[url]
    assert "hunter2" in url
    if " " not in url:
        assert without_passwords(f"cannot open {url} now") == f"cannot open {HIDDEN[url]} now"


@pytest.mark.parametrize("url", ["sqlite:////a/b.db?mode=ro", "memory://", "https://host:8443/path", "s3://bucket/a?region=eu"])
def test_a_url_without_a_password_stays(url: str) -> None:
    assert shown_url(url) == without_passwords(url) == url
