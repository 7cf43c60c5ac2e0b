from __future__ import annotations

import pytest

from callslip.patterns.credentials import refuse_credentials

# Put together here, so that no scanner of secrets takes this file for one that leaks them.
RANDOM = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"
SECRETS = [
    f"-----BEGIN {'RSA '}PRIVATE KEY-----\nMIIE",
    "AKIA" + "ABCDEFGHIJKLMNOP",
    f"use ghp_{RANDOM}abcd for the repo",
    f"glpat-{RANDOM[:20]}",
    f"xoxb-{RANDOM[:12]}",
    "AIza" + RANDOM + "abc",
    f"sk_live_{RANDOM}",
    f"the key sk-ant-{RANDOM}",
    f"sk-proj-{RANDOM}",
    f"hf_{RANDOM}",
    f"eyJ{RANDOM[:10]}.eyJ{RANDOM[:10]}.{RANDOM[:6]}",
    "postgresql://ana:hunter2@db.example/x",
    f"Authorization: Bearer {RANDOM}",
    "password: hunter2",
    "The password is hunter2!",
    "ana's passwd = 'correcthorse'",
    '{"client_secret": "abcdef"}',
    "api_key=abc123def",
    f"API key is {RANDOM}",
    "Passwort lautet Gehe1m",
    "密码是abc123",
    "パスワードはabc123",
    "PIN: 4711",
    "pwd: hunter2!",
    "pwd=abc123XYZ",
    "passwd hunter2!",
    "DB_PASS=hunter2!",
    "db_pass: 'hunter2!'",
    "MYSQL_PWD=hunter2",
    "github_pat_11" + RANDOM[:20],
    "github_pat_11" + RANDOM + "_" + RANDOM,
    "pass\u200bword is hunter2!",
    "password is h\u2060unter2!",
    f"sk-\u200bproj-{RANDOM}",
    f"ours\u200bsk-proj-{RANDOM}",
    f"gh\u00adp_{RANDOM}abcd",
    f"AK\ufe0fIA{'ABCDEFGHIJKLMNOP'}",
    f"hf_\u3164{RANDOM}",
]
FACTS = [
    "Ana prefers conflicts side by side",
    "The password is required for the export",
    "Passwords are rotated every month",
    "The API key is stored in the vault",
    "password: *** (redacted)",
    "password: <ask Ana>",
    "token: ${CI_TOKEN}",
    "max_tokens: 4096 for summaries",
    "The secret is out: we ship on Friday",
    "Her secretary is Bob",
    "Basic auth is used for SRC-4471",
    "The bearer of bad news",
    "https://docs.example/a:b@c",
    "Passcode: rotate it weekly",
    "commit 0fac1c8a9d7e6b5f4a3c2d1e0f9a8b7c6d5e4f3a",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "开会是星期五",
    "pwd prints the working directory",
    "Run pwd: it says where you are",
    "Use passwd to change it",
    "The password policy asks for 12 characters",
    "FIRST_PASS: done on Friday",
    "boarding_pass is at gate 12",
    "first_pass: done",
    "second_pass: 2026-12-01",
    "PWD=/srv/app2",
    "/etc/passwd line42 names the shell",
    "password OAuth2 flow for the export",
    "The family \U0001f468\u200d\U0001f469\u200d\U0001f467 flies on Friday",
    "می\u200cخواهم جدول باشد",
]


@pytest.mark.parametrize("text", SECRETS)
def test_an_obvious_credential_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        refuse_credentials(text)
    assert len(str(refused.value)) < 50
    assert RANDOM[:10] not in str(refused.value)


@pytest.mark.parametrize("text", FACTS)
def test_what_only_talks_of_credentials_is_kept_as_it_is(text: str) -> None:
    assert refuse_credentials(text) == text
