from __future__ import annotations

import pytest

from callslip.errors import SettingsError
from callslip.settings import Settings, place_of
from callslip.stacks.index.address import address_of


@pytest.mark.parametrize(
    ("url", "conninfo", "schema", "shown"),
    [
        ("postgresql://a:p%40@h:5/d?schema=x_1", "postgresql://a:p%40@h:5/d", "x_1", "//h:5/d"),
        ("postgres://h/d", "postgresql://h/d", "callslip", "//h/d"),
        (
            "postgresql:///d?host=/run/pg&schema=s&connect_timeout=1&options=-c%20a%3Db+c",
            "postgresql:///d?host=/run/pg&connect_timeout=1&options=-c%20a%3Db+c",
            "s",
            "///d",
        ),
        ("postgresql://u@a:1,b:2/d", "postgresql://u@a:1,b:2/d", "callslip", "//a:1,b:2/d"),
        ("postgresql://h/d?password=x", "postgresql://h/d?password=x", "callslip", "//h/d"),
        ("postgresql://u:#?[\N{ACCOUNT OF}@[::1]:5/d", None, "callslip", "//[::1]:5/d"),
        ("postgresql://u:p@h/d\n", "postgresql://u:p@h/d", "callslip", "//h/d"),
    ],
)
def test_what_is_ours_is_taken_off_a_url_and_the_rest_stays_as_it_is(
    url: str, conninfo: str | None, schema: str, shown: str
) -> None:
    address = address_of(url)
    assert (address.conninfo, address.schema) == (conninfo or url, schema)
    assert len(address.identity) == 16
    assert address.shown == f"postgresql:{shown}"
    assert "p%40" not in repr(address)


def test_one_string_names_a_whole_store() -> None:
    url = "postgresql://a:secret@h/d?payloads=s3://bucket/prefix&schema=x"
    place = place_of(Settings(url=url))
    assert place.payloads == address_of(url).payloads == "s3://bucket/prefix"
    assert address_of(url).conninfo == "postgresql://a:secret@h/d"
    assert place_of(Settings(url=url, payloads="other")).payloads == "other"


@pytest.mark.parametrize(
    "query", ["schema=A", "schema=pg_x", "schema=", "schema=a;b", "connections=0", "connections=x"]
)
def test_an_option_that_cannot_be_meant_is_named_with_its_value(query: str) -> None:
    with pytest.raises(SettingsError, match=query.replace("=", "='")):
        address_of(f"postgresql://a:secret@h/d?{query}")


@pytest.mark.parametrize(
    "password", ["Pw/secret", "Pw@secret", "Pw/se?cret", "12/sec?ret", "Pw:@/secret", "Pw/[secret"]
)
def test_a_password_that_reaches_into_the_host_is_not_shown(password: str) -> None:
    url = f"postgresql://ana:{password}@h:5432/d?schema=x"
    with pytest.raises(SettingsError, match="percent-encoded") as raised:
        place_of(Settings(url=url, payloads="p"))
        address_of(url)
    assert "Pw" not in str(raised.value)
    assert "cret" not in str(raised.value)
    assert "ana" not in str(raised.value)


def test_a_spool_is_found_again() -> None:
    """Its folder is named by this: what waits in it must not be lost from sight by an upgrade."""
    url = "postgresql://a%40b:old@h:5432/d%20b?host=/run&schema=x&sslmode=require"
    assert address_of(url).identity == "770a17fd4ecdb262"
    assert address_of(url.replace("old", "new")).identity == "770a17fd4ecdb262"


@pytest.mark.parametrize("url", ["host=h password=secret dbname=d", " user = ana password=secret"])
def test_a_database_in_libpqs_other_words_is_no_folder(url: str) -> None:
    with pytest.raises(SettingsError, match="write postgresql://") as raised:
        place_of(Settings(url=url, payloads="p"))
    assert "secret" not in str(raised.value)
    assert place_of(Settings(url="./host=h")).index is not None


def test_a_folder_that_is_called_as_a_database_is_a_folder() -> None:
    for name in ("postgres", "postgresql"):
        assert not Settings(url=name).on_a_server
        assert Settings(url=f"{name}://host/app").on_a_server
