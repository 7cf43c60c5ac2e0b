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
    ],
)
def test_what_is_ours_is_taken_off_a_url_and_the_rest_stays_as_it_is(
    url: str, conninfo: str, schema: str, shown: str
) -> None:
    address = address_of(url)
    assert (address.conninfo, address.schema) == (conninfo, schema)
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
