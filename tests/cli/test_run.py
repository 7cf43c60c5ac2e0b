from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from callslip.cli.running import Output
from callslip.limits import REFUSED_CHARS
from tests.cli.shell import here, shell, start

LONG = "for n in range(4000): print('line', n)"


def python(code: str) -> list[str]:
    return ["run", "--", sys.executable, "-u", "-c", code]


def id_in(envelope: bytes) -> str:
    opening = envelope.decode().splitlines()[0]
    assert opening.startswith('<result id="res_'), opening
    return opening.split('"')[1]


def test_short_output_is_printed_as_it_is_and_nothing_is_stored(tmp_path: Path) -> None:
    done = shell(
        tmp_path,
        *python(
            "import os, sys; os.write(1, b'a\\x00\\xff\\r\\n'); os.write(2, b'err\\n'); "
            "os.write(1, b'\\x1b[31mb'); sys.exit(7)"
        ),
    )
    assert (done.returncode, done.stdout) == (7, b"a\x00\xff\r\nerr\n\x1b[31mb")
    assert done.stderr == b"" and not (tmp_path / ".callslip").exists()


@pytest.mark.parametrize("threshold", ["0", "1000"])
def test_output_that_is_no_longer_than_an_envelope_is_printed_itself(
    tmp_path: Path, threshold: str
) -> None:
    words = ["run", "--threshold", threshold, "--", sys.executable, "-c"]
    for code in ("print('hi')", "print('word ' * 300)"):
        done = shell(tmp_path, *words, code)
        assert done.stdout in (b"hi\n", b"word " * 300 + b"\n")
    assert not (tmp_path / ".callslip").exists()
    done = shell(tmp_path, *words, "print('word ' * 500)")
    assert done.stdout.startswith(b"<result ") and len(done.stdout) < 2_500


def test_long_output_becomes_an_envelope_and_is_stored_byte_for_byte(tmp_path: Path) -> None:
    code = (
        "import os\nfor n in range(9000):\n"
        " os.write(1 + n % 2, b'%d \\xff from %d\\n' % (n, 1 + n % 2))\n"
        "raise SystemExit(3)"
    )
    done = shell(tmp_path, *python(code))
    assert done.returncode == 3 and done.stderr == b""
    id = id_in(done.stdout)
    assert len(done.stdout) < 2500
    name = os.path.basename(sys.executable)
    *_, ended, ways = done.stdout.decode().splitlines()
    assert ended == f"{name} exited with 3."
    assert ways == f"Shell: callslip read {id} or callslip search {id} PATTERN"
    exported = here(tmp_path, "export", id)
    assert exported.stdout_bytes == b"".join(
        b"%d \xff from %d\n" % (n, 1 + n % 2) for n in range(9000)
    )
    handle = json.loads(here(tmp_path, "show", id, "--json").stdout)
    assert handle["tool"] == name and "raise SystemExit(3)" in json.loads(handle["args"])["command"]


def test_a_failing_pytest_run_shows_its_failures_and_keeps_its_status(tmp_path: Path) -> None:
    (tmp_path / "test_sums.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(400))\n"
        "def test_a_long_name_that_fills_the_verbose_report_of_this_run(n):\n"
        "    assert n != 399, 'three hundred and ninety-nine'\n"
        "def test_sum():\n    assert 1 + 1 == 3\n"
    )
    words = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "test_sums.py"]
    done = shell(tmp_path, "run", "--tool", "pytest", "--", *words)
    assert done.returncode == 1 and done.stderr == b""
    text = done.stdout.decode()
    assert text.startswith("<result ") and 'tool="pytest"' in text.splitlines()[0]
    assert "test_sum" in text and "assert (1 + 1) == 3" in text
    assert "three hundred and ninety-nine" in text
    assert "2 failed, 399 passed" in text
    assert "pytest exited with 1." in text
    found = here(tmp_path, "search", id_in(done.stdout), "^FAILED", "-c")
    assert found.stdout == "2\n"


