"""Text files of crfsuite: what is read is written back as it was, and guessed without a crash."""

from __future__ import annotations

from harness import fuzz, on_disk
from texts import there_and_back

MODULES = ["crfx.io.crfsuite", "crfx.io.formats", "crfx.io.lines"]
SEEDS = [
    b"B-NP\tw[0]=An\tw[1]=A.P.\tscale:0.5\nO\tx\n\nO\n",
    b"O\tw=\\:\ta\\\\b:1e-3\ta\n\n\\:\t\tx\n",
    b"\xc3\xa4\t\xe6\x97\xa5:2\tw=a\tw=a\r\n",
]
TARGET = on_disk(lambda path: there_and_back("crfsuite", path))

if __name__ == "__main__":
    fuzz(TARGET, SEEDS, MODULES)
