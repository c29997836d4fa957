"""Text files of conll: what is read is written back as it was, and guessed without a crash."""

from __future__ import annotations

from harness import fuzz, on_disk
from texts import there_and_back

MODULES = ["crfx.io.conll", "crfx.io.formats", "crfx.io.lines"]
SEEDS = [
    b"EU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\n",
    b"-DOCSTART- -X- O\n\nEU\tNNP\tB-ORG\n\n\nx\ty\tO",
    b"# a comment\r\na  b  c\r\n\r\n\xc3\xa4 \xe6\x97\xa5 O\r\n",
]
TARGET = on_disk(lambda path: there_and_back("conll", path))

if __name__ == "__main__":
    fuzz(TARGET, SEEDS, MODULES)
