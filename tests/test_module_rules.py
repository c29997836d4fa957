"""Rules of the house that hold between modules; `test_architecture.py` has the order of imports.

Every rule is a function from a source tree to a list of violations.  It must find none in crfx, and
one in a small tree in which one has been planted.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "crfx"

ESTIMATORS = ("GBCRF", "TreeCRF", "LinearCRF", "HiddenUnitCRF", "RankingCRF")
ESTIMATOR_BASES = ("Estimator", "LabellingEstimator")
ABOVE_ESTIMATORS = ("estimators", "distributed", "cli", "report", "scorers", "testing", "__init__")
"""Parts of crfx that may know estimators."""
MAY_IMPORT_MODULE = ("__init__", "report.__init__", "estimators.registry")
DOORS = {
    "xgboost": ("potentials", "distributed"),  # trees; the collective of workers
    "sklearn": None,  # the face of all estimators
    "dask": ("distributed",),
    "distributed": ("distributed",),
    "matplotlib": ("report",),
    "jinja2": ("report",),
    "pandas": ("features", "distributed", "inputs", "io"),
    "pyarrow": ("io",),
    "rich": ("cli", "trainers", "messages"),
}
"""Parts that may import a foreign library; None: any."""
LATE = ("xgboost", "dask", "distributed")
"""Libraries that are imported inside functions only: they are slow to import, or extras."""


@dataclass(frozen=True)
class Module:
    """A module of a source tree: its dotted name inside the package, and its syntax tree."""

    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @property
    def part(self) -> str:
        return self.name.split(".")[0]

    @property
    def package(self) -> list[str]:
        return self.name.split(".")[:-1]


@cache
def modules_of(source: Path) -> dict[str, Module]:
    paths = sorted(source.rglob("*.py"))
    names = [".".join(path.relative_to(source).with_suffix("").parts) for path in paths]
    return {name: Module(name, path) for name, path in zip(names, paths, strict=True)}


def imported_names(module: Module) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute dotted name) of every import, also in functions and for types."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ["crfx", *module.package]
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


# 1. No cycle


def imported_modules(source: Path, module: Module) -> set[str]:
    known, targets = modules_of(source), set()
    for _, dotted in imported_names(module):
        root, *parts = dotted.split(".")
        if root != "crfx":
            continue
        while parts and ".".join(parts) not in known:
            if ".".join([*parts, "__init__"]) in known:
                parts = [*parts, "__init__"]
                break
            parts.pop()
        if parts:
            targets.add(".".join(parts))
    return targets - {module.name}


def cycles(source: Path) -> list[str]:
    """Return the import cycles; the package's own `__init__`, which offers names, aside."""
    known = modules_of(source)
    graph = {
        name: sorted(imported_modules(source, module))
        for name, module in known.items()
        if name != "__init__"
    }
    result, done = [], set()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            result.append(" -> ".join([*trail[trail.index(name) :], name]))
            return
        if name in done or name not in graph:
            return
        for target in graph[name]:
            visit(target, [*trail, name])
        done.add(name)

    for name in graph:
        visit(name, [])
    return result


# 3. Private names stay in their module


NAMED_TUPLES = ("_asdict", "_fields", "_make", "_replace")
"""Public names of named tuples, which begin with an underscore so that fields may have any name."""


def is_private(name: str) -> bool:
    is_dunder = name.startswith("__") or name == "_"
    return name.startswith("_") and not is_dunder and name not in NAMED_TUPLES


def defined_names(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("self", "cls")
        ):
            names.add(node.attr)
    return names


def private_uses(source: Path) -> list[str]:
    """Return uses of private names outside of the module that defines them."""
    result = []
    for module in modules_of(source).values():
        defined = defined_names(module.tree)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                owner = node.value.id if isinstance(node.value, ast.Name) else None
                if owner not in ("self", "cls", "_core") and node.attr not in defined:
                    result.append(f"{module.name}:{node.lineno}: {ast.unparse(node)}")
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if is_private(alias.name) and alias.name not in ("_core", "_native"):
                        result.append(f"{module.name}:{node.lineno}: import of {alias.name}")
    return result


# 4. Nobody below an estimator sees an estimator


def seen_estimators(source: Path) -> list[str]:
    """Return annotations below estimators that name one, and fitted attributes read of `Any`."""
    result = []
    names = re.compile(rf"\b({'|'.join((*ESTIMATORS, *ESTIMATOR_BASES))})\b")
    for module in modules_of(source).values():
        if module.part in ABOVE_ESTIMATORS:
            continue
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            untyped = set()
            for argument in arguments:
                annotation = "" if argument.annotation is None else ast.unparse(argument.annotation)
                if names.search(annotation):
                    result.append(f"{module.name}:{node.lineno}: {argument.arg}: {annotation}")
                if annotation == "Any":
                    untyped.add(argument.arg)
            for inner in ast.walk(node):
                if (
                    isinstance(inner, ast.Attribute)
                    and isinstance(inner.value, ast.Name)
                    and inner.value.id in untyped
                    and inner.attr.endswith("_")
                    and not inner.attr.endswith("__")
                ):
                    result.append(f"{module.name}:{inner.lineno}: {ast.unparse(inner)}")
    return result


# 5. Capabilities, not classes


