"""Which store and session a command is about: options that stand before or after its name."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from callslip.errors import SettingsError, StoreUnavailable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from callslip.session import Session
    from callslip.store import ResultStore

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_STORE = ".callslip"
DEFAULT_SESSION = "cli"
_IDS_COMPLETED = 200


def without_password(where: str) -> str:
    """A store's URL as it may be printed and copied about: libpq finds the password in PGPASSWORD
    or ~/.pgpass."""
    where = re.sub(r"(://[^/@:]*):[^/@]*@", r"\1@", where)
    return re.sub(r"([?&])(ssl)?password=[^&]*&?", r"\1", where).rstrip("?&")


def in_options(said: str) -> str:
    """A message of the library that begins with a keyword, with the option in its place."""
    said = re.sub(r"^url=", "--store=", said)
    return re.sub(r"^(?=(session|user|tenant|keys)=['\"])", "--", said)


@dataclass
class Given:
    """What was given so far; an option after the command's name goes before one in front of it."""

    store: str | None = None
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    keys: str | None = None
    json: bool = False

    @property
    def where(self) -> str:
        if self.store is not None:
            return self.store
        return os.environ.get("CALLSLIP_STORE") or DEFAULT_STORE

    @property
    def shown(self) -> str:
        """The store, to be printed."""
        return without_password(self.where)

    @property
    def session_name(self) -> str:
        if self.session is not None:
            return self.session
        return os.environ.get("CALLSLIP_SESSION") or DEFAULT_SESSION

    @property
    def key_place(self) -> str | None:
        """The key file, or `env:NAME`; None for a store in the clear."""
        return self.keys or os.environ.get("CALLSLIP_KEYS") or None

    @property
    def audited(self) -> bool:
        """Whether the audit is to tell of what this command line does."""
        return os.environ.get("CALLSLIP_AUDIT", "").lower() in ("1", "true", "yes")

    def open_store(self, *, must_exist: bool = True) -> ResultStore:
        """The store. Only what stores something may make a new one: a mistyped name is an error."""
        from callslip.settings import place_of
        from callslip.store import ResultStore

        if not self.where.strip():
            raise SettingsError("--store is empty: give the store's folder")
        store = ResultStore(self.where, keys=self.key_place, audit=self.audited)
        if self.audited:
            store = store.acting(_who())
        place = place_of(store.settings)
        # A first put that was killed leaves payloads and no index yet: gc has to get there.
        if must_exist and place.index and not (_found(place.index) or _found(place.payloads)):
            raise StoreUnavailable(
                f"no store at {self.shown}; --store or CALLSLIP_STORE names another, "
                "`callslip put FILE` makes one",
                reason="unreachable",
            )
        return store

    def open_session(self, *, must_exist: bool = True) -> Session:
        store = self.open_store(must_exist=must_exist)
        return store.session(self.session_name, user=self.user or "", tenant=self.tenant or "")

    def again(self, *words: str) -> str:
        """A command line of ours that leads to the same store and session, to copy as it is."""
        flags: list[str] = []
        for name, value in (
            ("--store", self.store),
            ("--session", self.session),
            ("--user", self.user),
            ("--tenant", self.tenant),
            ("--keys", self.keys),
        ):
            if value:
                flags += [name, without_password(value)]
        # Behind a "--" an option is none.
        at = words.index("--") if "--" in words else len(words)
        return shlex.join(["callslip", *words[:at], *flags, *words[at:]])


def _found(path: str | os.PathLike[str]) -> bool:
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it is there, or nobody can tell: the store says why it does not open
    return True


def _who() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"  # no such user here, as in a container


def given(ctx: click.Context) -> Given:
    """The values of this command line."""
    return ctx.ensure_object(Given)


def yes_option(function: F) -> F:
    """The option of a command that asks before it deletes for good."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(function)


def agreed(ctx: click.Context, question: str, does: str) -> bool:
    """Whether a person says yes to a question. Raises `click.UsageError`, which says what would be
    done, where nobody is there to be asked: an answer in a pipe is not a person's."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{does}: add --yes", ctx)
    return click.confirm(question, err=True)


class Count(click.types.IntParamType):
    """How many: a whole number, 0 or more."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if number < 0:
            self.fail(f"{number} is less than 0", param, ctx)
        return number


COUNT = Count()


class Common(click.Option):
    """An option of every command: listed apart in a help text."""


def _take(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    held = given(ctx)
    if value is not None and value is not False and param.name is not None:
        setattr(held, param.name, value)


_OPTIONS = (
    ("--store", "PATH", "Its folder or URL. [env CALLSLIP_STORE; default: .callslip]"),
    ("--session", "NAME", "Whose results. [env CALLSLIP_SESSION; default: cli]"),
    ("--user", "NAME", "The session's user, if it has one."),
    ("--tenant", "NAME", "The session's tenant, if it has one."),
    ("--keys", "FILE", "Its key file, or env:NAME, if it is sealed. [env CALLSLIP_KEYS]"),
)


def common(function: F) -> F:
    """Give a command the options of every command."""
    function = click.option(
        "--json",
        cls=Common,
        is_flag=True,
        expose_value=False,
        callback=_take,
        help="Print JSON, one document a line.",
    )(function)
    for name, metavar, help in reversed(_OPTIONS):
        function = click.option(
            name,
            cls=Common,
            metavar=metavar,
            expose_value=False,
            callback=_take,
            help=help,
        )(function)
    return function


class Verb(click.Command):
    """A command whose help lists its own options first, and those of every command after."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # an option without its value does not say whose it is
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and not isinstance(param, click.Argument):
                (shared if isinstance(param, Common) else own).append(record)
        for title, records in (("Options", own), ("Options of every command", shared)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def verb(**attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with the options of every command."""

    def made(function: Callable[..., Any]) -> click.Command:
        return click.command(cls=Verb, **attributes)(common(function))

    return made


def _ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from callslip.errors import CallslipError

    try:
        handles = given(ctx).open_session().list(limit=_IDS_COMPLETED).handles
    except CallslipError:
        return []  # a shell that completes has no place for a message
    return [
        CompletionItem(handle.id, help=handle.tool)
        for handle in reversed(handles)
        if handle.id.startswith(incomplete)
    ]


def id_argument(function: F) -> F:
    """The argument ID, completed from what the session holds."""
    return click.argument("id", metavar="ID", shell_complete=_ids)(function)


def ids_argument(function: F) -> F:
    """The argument ID, any number of times."""
    return click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=_ids)(function)
