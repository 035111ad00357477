"""Benchmarks: what is measured, what ratios mean, and how results are written. No benchmark runs here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import __main__ as command
from bench.measure import alternately, cpu, peak, run, wall
from bench.results import Result, markdown, merged, shown, write

MACHINE = {"cores": 2, "processor": "a processor", "system": "Linux", "python": "3.11.7", "mlpipe": "0.1.0"}
BUSY = [sys.executable, "-c", "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint('done')"]
LARGE = [sys.executable, "-c", "import time; data = b'x' * (120 << 20); time.sleep(0.1)"]


def section(*results: Result) -> dict[str, object]:
    """A section as results.json holds it."""
    found = [result.as_dict() for result in results]
    return {"about": "What it does.", "commands": ["mlpipe --help"], "results": found, "date": "2026-01-31", "load": 0.5}


def test_a_command_is_measured() -> None:
    """CPU seconds are those of the command, wall seconds no less, and its output is kept."""
    cost = run(BUSY)
    assert cost.output == "done\n"
    assert 0.3 <= cost.cpu < 3
    assert cost.wall >= 0.3


def test_peak_memory_is_that_of_the_command() -> None:
    """120 MiB held for a moment are seen."""
    assert 120 <= run(LARGE).peak_mb < 400


def test_a_command_that_fails_raises_with_its_words() -> None:
    """No benchmark reports how fast a failure is."""
    with pytest.raises(RuntimeError, match=r"ended with 3[\s\S]*out of luck"):
        run([sys.executable, "-c", "import sys; sys.stderr.write('out of luck'); sys.exit(3)"])


def test_commands_take_turns(tmp_path: Path) -> None:
    """A, B, A, B; the best time and the highest peak count."""
    log = tmp_path / "log"
    commands = {name: [sys.executable, "-c", f"open({str(log)!r}, 'a').write({name!r})"] for name in "ab"}
    costs = alternately(commands, 2, tmp_path)
    assert log.read_text() == "abab"
    assert wall(costs["a"]) == min(c.wall for c in costs["a"]) and cpu(costs["a"]) == min(c.cpu for c in costs["a"])
    assert peak(costs["a"]) == max(c.peak_mb for c in costs["a"])


def test_a_limit_bounds_the_ratio_or_the_number_itself() -> None:
    """A limit that is just reached is met; without a limit nothing is said."""
    ratio = Result("prepare", 12.0, "s", "pandas", 2.0, limit=6.0)
    assert ratio.ratio == 6.0 and ratio.met is True
    assert Result("prepare", 12.2, "s", "pandas", 2.0, limit=6.0).met is False
    assert Result("start", 0.2, "s", limit=0.25).met is True and Result("start", 0.3, "s", limit=0.25).met is False
    assert Result("rows", 5.0, "rows/s", "plain", 4.0).ratio == 1.25 and Result("rows", 5.0, "rows/s", "plain", 4.0).met is None


def test_results_become_a_table() -> None:
    """Number, what is beside it, ratio, limit, and whether it is met."""
    rows = (Result("prepare, wall", 12.5, "s", "pandas", 2.0, 6.0), Result("memory", 512.0, "MB", limit=1200.0), Result("cpu", 1.25, "s"))
    text = markdown({"machine": MACHINE, "benchmarks": {"prepare": section(*rows)}})
    assert "| prepare, wall | 12.5 s | 2 s (pandas) | 6.25 | 6 | **not met** |" in text
    assert "| memory | 512 MB |  |  | 1,200 MB | met |" in text
    assert "| cpu | 1.25 s |  |  |  |  |" in text
    assert "2 cores, a processor, Linux; Python 3.11.7, mlpipe 0.1.0." in text
    assert "## prepare" in text and "2026-01-31" in text and "mlpipe --help" in text


def test_a_partial_run_keeps_other_numbers_of_the_same_machine(tmp_path: Path) -> None:
    """And drops those of another machine or other versions: they would not be side by side."""
    first, second = section(Result("a", 1.0, "s")), section(Result("b", 2.0, "s"))
    write(tmp_path, MACHINE, {"train": first}, ("startup", "train"))
    write(tmp_path, MACHINE, {"startup": second}, ("startup", "train"))
    record = json.loads((tmp_path / "results.json").read_text())
    assert list(record["benchmarks"]) == ["startup", "train"]
    assert (tmp_path / "RESULTS.md").read_text() == markdown(record)
    other = merged(record, {**MACHINE, "cores": 4}, {"startup": second}, ("startup", "train"))
    assert list(other["benchmarks"]) == ["startup"]


def test_commands_are_shown_without_folders_of_this_machine() -> None:
    """The longest folder is replaced first."""
    places = {"/home/someone/repo/": "", "/home/someone/repo/data": "DATA", "/tmp/x": "TMP"}
    given = [sys.executable, "-m", "mlpipe", "run", "/home/someone/repo/pipelines/a.yaml", "/home/someone/repo/data/a.csv", "/tmp/x/runs"]
    assert shown(given, places) == "mlpipe run pipelines/a.yaml DATA/a.csv TMP/runs"


def test_an_unknown_name_is_a_fault_and_absent_data_are_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 for the first, 0 and a message for the second; nothing is written."""
    assert command.main(["nothing"]) == 2
    assert "there are: startup, prepare" in capsys.readouterr().err
    monkeypatch.setattr(command, "DATA", tmp_path / "absent")
    monkeypatch.setattr(command.results, "write", lambda *_: pytest.fail("written"))
    assert command.main([]) == 0
    assert "skipped" in capsys.readouterr().err
