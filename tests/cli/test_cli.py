"""What people see: help, exit codes, JSON, messages. The command line runs in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import CASES, chain, clean_failure, environment, mlpipe, small, small_settings, table_csv, write_pipeline

COMMANDS = ("init", "check", "schema", "prepare", "train", "evaluate", "export", "run", "status", "verify", "predict", "kinds")
HEAVY = ("torch", "pandas", "onnxruntime", "docling", "sklearn", "onnx", "pyarrow", "numpy", "pydantic")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pipeline that has run."""
    folder = tmp_path_factory.mktemp("project")
    chain(small(folder), folder / "runs")
    return folder


def imported_by(*arguments: str, cwd: Path | None = None) -> set[str]:
    """The heavy packages that a command imports."""
    code = (
        "import sys; from mlpipe.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        f"sys.stderr.write('HEAVY ' + ' '.join(m for m in {HEAVY!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=cwd, env=environment(), capture_output=True, text=True, check=True)
    return set(done.stderr.rsplit("HEAVY ", 1)[1].split())


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_answers_without_heavy_imports(command: str | None) -> None:
    """--help of every command: what it does, with an example, and nothing heavy is imported."""
    assert imported_by(*([command] if command else []), "--help") == set()
    result = mlpipe(*([command] if command else []), "--help")
    assert result.rc == 0
    assert "Example: mlpipe" in result.out or command is None
    assert "mlpipe init DATA --target COLUMN" in result.out or command is not None


def test_light_commands_stay_light(project: Path) -> None:
    """check, status and verify import none of torch, pandas, onnxruntime and docling; neither does a run that is fresh."""
    forbidden = {"torch", "pandas", "onnxruntime", "docling", "sklearn"}
    for arguments in (["check", "small.yaml"], ["status", "small.yaml"], ["verify", "runs/small"], ["run", "small.yaml"]):
        assert not imported_by(*arguments, cwd=project) & forbidden, arguments


def test_predict_needs_neither_torch_nor_pandas(project: Path, tmp_path: Path) -> None:
    """predict runs on onnxruntime, numpy and pyarrow."""
    found = imported_by("predict", "runs/small/export", "train.csv", "-o", str(tmp_path / "out.csv"), cwd=project)
    assert not found & {"torch", "pandas", "docling", "sklearn"}
    assert (tmp_path / "out.csv").exists()


def test_run_prints_its_table_and_a_second_run_says_that_nothing_changed(project: Path) -> None:
    """stdout has the result: stages, metrics beside the baseline, parity, the model, what comes next."""
    result = mlpipe("run", "small.yaml", cwd=project)
    assert result.rc == 0
    for word in (
        "prepare",
        "fresh",
        "accuracy",
        "baseline",
        "parity",
        "model.onnx",
        "nothing changed: nothing ran",
        "next: mlpipe predict",
    ):
        assert word in result.out
    assert "\r" not in result.text
    assert "\x1b[" not in result.text


def test_status_says_why_and_its_exit_code_tells(project: Path) -> None:
    """0: all fresh; 1: something is stale, with the reason."""
    assert mlpipe("status", "small.yaml", cwd=project).rc == 0
    result = mlpipe("status", "small.yaml", "--set", "train.optimiser.lr=0.01", cwd=project)
    assert result.rc == 1
    assert "optimiser.lr 0.001 -> 0.01" in result.out


def test_dry_run_changes_nothing(project: Path) -> None:
    """--dry-run says what would run."""
    before = sorted((p, p.stat().st_mtime_ns) for p in (project / "runs").rglob("*"))
    result = mlpipe("run", "small.yaml", "--dry-run", "--force", cwd=project)
    assert result.rc == 0
    assert "asked for by --force" in result.out
    assert before == sorted((p, p.stat().st_mtime_ns) for p in (project / "runs").rglob("*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "small.yaml", "--json"],
        ["status", "small.yaml", "--json"],
        ["status", "small.yaml", "--json", "--set", "train.epochs=9"],
        ["run", "small.yaml", "--json", "--dry-run", "--set", "train.epochs=9"],
        ["check", "small.yaml", "--json"],
        ["verify", "runs/small", "--json"],
        ["kinds", "--json"],
        ["schema"],
        ["run", "small.yaml", "--json", "--set", "train.epochs=0"],
        ["run", "nothing.yaml", "--json"],
        ["run", "small.yaml", "--json", "--nonsense"],
        ["evaluate", "small.yaml", "--json", "--set", "seed=99"],
        ["verify", "nothing", "--json"],
    ],
    ids=" ".join,
)
def test_json_is_one_object_on_failure_too(project: Path, arguments: list[str]) -> None:
    """stdout holds exactly one JSON object; its exit code is the command's."""
    result = mlpipe(*arguments, cwd=project)
    found = json.loads(result.out)
    if arguments[0] != "schema":
        assert found["exit_code"] == result.rc
        assert found["status"] in (("failed", "stale") if result.rc else ("ok", "fresh", "stale"))
    assert "Traceback" not in result.text
    if result.rc and found["status"] != "stale":
        assert found["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "nothing.yaml"], 2, ["nothing.yaml"]),
        (["run", "small.yaml", "--set", "train.epochs=x"], 2, ["train.epochs"]),
        (["run", "small.yaml", "--set", "train.epoch=3"], 2, ["did you mean 'epochs'"]),
        (["run", "small.yaml", "--until", "trian"], 2, ["did you mean 'train'"]),
        (["frobnicate"], 2, ["frobnicate"]),
        (["run"], 2, ["PIPELINE"]),
        (["run", "small.yaml", "--set", "prepare.source.path=nothing.csv"], 3, ["nothing.csv"]),
        (["check", "small.yaml", "--set", "prepare.features.0.columns=[x1, x9]"], 3, ["x9", "train.csv"]),
        (["evaluate", "small.yaml", "--set", "seed=99"], 4, ["seed 3 -> 99"]),
        (["train", "small.yaml", "--runs", "elsewhere"], 4, ["prepare did not finish"]),
        (["train", "small.yaml", "--device", "xpu"], 5, ["xpu"]),
        (["verify", "nothing"], 4, ["nothing"]),
        (["predict", "runs/small", "train.csv", "-o", "out.csv"], 4, ["runs/small/export"]),
        (["predict", "runs/small/export", "nothing.csv", "-o", "out.csv"], 3, ["nothing.csv"]),
        (["predict", "runs/small/export", "train.csv", "-o", "out.docx"], 2, ["out.docx"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_exit_codes_and_messages(project: Path, arguments: list[str], code: int, words: list[str]) -> None:
    """Each failure has its exit code, names the value, and shows no traceback."""
    result = mlpipe(*arguments, cwd=project)
    assert result.rc == code, result.text
    clean_failure(result, *words)


def test_predict_never_writes_over_what_it_reads(project: Path, tmp_path: Path) -> None:
    """The rows as the output: refused, and every byte of them is there."""
    rows = tmp_path / "rows.csv"
    rows.write_bytes((project / "train.csv").read_bytes())
    result = mlpipe("predict", project / "runs/small/export", rows, "-o", rows)
    assert result.rc == 2
    clean_failure(result, "would be lost")
    assert rows.read_bytes() == (project / "train.csv").read_bytes()


def test_version_and_bare_command() -> None:
    """--version tells it; the command alone shows its help."""
    assert mlpipe("--version").out.startswith("mlpipe ")
    assert "Commands:" in mlpipe().out


def test_gate_failure_ends_with_six(project: Path, tmp_path: Path) -> None:
    """The case E03 from the command line: exit code 6, `roc_auc`, `undefined`."""
    for name in ("train.csv", "one_class_test.csv"):
        (tmp_path / name).write_bytes((CASES / "E03" / name).read_bytes())
    settings = small_settings(
        prepare__test={"kind": "csv", "path": "one_class_test.csv"},
        prepare__features=[{"kind": "numeric", "columns": ["x"]}],
        evaluate__gates=[{"metric": "roc_auc", "at_least": 0.8}],
    )
    result = mlpipe("run", write_pipeline(tmp_path / "p.yaml", settings), "--runs", tmp_path / "runs")
    assert result.rc == 6
    clean_failure(result, "roc_auc", "undefined", "only class no present")


def test_cron_with_a_minimal_environment_gives_the_same_bytes(project: Path, tmp_path: Path) -> None:
    """No HOME, no locale, another time zone, another hash seed, from /: byte-equal manifests and model; nothing outside the run folder."""
    small(tmp_path)
    extra = {"TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "77", "PYTHONDONTWRITEBYTECODE": "1"}
    result = mlpipe("run", tmp_path / "small.yaml", "--runs", tmp_path / "runs", env=extra, clean=True, cwd=Path("/"))
    assert result.rc == 0, result.text
    for path in sorted((project / "runs").rglob("*")):
        if path.is_file() and path.name != "run.json" and ".lock" not in path.name:
            assert path.read_bytes() == (tmp_path / "runs" / path.relative_to(project / "runs")).read_bytes(), path
    assert {p.name for p in tmp_path.iterdir()} == {"small.yaml", "train.csv", "runs"}


def test_nothing_is_written_outside_the_run_folder(tmp_path: Path) -> None:
    """Every command with a fresh HOME and without CI: no cache, no telemetry, no bytecode beside the user's code (design, section 8)."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    (work / "pipelines").mkdir(parents=True)
    file = small(work / "pipelines")
    env = {k: v for k, v in environment().items() if k != "CI" and not k.startswith("XDG") and k != "ORT_DISABLE_TELEMETRY"}
    env |= {"HOME": str(home), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    table_csv(work / "new.csv", 20)
    for arguments in (
        ["init", "new.csv", "--target", "label", "-o", "pipelines/new.yaml"],
        ["check", str(file)],
        ["run", str(file)],
        ["status", str(file)],
        ["verify", "runs/small"],
        ["predict", "runs/small/export", "new.csv", "-o", "out.csv"],
        ["kinds"],
    ):
        done = subprocess.run([sys.executable, "-m", "mlpipe", *arguments], cwd=work, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert list(home.rglob("*")) == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert {p.name for p in work.iterdir()} == {"pipelines", "runs", "new.csv", "out.csv"}
    assert {p.name for p in (work / "pipelines").iterdir()} == {"small.yaml", "train.csv", "new.yaml"}


def test_closed_output_does_not_end_the_run(tmp_path: Path) -> None:
    """stdout and stderr closed, as some schedulers do: the work is done all the same."""
    file = small(tmp_path)
    command = f'"{sys.executable}" -m mlpipe prepare "{file}" --runs "{tmp_path}/runs" >&- 2>&-'
    assert subprocess.run(["bash", "-c", command], env=environment(), check=False).returncode == 0
    assert (tmp_path / "runs/small/prepare/manifest.json").exists()


def test_quiet_output_in_a_log(tmp_path: Path) -> None:
    """Without a terminal: a line an epoch, no carriage return, no colour codes."""
    result = mlpipe("run", small(tmp_path), "--runs", tmp_path / "runs", "--until", "train")
    assert result.rc == 0
    assert sum(line.strip().startswith("epoch ") for line in result.err.splitlines()) == 4
    assert "\r" not in result.text
    assert "\x1b[" not in result.text
    assert "epoch" not in mlpipe("run", tmp_path / "small.yaml", "--runs", tmp_path / "r2", "--until", "train", "-q").err


def test_verbose_names_what_is_read_and_written(tmp_path: Path) -> None:
    """-v: the id, each input with its digest, each artifact with its size."""
    told = mlpipe("prepare", small(tmp_path), "--runs", tmp_path / "runs", "-v").err
    for words in ("id sha256:", "reads source train.csv: sha256 sha256:", "wrote encoder.onnx, "):
        assert words in told


def test_runs_folder_by_variable(tmp_path: Path) -> None:
    """MLPIPE_RUNS names the runs folder; the option wins."""
    file = small(tmp_path)
    assert mlpipe("prepare", file, env={"MLPIPE_RUNS": str(tmp_path / "here")}, cwd=tmp_path).rc == 0
    assert (tmp_path / "here/small/prepare").is_dir()


def test_unwritable_runs_folder_is_named(tmp_path: Path) -> None:
    """A folder that cannot be made: its name and the reason, no traceback."""
    (tmp_path / "file").write_text("")
    result = mlpipe("prepare", small(tmp_path), "--runs", tmp_path / "file/runs")
    assert result.rc == 1
    clean_failure(result, "file/runs")


def test_full_disk_is_named_and_the_old_result_stays(tmp_path: Path) -> None:
    """A file system of 2 MB: no space is said, with the path, and what was there stays whole (R05d)."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small file system needs root")
    try:
        table_csv(tmp_path / "train.csv", 300)
        file = small(tmp_path)
        assert mlpipe("prepare", file, "--runs", disk).rc == 0
        before = (disk / "small/prepare/manifest.json").read_bytes()
        table_csv(tmp_path / "train.csv", 60_000)
        result = mlpipe("prepare", file, "--runs", disk)
        assert result.rc == 1
        clean_failure(result, "no space left", str(disk))
        assert (disk / "small/prepare/manifest.json").read_bytes() == before
        assert mlpipe("verify", disk / "small").rc == 0
    finally:
        subprocess.run(["umount", disk], check=True)


def test_schema_describes_the_pipeline_files_that_ship() -> None:
    """The JSON Schema names every section and kind, and is itself an object that editors take."""
    schema = json.loads(mlpipe("schema").out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"name", "task", "prepare", "train", "evaluate", "export"} <= set(schema["properties"])
    assert "Mlp" in schema["$defs"]


def test_kinds_lists_every_union() -> None:
    """Each registered kind with a sentence."""
    found = json.loads(mlpipe("kinds", "--json").out)["kinds"]
    assert set(found["sources"]) >= {"csv", "parquet", "jsonl"}
    assert set(found["models"]) >= {"linear", "mlp", "python"}
    assert all(meaning for group in found.values() for meaning in group.values())
