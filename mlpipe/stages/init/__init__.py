"""`mlpipe init`: looks at a whole table once and writes its guesses, with their evidence, into a pipeline file."""

from mlpipe.stages.init.report import InitReport, init

__all__ = ["InitReport", "init"]