def test_json_tells_short_and_long_output_in_one_document(tmp_path: Path) -> None:
    short = shell(tmp_path, "run", "--json", "sh", "-c", "echo hi; exit 4")
    found = json.loads(short.stdout)
    assert short.returncode == 4
    assert found == {
        "command": ["sh", "-c", "echo hi; exit 4"],
        "exit": 4,
        "stored": False,
        "size": 3,
        "handle": None,
        "text": "hi\n",
        "envelope": None,
    }
    long = shell(tmp_path, "--json", *python(LONG))
    found = json.loads(long.stdout)
    assert found["stored"] and found["text"] is None and found["handle"]["lines"] == 4000
    assert found["envelope"].startswith("<result ")


def test_tee_passes_the_output_through_and_the_envelope_follows(tmp_path: Path) -> None:
    whole = "".join(f"line {n}\n" for n in range(4000)).encode()
    done = shell(tmp_path, "run", "--tee", *python(LONG)[1:])
    assert done.stdout.startswith(whole + b"<result ")
    short = shell(tmp_path, "run", "--tee", "echo", "once")
    assert short.stdout == b"once\n"


def test_a_command_that_cannot_start_gets_the_status_of_a_shell(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("#!/no/such/interpreter\n")
    done = shell(tmp_path, "run", "--", "no-such-command-anywhere", "--flag")
    assert (done.returncode, done.stdout) == (127, b"")
    assert done.stderr == b"callslip: no-such-command-anywhere: command not found\n"
    refused = shell(tmp_path, "run", "./plain")
    assert refused.returncode == 126 and refused.stderr.count(b"\n") == 1
    (tmp_path / "plain").chmod(0o755)
    lost = shell(tmp_path, "run", "./plain")
    assert lost.returncode == 126 and b"interpreter" in lost.stderr
    assert shell(tmp_path, "run").returncode == 2


def test_a_command_that_a_signal_ended_gives_128_and_its_number(tmp_path: Path) -> None:
    done = shell(tmp_path, *python(LONG + "\nimport os; os.kill(os.getpid(), 9)"))
    assert done.returncode == 128 + 9 and id_in(done.stdout)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_goes_to_the_command_which_decides_what_it_means(
    tmp_path: Path, number: signal.Signals
) -> None:
    code = (
        "import signal, sys, time\n"
        f"def bye(*_): print('goodbye'); sys.exit(5)\n"
        f"signal.signal({int(number)}, bye)\n"
        "open('ready', 'w').close()\n"
        "time.sleep(60)"
    )
    process = start(tmp_path, *python(code))
    _wait_for(tmp_path / "ready")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (5, b"goodbye\n", b"")


def test_output_before_a_signal_is_stored(tmp_path: Path) -> None:
    code = LONG + "\nopen('ready', 'w').close()\nimport time; time.sleep(60)"
    process = start(tmp_path, *python(code))
    _wait_for(tmp_path / "ready")
    process.terminate()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert 'lines="4000"' in out.decode().splitlines()[0]


def test_what_a_command_leaves_behind_does_not_keep_us(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pid', 'w').write(str(p.pid)); print('done')"
    )
    began = time.monotonic()
    done = shell(tmp_path, *python(code))
    took = time.monotonic() - began
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert done.returncode == 0 and done.stdout == b"done\n"
    assert b"left behind" in done.stderr and done.stderr.count(b"\n") == 1
    assert took < 50  # it is the 60 seconds of the other that count, not how fast we are


def test_stdin_is_the_commands(tmp_path: Path) -> None:
    assert shell(tmp_path, "run", "--", "cat", stdin=b"in and out").stdout == b"in and out"


def test_a_broken_store_costs_neither_the_output_nor_the_status(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = shell(tmp_path, "--store", "file/store", *python(LONG + "\nraise SystemExit(9)"))
    assert done.returncode == 9
    assert done.stderr.startswith(b"callslip: the output could not be stored")
    assert done.stderr.count(b"\n") == 1
    assert done.stdout.startswith(b"line 0\nline 1\n") and done.stdout.endswith(b"line 3999\n")
    assert b" bytes left out " in done.stdout and len(done.stdout) < REFUSED_CHARS + 100


def test_a_disk_that_fills_up_on_the_way_costs_neither_output_nor_status(tmp_path: Path) -> None:
    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))

    code = (
        "import os\nprint('first')\n"
        "for n in range(40): print(os.urandom(1 << 17).hex())\n"
        "print('last'); raise SystemExit(6)"
    )
    done = shell(tmp_path, *python(code), preexec_fn=limited)
    assert done.returncode == 6
    assert done.stderr.startswith(b"callslip: the output could not be stored (disk full)")
    assert done.stderr.count(b"\n") == 1
    assert done.stdout.startswith(b"first\n") and done.stdout.endswith(b"\nlast\n")
    between = int(done.stdout.partition(b"[\xe2\x80\xa6 ")[2].split()[0].replace(b",", b""))
    kept = len(done.stdout) - len("\n[… 00,000,000 bytes left out …]\n".encode())
    assert between + kept == 40 * ((1 << 18) + 1) + len("first\nlast\n")
    assert here(tmp_path, "ls").stdout == ""
    assert here(tmp_path, "verify").exit_code == 0