def classes_in(source: Path, *parts: str) -> set[str]:
    return {
        node.name
        for module in modules_of(source).values()
        if module.part in parts
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }


def class_questions(source: Path) -> list[str]:
    """Return `isinstance` and `issubclass` on potentials, matrices and estimators elsewhere."""
    potentials = classes_in(source, "potentials")
    matrices = {name for name in classes_in(source, "features") if name.endswith("Matrix")}
    guarded = [
        (potentials, ("potentials",)),
        (matrices, ("features", "io", "batch")),
        ({*ESTIMATORS, *ESTIMATOR_BASES}, ("estimators", "cli", "scorers")),
    ]
    result = []
    for module in modules_of(source).values():
        for node in ast.walk(module.tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id not in ("isinstance", "issubclass") or len(node.args) != 2:
                continue
            asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            for classes, parts in guarded:
                if asked & classes and module.part not in parts:
                    result.append(f"{module.name}:{node.lineno}: {ast.unparse(node)}")
    return result


# 6. Few ancestors

MOST_ANCESTORS = MOST_OVERRIDES = 2


def heavy_inheritance(source: Path) -> list[str]:
    """Return estimators with too many ancestors of ours, or overrides of their private methods."""
    classes = {
        node.name: node
        for module in modules_of(source).values()
        if module.part == "estimators"
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }

    def ancestors(name: str) -> list[str]:
        bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
        ours = [base for base in bases if base in classes]
        return [*ours, *(older for base in ours for older in ancestors(base))]

    def methods(name: str) -> set[str]:
        return {
            node.name
            for node in classes[name].body
            if isinstance(node, ast.FunctionDef) and is_private(node.name)
        }

    result = []
    for name in classes:
        older = ancestors(name)
        if len(older) > MOST_ANCESTORS:
            result.append(f"{name} has {len(older)} ancestors: {', '.join(older)}")
        overridden = methods(name) & set().union(*(methods(each) for each in older))
        if len(overridden) > MOST_OVERRIDES:
            result.append(f"{name} overrides {', '.join(sorted(overridden))}")
    return result


# 7. and 8. Imports by name, and foreign libraries


def hidden_imports(source: Path) -> list[str]:
    """Return uses of `import_module` and `__import__` where names are not looked up lazily."""
    return [
        f"{module.name}:{node.lineno}: {node.id}"
        for module in modules_of(source).values()
        if module.name not in MAY_IMPORT_MODULE
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name) and node.id in ("import_module", "__import__")
    ]


def foreign_imports(source: Path) -> list[str]:
    """Return imports of foreign libraries outside of their door, or too early."""
    result = []
    for module in modules_of(source).values():
        early = {node.lineno for node in module.tree.body if hasattr(node, "lineno")}
        for line, dotted in imported_names(module):
            library = dotted.split(".")[0]
            parts = DOORS.get(library)
            if parts is not None and module.part not in parts:
                result.append(f"{module.name}:{line}: {library} is imported outside of its door")
            if library in LATE and line in early:
                result.append(f"{module.name}:{line}: {library} is imported when crfx is")
    return result


RULES = (
    cycles,
    private_uses,
    seen_estimators,
    class_questions,
    heavy_inheritance,
    hidden_imports,
    foreign_imports,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds(rule):
    assert rule(SOURCE) == []


PLANTED = [
    (cycles, {"a": "from crfx.b import x", "b": "def f():\n    from crfx import a"}, "a -> b -> a"),
    (
        cycles,
        {
            "a": "from crfx.b import x",
            "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from crfx.a import y",
        },
        "a -> b -> a",
    ),
    (private_uses, {"a": "def f(x):\n    return x._hidden"}, "a:2: x._hidden"),
    (private_uses, {"a": "from crfx.b import _hidden"}, "import of _hidden"),
    (seen_estimators, {"model/a": "def f(crf: GBCRF): ..."}, "crf: GBCRF"),
    (seen_estimators, {"model/a": "def f(crf: Any):\n    crf.classes_"}, "crf.classes_"),
    (
        class_questions,
        {"potentials/trees": "class Trees: ...", "model/a": "isinstance(x, Trees)"},
        "isinstance(x, Trees)",
    ),
    (class_questions, {"model/a": "isinstance(x, int | GBCRF)"}, "GBCRF"),
    (
        heavy_inheritance,
        {"estimators/a": "class A: ...\nclass B(A): ...\nclass C(B): ...\nclass D(C): ..."},
        "D has 3 ancestors",
    ),
    (
        heavy_inheritance,
        {
            "estimators/a": "class A:\n    def _a(self): ...\n    def _b(self): ...\n"
            "    def _c(self): ...\nclass B(A):\n    def _a(self): ...\n"
            "    def _b(self): ...\n    def _c(self): ..."
        },
        "B overrides _a, _b, _c",
    ),
    (hidden_imports, {"a": "from importlib import import_module\nimport_module('b')"}, "a:2"),
    (foreign_imports, {"model/a": "def f():\n    import xgboost"}, "outside of its door"),
    (foreign_imports, {"potentials/a": "import xgboost"}, "when crfx is"),
]


@pytest.mark.parametrize(("rule", "files", "message"), PLANTED)
def test_rule_finds_a_planted_violation(tmp_path, rule, files, message):
    for name, code in files.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    violations = rule(tmp_path)
    assert len(violations) == 1
    assert message in violations[0]
