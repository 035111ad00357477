"""The documents say what the code does: commands, options, examples, links, and the page that is printed from the code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mlpipe.cli.reference import FILES, MEANINGS, commands, reference
from mlpipe.errors import MlpipeError
from mlpipe.metrics import METRICS
from mlpipe.run import STAGES
from mlpipe.spec import PipelineSpec, load_pipeline
from mlpipe.stages.kinds import UNIONS, all_kinds, kind_of, members
from mlpipe.yamlfile import parse_yaml, plain
from tests.helpers import chain, environment, strict_json

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "data").rglob("*.md"), ROOT / "LICENSE"], key=lambda p: p.as_posix()
)
MARKDOWN = [page for page in PAGES if page.suffix == ".md"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def calls(text: str) -> list[list[str]]:
    """Every `mlpipe ...` line of the shell blocks, in words, up to a redirection or the next command."""
    lines = [line.strip() for block in blocks(text, "sh") for line in block.splitlines()]
    found = []
    for line in (line for line in lines if line.startswith("mlpipe ")):
        words = shlex.split(line, comments=True)
        end = next((i for i, word in enumerate(words) if word in (">", "2>", "|", "&&", ";")), len(words))
        found.append(words[1:end])
    return found


# ---- the reference


def test_the_reference_is_what_the_code_prints() -> None:
    """`make docs` writes it anew."""
    assert (ROOT / "docs" / "reference.md").read_text(encoding="utf-8") == reference()


def test_the_reference_does_not_depend_on_the_machine(tmp_path: Path) -> None:
    """Another width, folder, time zone, order of hashes: the same bytes."""
    extra = {"COLUMNS": "40", "MLPIPE_RUNS": "elsewhere", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-m", "mlpipe.cli.reference"], cwd=tmp_path, env=environment(extra), capture_output=True, check=True
    )
    assert done.stdout == reference().encode()


@pytest.mark.parametrize("group", sorted(all_kinds()))
def test_every_kind_and_each_of_its_settings_is_in_the_reference(group: str) -> None:
    """By its heading, with its docstring's first words and a row for each setting."""
    page = reference()
    if group == "metrics":
        for metric in METRICS.values():
            assert f"| `{metric.name}` | {metric.task} |" in page
        return
    for member in members(UNIONS[group]):
        heading = f"#### {group.removesuffix('s')} {kind_of(member)}\n"
        assert page.count(heading) == 1
        section = page.split(heading)[1].split("\n#")[0]
        assert " ".join(member.__doc__.split()[:4]) in " ".join(section.split())
        for setting in member.model_fields:
            assert f"| `{setting}` |" in section


def test_every_command_option_and_exit_code_is_in_the_reference() -> None:
    """Help texts too."""
    page = reference()
    for command, found in commands().items():
        assert f"### mlpipe {command}\n" in page
        for parameter in found.params:
            assert parameter.help
            assert parameter.help in page
            for option in parameter.opts if parameter.param_type_name == "option" else ():
                assert f"`{option}`" in page
    for fault in MlpipeError.__subclasses__():
        assert fault.__name__ in page


def test_every_meaning_belongs_to_a_setting() -> None:
    """A setting that is renamed or gone takes its sentence with it."""
    classes = {
        c.__name__: c for union in UNIONS.values() for member in members(union) for c in member.__mro__ if hasattr(c, "model_fields")
    }
    sections = [PipelineSpec, *(field.annotation for field in PipelineSpec.model_fields.values())]
    classes |= {c.__name__: c for c in sections if hasattr(c, "model_fields")}
    from mlpipe.sources.documents import Labels
    from mlpipe.spec import Gate, Leaks

    classes |= {"Gate": Gate, "Leaks": Leaks, "Labels": Labels}
    everywhere = {setting for c in classes.values() for setting in c.model_fields}
    for key in MEANINGS:
        owner, _, setting = key.rpartition(".")
        assert setting in (classes[owner].model_fields if owner else everywhere), key


# ---- commands and examples


@pytest.mark.parametrize("page", MARKDOWN, ids=name)
def test_commands_in_shell_blocks_exist_with_their_options(page: Path) -> None:
    """Parsed by the command line itself, so that a missing argument or a renamed option shows."""
    found = commands()
    for command, *words in calls(page.read_text(encoding="utf-8")):
        assert command in found, f"mlpipe {command}"
        if "[OPTIONS]" in words or {"PIPELINE", "DATA..."} & set(words):
            continue  # the usage line of the reference
        found[command].make_context(command, list(words))


def test_the_readme_shows_the_tour() -> None:
    """From inspect to predict, in order."""
    assert [words[0] for words in calls(README)][:7] == ["inspect", "init", "check", "run", "status", "verify", "predict"]


