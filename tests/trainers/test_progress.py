"""Progress is written as lines where there is no terminal: by logging, or to standard error."""

import logging
from types import MappingProxyType

import pytest

from crfx.trainers.progress import LOGGER, ProgressBar

LINE = "3/10: objective 0.5, 0 s"


@pytest.fixture
def logger():
    """The logger of crfx, without the handlers of pytest."""
    LOGGER.propagate = False
    yield LOGGER
    LOGGER.propagate = True
    LOGGER.setLevel(logging.NOTSET)
    LOGGER.handlers.clear()


class Round:
    n_rounds = 3
    history = MappingProxyType({"objective": [0.7, 0.5]})


class Collected(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append((record.levelname, record.name, record.getMessage()))


def show():
    bar = ProgressBar(10)
    bar(Round)
    bar.close()


@pytest.mark.parametrize("level", [None, logging.WARNING])
def test_progress_writes_to_standard_error_by_default(logger, capsys, level):
    if level is not None:
        logger.addHandler(Collected())
        logger.setLevel(level)
    show()
    assert capsys.readouterr().err == f"{LINE}\n"


def test_progress_writes_to_a_logger_that_is_set_up(logger, capsys):
    collected = Collected()
    logger.addHandler(collected)
    logger.setLevel(logging.INFO)
    show()
    assert collected.lines == [("INFO", "crfx", LINE)]
    assert capsys.readouterr().err == ""
