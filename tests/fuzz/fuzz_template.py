"""The template language: what is a template gives features, the same by both ways."""

from __future__ import annotations

from harness import fuzz

from crfx.features import Template

COLUMNS = ("word", "pos")
MODULES = ["crfx.features.templates"]
SEEDS = [
    b"word[-2..2]\nlower(word[0])\nsuffix(word[0], 1..4)\n",
    b"pos[-1..0] & pos[0..1]  # pairs\nword[0] & pos[1]\ntrue",
    b"kind(word[0])\nshape(pos[+1])\nprefix(word[-1, 0, 1], 2)\n",
]
SENTENCE = [("Bell-5a", "NN"), ("", "ß"), ("日本", "-"), ("a" * 50, "\u0130")]


def target(raw: bytes) -> None:
    """Read the text, and look at a sentence through it."""
    template = Template(raw.decode("utf-8"), COLUMNS)
    result = template.features(SENTENCE)
    assert len(result) == len(SENTENCE)
    assert template.features([]) == []


TARGET = target

if __name__ == "__main__":
    fuzz(TARGET, SEEDS, MODULES)
