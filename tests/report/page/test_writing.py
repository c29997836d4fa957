"""The page from Python is that of the command, for all that `fit` takes."""

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="the page needs Jinja2: crfx[report]")

from crfx import LinearCRF, RankingCRF
from crfx.report import write_page
from crfx.testing import make_task


@pytest.fixture(scope="module")
def fitted():
    X, y = make_task()
    return LinearCRF(n_jobs=1).fit(X, y), X, y


def test_lists_and_stacked_arrays_give_the_same_page(fitted, tmp_path):
    crf, X, y = fitted
    tokens = [[f"<u>{at}" for at in range(len(labels))] for labels in y]
    write_page(crf, X, y, tmp_path / "a.html", tokens=tokens, title="A & B")
    stacked = {"lengths": list(map(len, y)), "tokens": tokens, "title": "A & B"}
    write_page(crf, np.concatenate(X), np.concatenate(y), tmp_path / "b.html", **stacked)
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.html").read_text(encoding="utf-8")
    assert "A &amp; B" in text
    assert "&lt;u&gt;0" in text
    assert "<u>0" not in text


def test_write_page_rejects_bad_input_and_writes_nothing(fitted, tmp_path):
    crf, X, y = fitted
    path = tmp_path / "page.html"
    tokens = [list(labels) for labels in y]
    with pytest.raises(ValueError, match=rf"tokens has {len(y) - 1} sequences and y {len(y)}"):
        write_page(crf, X, y, path, tokens=tokens[:-1])
    tokens[2] = tokens[2][:-1]
    with pytest.raises(ValueError, match=r"tokens\[2\] has \d+ entries and sequence 2 \d+ pos"):
        write_page(crf, X, y, path, tokens=tokens)
    with pytest.raises(ValueError, match="no label that is known"):
        write_page(crf, X, [[None] * len(labels) for labels in y], path)
    with pytest.raises(ValueError, match="RankingCRF does not label"):
        write_page(RankingCRF(), X, y, path)
    assert not path.exists()
