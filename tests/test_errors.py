"""errors.py: each way to fail has its own exit code, and a message says what, where and what to do."""

from __future__ import annotations

import inspect

import pytest

from mlpipe import errors
from mlpipe.errors import DataError, MlpipeError, StoppedError, did_you_mean, listed

CODES = {
    "MachineError": 1,
    "SpecError": 2,
    "DataError": 3,
    "NotReadyError": 4,
    "TrainingError": 5,
    "GateError": 6,
    "IntegrityError": 7,
    "ParityError": 8,
    "LockedError": 75,
}


def test_every_failure_has_the_exit_code_of_the_design():
    found = {
        name: kind.exit_code
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, MlpipeError) and kind not in (MlpipeError, StoppedError)
    }
    assert found == CODES


@pytest.mark.parametrize(("signum", "code"), [(2, 130), (15, 143)])
def test_a_signal_exits_with_128_and_its_number(signum, code):
    assert StoppedError(signum, "interrupted").exit_code == code


def test_message_faults_and_hint_stand_on_lines_of_their_own():
    error = DataError("2 cells of a wrong kind", faults=["line 3", "line 9"], hint="correct them")
    assert str(error) == "2 cells of a wrong kind\n  line 3\n  line 9\n  hint: correct them"


def test_a_message_alone_is_only_itself():
    assert str(DataError("no rows")) == "no rows"


def test_did_you_mean_names_the_closest_known_name_and_nothing_where_none_is_close():
    assert did_you_mean("hours-per-week", ["age", "hours_per_week"]) == "did you mean 'hours_per_week'?"
    assert did_you_mean("zzz", ["age", "hours_per_week"]) is None


def test_long_lists_of_names_are_cut():
    assert listed("abc") == "a, b, c"
    assert listed(map(str, range(13))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ..."