@pytest.mark.parametrize("page", MARKDOWN, ids=name)
def test_commands_and_make_targets_in_running_text_exist(page: Path) -> None:
    """`mlpipe word` and `make word` in backticks."""
    text = prose(page.read_text(encoding="utf-8"))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(re.findall(r"`mlpipe ([a-z]+)[ `]", text)) <= set(commands())
    assert set(re.findall(r"`make ([a-z]+)`", text)) <= targets


def pipeline_example(folder: Path, own_network: bool = False) -> Path:
    """The README's pipeline file in a folder laid out like the clone, with the reader's own network on request."""
    example, *_, own = blocks(README, "yaml")
    (folder / "pipelines").mkdir(parents=True)
    (folder / "data").symlink_to(ROOT / "data")
    file = folder / "pipelines" / "penguins.yaml"
    if own_network:
        before, after = example.split("train:\n")[0], "evaluate:\n" + example.split("evaluate:\n")[1]
        example = before + own + after
        (file.parent / "my_net.py").write_text(next(b for b in blocks(README, "python") if "class Net" in b), encoding="utf-8")
    file.write_text(example, encoding="utf-8")
    return file


def test_the_pipeline_file_of_the_readme_is_the_one_that_ships(tmp_path: Path) -> None:
    """Setting for setting."""
    assert load_pipeline(pipeline_example(tmp_path)).spec == load_pipeline(ROOT / "pipelines" / "penguins.yaml").spec


def test_yaml_examples_are_yaml() -> None:
    """Of every page."""
    for page in MARKDOWN:
        for block in blocks(page.read_text(encoding="utf-8"), "yaml"):
            assert isinstance(plain(parse_yaml(block, page.name)), dict)


@pytest.mark.slow
def test_the_own_network_of_the_readme_runs_and_a_stranger_calls_it(tmp_path: Path) -> None:
    """Its code and settings as printed; then the README's call with onnxruntime and numpy; then the files that the reference lists."""
    file = pipeline_example(tmp_path, own_network=True)
    outcomes = chain(file, tmp_path / "runs", overrides=["train.epochs=2", "evaluate.gates=[]"])
    stranger = next(block for block in blocks(README, "python") if "InferenceSession" in block)
    done = subprocess.run([sys.executable, "-c", stranger], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert re.match(r"\['\w+' '\w+'\] \[\[", done.stdout)
    for stage in STAGES:
        listed = {(path, role) for path, role, _ in FILES[stage]}
        assert {(o["path"], o["role"]) for o in outcomes[stage].manifest.data["outputs"]} == listed
        assert {p.name for p in (tmp_path / "runs" / "penguins" / stage).iterdir()} == {path.split("/")[0] for path, _ in listed} | {
            "manifest.json",
            "run.json",
        }
    tree = next(block for block in blocks(README, "text") if block.startswith("runs/penguins/"))
    for stage in STAGES:
        shown = next(line for line in tree.splitlines() if line.strip().startswith(f"{stage}/")).split()[1:]
        assert {word.rstrip("/") for word in shown} == {path.split("/")[0] for path, _, _ in FILES[stage]}
    assert strict_json(tmp_path / "runs" / "penguins" / "train" / "model.json")["model"]["options"] == {"width": 64}


def test_examples_turn_telemetry_off_before_onnxruntime_is_imported() -> None:
    """In every page that imports it."""
    for page in MARKDOWN:
        for block in blocks(page.read_text(encoding="utf-8"), "python"):
            if "import onnxruntime" in block:
                assert block.index('os.environ["ORT_DISABLE_TELEMETRY"] = "1"') < block.index("import onnxruntime")


# ---- the text itself


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", MARKDOWN, ids=name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    """To a file of the repository, and to a heading where one is named."""
    text = prose(page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_names_a_machine(page: Path) -> None:
    """No path of one machine, no registry's host, no address of a private network."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"(?:^|[\s`\"'(=])(/(?:work|tmp|root|home|Users|srv|opt|mnt)\b\S*)|\b[a-z]:\\", text, flags=re.MULTILINE)
    assert found == []
    assert (
        re.findall(r"pypi\.org|pythonhosted|anaconda\.org|index-url|artifactory|localhost|\b(?:127|10|192\.168)(?:\.\d+){2,3}\b", text)
        == []
    )


@pytest.mark.parametrize("page", [page for page in MARKDOWN if page.parent != ROOT / "docs"], ids=name)
def test_running_text_has_one_sentence_a_line(page: Path) -> None:
    """Lists and tables aside, so that a diff shows what changed."""
    for line in prose(page.read_text(encoding="utf-8")).splitlines():
        if re.match(r"\s*([-|#]|\d+\.)", line):
            continue
        assert not re.search(r"[a-z`)][.!?] [A-Z`]", line), line


def test_the_licence_is_the_one_that_the_package_names() -> None:
    """Apache 2.0, the whole text."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_changelog_begins_with_this_version() -> None:
    """What a user has is what it speaks of."""
    from mlpipe import __version__

    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings[0] == __version__
