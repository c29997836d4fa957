"""Draw mutations of crfx with cosmic-ray: the sample that the tests are measured with.

    pip install cosmic-ray
    python benchmarks/mutations/draw.py [--count 300] [--seed 0]

Writes benchmarks/mutations/drawn.jsonl, in an order of which every prefix is a fair sample. A
mutation is named by the text of the lines it replaces, so that it applies after lines have moved.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
DRAWN = Path(__file__).with_name("drawn.jsonl")
AT_LEAST = 3  # mutations per folder
TYPING = "TYPE_CHECKING"

Position = tuple[int, int]  # line, column: comparable with those of `ast`


class Site(NamedTuple):
    """A piece of source that one or more operators of cosmic-ray change."""

    module: str
    begin: Position
    end: Position


def sites_of(module: Path, source_folder: Path) -> dict[Site, list[tuple[str, int]]]:
    """Return the sites of a module with what can be done there: operator and occurrence."""
    from cosmic_ray.commands.init import _all_work_items

    skipped = list(without_behaviour(ast.parse(module.read_text(encoding="utf-8"))))
    sites = defaultdict(list)
    for item in _all_work_items([module], {}):
        (spec,) = item.mutations
        if not any(first <= spec.start_pos < last for first, last in skipped):
            name = module.relative_to(source_folder).as_posix()
            site = Site(name, tuple(spec.start_pos), tuple(spec.end_pos))
            sites[site].append((spec.operator_name, spec.occurrence))
    return sites


def without_behaviour(tree: ast.Module) -> Iterator[tuple[Position, Position]]:
    """Yield where a mutation has no effect that a test could see: types, decorators, `__all__`."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts = [*node.decorator_list, getattr(node, "returns", None)]
        elif isinstance(node, ast.Call) and _name(node.func) in ("cast", "TypeVar", "NewType"):
            parts = [*node.args[:1]]
        elif _is_alias_or_export(node, tree) or _name(getattr(node, "test", node)) == TYPING:
            parts = [node]
        for part in filter(None, parts):
            # cosmic-ray places the removal of a decorator at its "@".
            before = int(part in getattr(node, "decorator_list", ()))
            yield (part.lineno, part.col_offset - before), (part.end_lineno, part.end_col_offset)


def _name(node: ast.AST) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _is_alias_or_export(node: ast.AST, tree: ast.Module) -> bool:
    """Tell whether this is an assignment that names a union of types, or is `__all__`."""
    if not isinstance(node, ast.Assign):
        return False
    parts = list(ast.walk(node.value))
    union = any(isinstance(part, ast.BitOr) for part in parts) and not any(
        isinstance(part, ast.Call) for part in parts
    )
    return _name(node.targets[0]) == "__all__" or (union and node in tree.body)


def mutate(
    source_folder: Path, site: Site, operator: str, occurrence: int
) -> dict[str, Any] | None:
    """Return one mutation as a record, or None if it leaves the program as it is or breaks it."""
    import cosmic_ray.plugins
    from cosmic_ray.mutating import mutate_code

    source = (source_folder / site.module).read_text(encoding="utf-8")
    mutated = mutate_code(source, cosmic_ray.plugins.get_operator(operator)(), occurrence)
    try:
        if mutated is None or ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    old, new = source.splitlines(keepends=True), mutated.splitlines(keepends=True)
    first = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    tail = next(i for i, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b)
    before = "".join(old[first : len(old) - tail])
    return {
        "module": site.module,
        "operator": operator.removeprefix("core/"),
        "line": first + 1,
        "before": before,
        "after": "".join(new[first : len(new) - tail]),
        # Which of the equal lines of the module it is.
        "repeat": occurrences(source, before).index(first),
    }


def occurrences(source: str, text: str) -> list[int]:
    """Return the indices of the lines at which a text of whole lines begins."""
    lines, wanted = source.splitlines(keepends=True), text.splitlines(keepends=True)
    return [i for i in range(len(lines)) if lines[i : i + len(wanted)] == wanted]


def apply_mutation(source: str, mutation: dict[str, Any]) -> tuple[str, int] | None:
    """Return the mutated source and the number of the mutated line; None if it is not there."""
    places = occurrences(source, mutation["before"])
    if mutation["repeat"] >= len(places):
        return None
    first = places[mutation["repeat"]]
    lines = source.splitlines(keepends=True)
    lines[first : first + mutation["before"].count("\n")] = [mutation["after"]]
    return "".join(lines), first + 1


def folder(module: str) -> str:
    """Return the folder below `crfx/` that a module counts for."""
    parts = module.split("/")
    return parts[1] if len(parts) > 2 else "crfx"


def shares(lines: dict[str, int], count: int) -> dict[str, int]:
    """Divide a number of mutations among folders by lines, with at least three for each."""
    whole = sum(lines.values())
    exact = {name: max(AT_LEAST, count * size / whole) for name, size in lines.items()}
    scale = (count - AT_LEAST * sum(e == AT_LEAST for e in exact.values())) / sum(
        e for e in exact.values() if e > AT_LEAST
    )
    exact = {name: e if e == AT_LEAST else e * scale for name, e in exact.items()}
    result = {name: int(e) for name, e in exact.items()}
    by_rest = sorted(exact, key=lambda name: exact[name] - result[name], reverse=True)
    for name in by_rest[: count - sum(result.values())]:
        result[name] += 1
    return result


def draw(source_folder: Path, count: int, seed: int) -> list[dict[str, Any]]:
    """Draw sites in every folder, and one mutation of each site, however many there are."""
    modules = sorted(path for path in source_folder.rglob("*.py") if path.parent.name != "_core")
    lines: dict[str, int] = defaultdict(int)
    sites: dict[str, dict[Site, list[tuple[str, int]]]] = defaultdict(dict)
    for path in modules:
        place = folder(path.relative_to(source_folder).as_posix())
        lines[place] += len(path.read_text(encoding="utf-8").splitlines())
        sites[place] |= sites_of(path, source_folder)
    generator = random.Random(seed)
    drawn = []
    for place, wanted in shares({name: lines[name] for name in sites}, count).items():
        mutations: list[dict[str, Any]] = []
        for site in generator.sample(sorted(sites[place]), len(sites[place])):
            if len(mutations) == wanted:
                break
            mutation = mutate(source_folder, site, *generator.choice(sites[place][site]))
            mutations += [mutation] if mutation else []
        drawn += mutations
    generator.shuffle(drawn)
    return drawn


def main() -> None:
    """Draw and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    drawn = draw(ROOT / "src", arguments.count, arguments.seed)
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in drawn)
    DRAWN.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
