"""What columns say of each other, looked for by `init` in the first rows: groups, formulas of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlpipe.columns import Column
from mlpipe.errors import DataError
from mlpipe.leaks.giveaway import formulas
from mlpipe.leaks.groups import GroupEvidence, group_columns
from mlpipe.sources.base import Source
from mlpipe.stages.look.guess import Guess
from mlpipe.stages.look.study import Study
from mlpipe.stages.rows import typed_rows

if TYPE_CHECKING:
    import pyarrow as pa

LOOKED_AT = 200_000  # rows


def sample(found: Study, settings: dict[str, Any], target: str, guesses: Sequence[Guess], *, numeric_target: bool) -> pa.Table:
    """The first rows with every usable column and the target, typed as the pipeline file will read them."""
    import pyarrow as pa

    kinds = {guess.name: "number" if guess.kind == "numeric" else "text" for guess in guesses if guess.holds not in ("constant", "nothing")}
    kinds = {**kinds, target: "number" if numeric_target else "text"}
    columns = [Column.model_validate({"name": name, "type": kind}) for name, kind in kinds.items()]
    source: Source = found.seen.source.model_copy(
        update={name: _frozen(value) for name, value in settings.items() if name not in ("kind", "path", "url", "table", "order_by")}
    )
    batches, rows = [], 0
    try:
        for chunk in typed_rows(source, found.base, columns):
            batches.append(chunk.rows)
            rows += chunk.rows.num_rows
            if rows >= LOOKED_AT:
                break
    except DataError:  # cells that prepare will name: what was read before them says enough
        pass
    return pa.Table.from_batches(batches) if batches else pa.table({})


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return {name: _frozen(item) for name, item in value.items()} if isinstance(value, dict) else value


def without_formulas(table: pa.Table, guesses: list[Guess], target: str) -> tuple[list[Guess], list[str]]:
    """Columns of which the target is the sum, difference, product or quotient are left out; they give it away. And what to tell."""
    names = [guess.name for guess in guesses if guess.kind == "numeric" and guess.name in table.column_names]
    told = []
    for formula in formulas(table, names, target) if target in table.column_names else ():
        said = f"{target} is {formula.left} {formula.operation} {formula.right} in {formula.share:.1%} of {formula.rows:,} rows"
        told.append(f"{formula.left} and {formula.right} are left out: {said}")
        for i, guess in enumerate(guesses):
            if guess.name in (formula.left, formula.right) and guess.kind == "numeric":
                guesses[i] = replace(guess, kind="ignore", reason=f"gives the target away: {said}", doubt=False)
    return guesses, told


def groups(table: pa.Table, target: str) -> list[GroupEvidence]:
    """Columns that are named like the id of a person or a thing with several rows each."""
    return [evidence for evidence in group_columns(table, ignore=[target]) if evidence.named]


def grouped(guesses: list[Guess], found: Sequence[GroupEvidence]) -> list[Guess]:
    """Names of persons and things become keys: what is learned of one of them says nothing of the next."""
    names = {evidence.column for evidence in found}
    return [
        replace(guess, kind="key", remark=f"names what has several rows each ({evidence.said})", tokens={})
        if guess.name in names and guess.kind in ("numeric", "category") and (evidence := next(e for e in found if e.column == guess.name))
        else guess
        for guess in guesses
    ]
