"""`callslip stats`, `gc` and `verify`: the store as a whole."""

from __future__ import annotations

from dataclasses import asdict

import click

from callslip.cli import out
from callslip.cli.given import COUNT, given, verb
from callslip.cli.progress import meter
from callslip.limits import ORPHAN_GRACE_SECONDS
from callslip.window.envelope import human_size
from callslip.window.preview.parts import counted


@verb(short_help="Say how much the store holds.")
@click.pass_context
def stats(ctx: click.Context) -> None:
    """Say how much the store holds; with --tenant, how much one tenant does."""
    held = given(ctx)
    totals = held.open_store().stats(tenant=held.tenant)
    if held.json:
        out.json({"store": held.shown, "tenant": held.tenant, **asdict(totals)})
        return
    packed = human_size(totals.packed_bytes)
    if totals.content_bytes:
        packed += f", {totals.packed_bytes / totals.content_bytes:.0%} of it"
    title = out.harmless(held.shown) + (f"  tenant {held.tenant}" if held.tenant else "")
    out.styled(out.style(title, bold=True) + "\n")
    facts = [
        ("sessions", f"{totals.sessions:,}"),
        ("results", f"{totals.results:,}"),
        ("payloads", f"{totals.payloads:,}"),
        ("content", human_size(totals.content_bytes)),
        ("on disk", packed),
        ("tombstones", f"{totals.tombstones:,}"),
    ]
    if totals.garbage:
        facts.append(("to delete", f"{totals.garbage:,}  (callslip gc)"))
    out.styled(out.columns(facts))


@verb(short_help="Delete what expired and what nothing refers to.")
@click.option(
    "--grace",
    type=COUNT,
    default=int(ORPHAN_GRACE_SECONDS),
    metavar="SECONDS",
    help="Leave unfinished uploads alone until they are this old: a put may be under way. "
    f"[default: {ORPHAN_GRACE_SECONDS}]",
)
@click.pass_context
def gc(ctx: click.Context, grace: int) -> None:
    """Delete what has expired and what nothing refers to, and mend the counts.

    It also delivers what the local spool took while the store was away.
    """
    held = given(ctx)
    cleaned = held.open_store().gc(grace)
    if held.json:
        out.json(asdict(cleaned))
        return
    done = (
        ("released", cleaned.released, "payload", "deleted"),
        ("orphans", cleaned.orphans, "unfinished or unknown file", "deleted"),
        ("delivered", cleaned.delivered, "result", "from the spool"),
    )
    facts = [
        *((name, f"{counted(count, unit)} {what}") for name, count, unit, what in done if count),
        *(("mended", out.harmless(sentence)) for sentence in cleaned.mended),
    ]
    out.styled(out.columns(facts, indent="") or "nothing to clean")


@verb(short_help="Read everything back against its checksums.")
@click.pass_context
def verify(ctx: click.Context) -> int:
    """Read everything back against its checksums. Exits with 1 if something is wrong.

    Files that nothing refers to are counted, and are no finding: a put that was killed leaves one,
    and gc removes it.
    """
    held = given(ctx)
    store = held.open_store()
    with meter("verify", store.stats().content_bytes) as progress:
        findings = store.verify(progress.at)
    if held.json:
        out.json({"ok": findings.ok, **asdict(findings)})
    else:
        for problem in findings.problems:
            out.styled(out.style("damaged", fg="red", bold=True) + "  " + out.harmless(problem))
        size = f"{counted(findings.payloads, 'payload')}, {human_size(findings.content_bytes)}"
        if findings.ok:
            out.styled(out.style("whole", fg="green", bold=True) + f"  {size}")
        else:
            out.styled(f"{counted(len(findings.problems), 'finding')} in {size}")
        if findings.orphans:
            out.note(
                f"{counted(findings.orphans, 'file')} that nothing refers to; to remove: callslip gc"
            )
    return 0 if findings.ok else 1
