"""What does the report page look like, and what does it cost to write it?

Entities of CoNLL-2003 (in $CRFX_DATA): `crfx train` on eng.train, `crfx report` on eng.testa, and
on the same file ten times over, whose memory shows whether it grows. Chromium takes screenshots.

    python benchmarks/report_page.py               # all, some five minutes
    python benchmarks/report_page.py --render      # only write the page anew

Writes reports/results/report-page.json, reports/figures/report-page-*.png and
reports/report-page.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import RESULTS, ROOT, command_line, host_line, machine, write_json, write_whole

from crfx.datasets.conll2003 import find_conll2003

TARGET = RESULTS / "report-page.json"
REPORTS = ROOT / "reports"
PAGE = REPORTS / "report-page.md"
COPIES = 10
BROWSER = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
DARK = "--blink-settings=preferredColorScheme=0"
PHONE, DESK = 360, 1280
COLUMNS, HEIGHT, GAP = 4, 1500, 24
"""A phone's page is long: it is shown in columns."""
COLOURS = 128
"""Colours of a screenshot's palette: enough for letters and cells."""


def run(*arguments: str) -> tuple[float, int]:
    """Seconds of the processor that a command takes, and its greatest memory in bytes."""
    process = subprocess.Popen([sys.executable, "-m", "crfx", *arguments])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"crfx {' '.join(arguments)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measure(folder: Path) -> dict[str, Any]:
    """Train, write both pages and take screenshots."""
    begin = time.perf_counter()
    train, testa = (str(find_conll2003(f"eng.{part}")) for part in ("train", "testa"))
    model = folder / "ner.crfx"
    run("train", "--model", "linear", "--train", train, "--dev", testa, "-o", str(model), "-q")
    many = folder / "many.conll.gz"
    with gzip.open(testa) as file:
        many.write_bytes(gzip.compress(file.read() * COPIES, compresslevel=1))
    result: dict[str, Any] = {"command": command_line(), "machine": machine()}
    for name, data in (("once", testa), ("many", str(many))):
        page = folder / f"{name}.html"
        seconds, memory = run("report", str(model), data, "-o", str(page), "-q")
        result[name] = {"seconds": seconds, "memory": memory, "bytes": page.stat().st_size}
    process = subprocess.run(
        [sys.executable, "-m", "crfx", "eval", str(model), testa, "--json"],
        check=True,
        capture_output=True,
    )
    judged = json.loads(process.stdout)
    result |= {"tokens": judged["tokens"], "f1": judged["span"]["f1"]}
    result["pictures"] = take_pictures(folder / "once.html", folder)
    return result | {"took": time.perf_counter() - begin}


def take_pictures(page: Path, folder: Path) -> dict[str, int]:
    """Take screenshots and return the bytes of each."""
    from PIL import Image

    frame = folder / "frame.html"  # a window is never as narrow as a phone
    style = f"border:0;width:{PHONE}px;height:{COLUMNS * HEIGHT}px"
    frame.write_text(
        f'<!doctype html><body style="margin:0"><iframe src="{page.name}" style="{style}">'
    )
    strip = picture(frame, folder, 500, COLUMNS * HEIGHT)
    phone = Image.new("RGB", (COLUMNS * (PHONE + GAP) - GAP, HEIGHT), "#888888")
    for column in range(COLUMNS):
        box = (0, column * HEIGHT, PHONE, (column + 1) * HEIGHT)
        phone.paste(strip.crop(box), (column * (PHONE + GAP), 0))
    images = {
        "phone": phone,
        "desktop": picture(page, folder, DESK, 2000),
        "dark": picture(page, folder, DESK, 2000, DARK),
    }
    sizes = {}
    for name, image in images.items():
        path = REPORTS / "figures" / f"report-page-{name}.png"
        image.quantize(COLOURS).save(path, optimize=True)
        sizes[name] = path.stat().st_size
    return sizes


def picture(page: Path, folder: Path, width: int, height: int, *options: str) -> Any:
    """Return a screenshot by Chromium."""
    from PIL import Image

    program = shutil.which("chromium") or "google-chrome"
    path = folder / "picture.png"
    size = f"--window-size={width},{height}"
    command = [program, *BROWSER, *options, size, f"--screenshot={path}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    with Image.open(path) as image:
        return image.convert("RGB")


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from the measurements."""
    once, many = result["once"], result["many"]
    lines = [
        "# The report page, looked at",
        "",
        "Rendered by `benchmarks/report_page.py` from "
        "[results/report-page.json](results/report-page.json).",
        "",
        host_line(result, ("crfx", "numpy")),
        "",
        "```",
        "crfx train --model linear --train eng.train.gz --dev eng.testa.gz -o ner.crfx",
        "crfx report ner.crfx eng.testa.gz -o page.html",
        "```",
        "",
        f"CoNLL-2003, English entities; F1 on testa {100 * result['f1']:.2f}. What is on the page "
        "is described in [docs/report-page.md](../docs/report-page.md).",
        "",
        "| file | positions | processor | greatest memory | page |",
        "|---|---|---|---|---|",
        _row("testa", result["tokens"], once),
        _row(f"testa {COPIES} times over", COPIES * result["tokens"], many),
        "",
        "Seconds of the processor are of the whole command. Sequences that are not shown are not "
        "kept, so memory does not grow with the file.",
        "",
        f"A desktop, {DESK} pixels wide: its first screens, light and dark.",
        "",
        "![The page on a desktop: figures, labels, mistakes, the worst sequence]"
        "(figures/report-page-desktop.png)",
        "",
        "![The same in dark colours](figures/report-page-dark.png)",
        "",
        f"A phone, {PHONE} pixels wide; columns follow each other from left to right. Wide tables "
        "scroll inside their own box.",
        "",
        "![The page on a phone](figures/report-page-phone.png)",
        "",
    ]
    return "\n".join(lines)


def _row(name: str, tokens: int, figures: dict[str, Any]) -> str:
    memory, size = figures["memory"] / 2**20, figures["bytes"] / 1e3
    return (
        f"| {name} | {tokens:,} | {figures['seconds']:.1f} s | {memory:.0f} MiB | {size:.0f} kB |"
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    arguments = parser.parse_args()
    if not arguments.render:
        with tempfile.TemporaryDirectory() as folder:
            write_json(TARGET, measure(Path(folder)))
    text = page(json.loads(TARGET.read_text(encoding="utf-8")))
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