def test_a_wrong_store_costs_neither_the_output_nor_the_status(tmp_path: Path) -> None:
    done = shell(tmp_path, "--store", "gopher://x", *python(LONG))
    assert done.returncode == 0 and done.stdout.startswith(b"line 0\n")
    assert b"gopher" in done.stderr


def test_a_reader_that_leaves_does_not_end_the_command(tmp_path: Path) -> None:
    code = LONG + "\nimport time; time.sleep(.3)\nopen('finished', 'w').close()"
    process = start(tmp_path, "run", "--tee", *python(code)[1:])
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 0
    assert (tmp_path / "finished").exists()
    assert len(here(tmp_path, "ls").stdout.splitlines()) == 1


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="no /proc to read the peak from"
)
def test_a_flood_takes_bounded_memory(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from callslip.cli import main\n"
        "sys.argv = ['callslip', 'run', '--', sys.executable, '-c', sys.argv[1]]\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    from subprocess import run

    from tests.cli.shell import environment

    def peak(blocks: int) -> int:
        flood = (
            f"import sys\nfor n in range({blocks}): sys.stdout.write(f'{{n}} ' * 30000 + chr(10))"
        )
        words = [sys.executable, "-c", code, flood]
        done = run(words, cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=True)
        assert done.stdout.startswith(b"<result ")
        return int(done.stderr) // 1024

    small, large = peak(20), peak(500)
    assert large - small < 40, f"{large} MiB for 60 MB, {small} MiB for 2 MB"


def test_an_excerpt_counts_exactly_what_it_leaves_out() -> None:
    for size in (0, 1, REFUSED_CHARS - 1, REFUSED_CHARS, REFUSED_CHARS + 1, 50_000):
        whole = bytes(n % 251 for n in range(size))
        output = Output.__new__(Output)
        output.head, output.tail, output.size, output.tee = b"", b"", 0, False
        output._progress = _NoMeter()  # type: ignore[assignment]
        for _ in output._noted(iter([whole[:777], b"", whole[777:]])):
            pass
        head, note, tail = output.excerpt().partition(b"\n[\xe2\x80\xa6 ")
        if not note:
            assert head == whole
            continue
        count, _, tail = tail.partition(b" bytes left out \xe2\x80\xa6]\n")
        assert whole.startswith(head) and whole.endswith(tail)
        assert len(head) + len(tail) + int(count.replace(b",", b"")) == size


class _NoMeter:
    def add(self, size: int) -> None:
        pass


def _wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path.name} did not appear")
