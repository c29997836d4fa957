"""Small files of text with entities, for the commands."""

import signal
import subprocess
import sys

import numpy as np
import pytest

NAMES = ["Ada", "Bo", "Cy", "Dee", "Eli"]
CITIES = ["Rome", "Oslo", "Bonn", "Lima"]
WORDS = ["met", "saw", "in", "and", "left", "with", "the", "old"]


def sentences(seed, count):
    """[(word, tag, label), ...] per sentence; names of one or two words, cities of one."""
    random = np.random.default_rng(seed)
    result = []
    for _ in range(count):
        rows = []
        for _ in range(random.integers(1, 5)):
            rows += [(word, "w", "O") for word in random.choice(WORDS, random.integers(1, 4))]
            if random.random() < 0.5:
                rows.append((str(random.choice(NAMES)), "n", "B-PER"))
                if random.random() < 0.5:
                    rows.append((str(random.choice(NAMES)), "n", "I-PER"))
            else:
                rows.append((str(random.choice(CITIES)), "n", "B-LOC"))
        result.append(rows)
    return result


def as_conll(rows_of_sentences, *, labelled=True):
    width = 3 if labelled else 2
    return "".join(
        "".join(" ".join(row[:width]) + "\n" for row in rows) + "\n" for rows in rows_of_sentences
    )


@pytest.fixture
def conll(tmp_path, monkeypatch):
    """train.txt, dev.txt, test.txt and plain.txt (test without labels) in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, seed, count in (("train", 0, 60), ("dev", 1, 20), ("test", 2, 20)):
        (tmp_path / f"{name}.txt").write_text(as_conll(sentences(seed, count)))
    (tmp_path / "plain.txt").write_text(as_conll(sentences(2, 20), labelled=False))
    return tmp_path


@pytest.fixture
def started():
    """Starts a command in a process of its own that hears Ctrl-C, and ends it with the test.

    What runs in the background has SIGINT ignored, and so have its children.
    """
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "crfx", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
