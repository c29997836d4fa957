"""Text files of conllu: what is read is written back as it was, and guessed without a crash."""

from __future__ import annotations

from harness import fuzz, on_disk
from texts import there_and_back

MODULES = ["crfx.io.conllu", "crfx.io.formats", "crfx.io.lines"]
SEEDS = [
    b"# sent_id = 1\n1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_\n2\tb\tb\tNOUN\tNN\tX=1\t0\troot\t_\t_\n\n",
    b"1-2\tam\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\ta\tADP\t_\t_\t0\troot\t_\t_\n2\tm\tm\tDET\t_\t_\t1\tdet\t_\t_\n2.1\te\t_\t_\t_\t_\t_\t_\t_\t_\n",
]
TARGET = on_disk(lambda path: there_and_back("conllu", path))

if __name__ == "__main__":
    fuzz(TARGET, SEEDS, MODULES)
