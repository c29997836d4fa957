"""What does a cluster change: the model, the time, the bytes, what survives?

Real processes of a Dask `LocalCluster` on this machine, one thread each, against the same estimator
without a cluster on one thread. Part by part, since some take long:

    python benchmarks/distributed.py --only agreement   # 1, 2, 3 workers against none
    python benchmarks/distributed.py --only overhead    # one worker against none
    python benchmarks/distributed.py --only kills       # 20 random kills
    python benchmarks/distributed.py --only scale       # seconds and bytes by rows and workers
    python benchmarks/distributed.py --only large       # 10 million positions
    python benchmarks/distributed.py --render           # only write the page anew

OCR and MQ2008 come from $CRFX_DATA. Writes reports/results/distributed.json, part by part, and from
it and from the results of `out_of_core.py` reports/distributed.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

# This file is called like Dask's package: who asks for that must not find this one.
HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parent), *(path for path in sys.path if Path(path).resolve() != HERE)]

from benchmarks.clusters import agreement, kills, overhead, page, scale  # noqa: E402
from benchmarks.measuring import (  # noqa: E402
    RESULTS,
    ROOT,
    command_line,
    machine,
    write_json,
    write_whole,
)

TARGET = RESULTS / "distributed.json"
PAGE = ROOT / "reports" / "distributed.md"
PARTS = {
    "agreement": agreement.measure,
    "overhead": overhead.measure,
    "kills": kills.measure,
    "scale": scale.measure,
    "large": scale.measure_large,
}


def found() -> dict[str, Any]:
    """Return the recorded measurements."""
    result: dict[str, Any] = json.loads(TARGET.read_text(encoding="utf-8"))
    return result


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, help="measure one part")
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    arguments = parser.parse_args()
    parts = {} if arguments.render else PARTS
    for name, measure in parts.items():
        if arguments.only in (None, name):
            begin = time.perf_counter()
            part = {"command": command_line(), "machine": machine()} | measure()
            part["took"] = time.perf_counter() - begin
            write_json(TARGET, (found() if TARGET.exists() else {}) | {name: part})
    text = page.rendered(found())
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
