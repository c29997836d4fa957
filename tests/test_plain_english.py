"""The source is in plain English: docstrings are sentences, names say what variables hold.

Every rule is a function from a source tree to a list of violations.  It must find none in the
project, and one in a small tree in which one has been planted.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "crfx"

NOT_A_VERB = re.compile(
    # prepositions and conjunctions
    r"(After|Among|As|At|Before|Beside|Between|By|During|For|From|If|In|Of|On|Over|Since|So|To|"
    r"Under|Until|Up|While|With|Within|Without|"
    # question words
    r"How|What|When|Where|Whether|Which|Who|Why|"
    # articles, pronouns, numbers and adverbs
    r"A|All|An|Another|Any|Both|Each|Every|It|Like|Nearly|Neither|No|None|Not|One|Only|Other|Same|"
    r"Some|Such|That|The|Their|Then|There|These|They|This|Those|Three|Two|"
    # nouns
    r"Array|Column|Edge|Mean|New|Number|Rate|Row|Shape|String|Type|Value|Zero|"
    # verbs in the third person, and plurals
    r"[A-Z][a-z]*[a-rt-z]s)\b"
)
"""First words that a docstring of a function must not have."""

NOT_A_NOUN = re.compile(
    r"(After|Among|As|At|Before|Between|By|During|For|From|How|If|In|Of|On|Since|To|Until|When|"
    r"Where|Whether|Which|While|Who|Why|With|Without)\b"
)
"""First words that a docstring of a class or a module must not have."""

PRIVATE_WORDS = {
    r"in vain": "failed",
    r"go(es|ing)? on\b": "continue, or resume from a checkpoint",
    r"(is|are|be|been) told\b(?! apart)": "is reported, or what raises it",
    r"hang together": "are connected",
    r"looks? on\b": "follows",
    r"at (its|their) word": "without a check",
    r"(is|are|be|been) refused": "raises, or is not supported",
    r"the dead\b": "processes that have ended",
    r"(stand|stands|standing) on\b": "has as its base model",
    r"in the dress": "exposed through",
    r"what it takes": "is incomplete",
    r"seen to\b": "is done, by what",
    r"sweepers?\b": "workers",
    r"peers?\b": "workers",
    r"pictures?\b": "plot",
    r"nobody\b": "no process",
}
"""Phrases that readers stumble over, as patterns, and what to say instead."""

MOST_PHRASES = {
    "docstring": {},
    "message": {
        r"go(es|ing)? on\b": 11,
        r"(is|are|be|been) told\b(?! apart)": 6,
        r"(stand|stands|standing) on\b": 3,
        r"pictures?\b": 3,
        r"what it takes": 1,
        r"nobody\b": 1,
    },
}
"""How often a phrase may occur in the package, 0 where it is not listed; lower these, never raise
them.
"""

VAGUE_NAMES = ("found", "own", "told", "given")
MOST_FUNCTIONS = {
    "src": {"found": 3},  # arguments of public functions
    "tests": {},
    "benchmarks": {},
    "reproduce": {},
    "examples": {},
}
"""How many functions of a folder may have a variable of this name, 0 where it is not listed; lower
these, never raise them.
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees(folder: Path) -> list[tuple[str, ast.Module]]:
    """Return path and syntax tree of every Python file of a folder."""
    return [
        (str(path.relative_to(folder)), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(folder.rglob("*.py"))
    ]


def functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def is_property(function: Function) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


# 1. Docstrings of functions begin with a verb in the imperative


def begins_with_verb(docstring: str) -> bool:
    """Return whether a docstring may begin with an imperative, as far as its first word shows."""
    first = re.match(r"[A-Z][a-z]+\b(?![(_])", docstring)
    return first is not None and NOT_A_VERB.match(docstring) is None


def fragments(folder: Path) -> list[str]:
    """Return the functions, properties aside, whose docstrings begin with no verb."""
    violations = []
    for name, tree in trees(folder):
        for function in functions(tree):
            docstring = ast.get_docstring(function)
            if docstring and not is_property(function) and not begins_with_verb(docstring):
                violations.append(f"{name}:{function.lineno}: {docstring.splitlines()[0]}")
    return violations


# 2. Docstrings of classes and modules are noun phrases


def noun_fragments(folder: Path) -> list[str]:
    """Return the classes and modules whose docstrings begin with no noun."""
    violations = []
    for name, tree in trees(folder):
        for node in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
            docstring = ast.get_docstring(node)
            if docstring and NOT_A_NOUN.match(docstring):
                line = getattr(node, "lineno", 1)
                violations.append(f"{name}:{line}: {docstring.splitlines()[0]}")
    return violations


# 3. Docstrings and messages have no private vocabulary


def strings(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """Yield what each string is, "docstring" or "message", and its node."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "docstring" if id(node) in alone else "message", node


def private_phrases(folder: Path) -> list[str]:
    """Return phrases that occur more often than they may."""
    places: dict[tuple[str, str], list[str]] = {}
    for name, tree in trees(folder):
        for kind, node in strings(tree):
            text = " ".join(node.value.split())
            for pattern in PRIVATE_WORDS:
                count = len(re.findall(rf"\b{pattern}", text, re.IGNORECASE))
                places.setdefault((kind, pattern), []).extend([f"{name}:{node.lineno}"] * count)
    return [
        f"{kind}: {pattern!r} ({', '.join(where)}): say {PRIVATE_WORDS[pattern]!r}"
        for (kind, pattern), where in places.items()
        if len(where) > MOST_PHRASES[kind].get(pattern, 0)
    ]


# 4. Variables say what they hold


def names_in(function: Function) -> set[str]:
    """Return the names of a function's arguments and variables, those of inner functions too."""
    arguments = function.args
    names = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def vague_names(folder: Path, most: dict[str, int] | None = None) -> list[str]:
    """Return vague names that more functions of a folder have than may."""
    most = {} if most is None else most
    counts: Counter[str] = Counter()
    for _, tree in trees(folder):
        for function in functions(tree):
            counts.update(names_in(function).intersection(VAGUE_NAMES))
    return [
        f"{folder.name}: {count} functions have a variable {name!r}, more than {most.get(name, 0)}"
        for name, count in counts.items()
        if count > most.get(name, 0)
    ]


RULES = (fragments, noun_fragments, private_phrases)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_is_plain(rule):
    assert rule(SOURCE) == []


@pytest.mark.parametrize("folder", MOST_FUNCTIONS)
def test_names_say_what_variables_hold(folder):
    assert vague_names(ROOT / folder, MOST_FUNCTIONS[folder]) == []


PLANTED = [
    (fragments, 'def f():\n    """Of every instance."""', "a.py:1: Of every instance."),
    (fragments, 'def f():\n    """Whether it is empty."""', "Whether"),
    (fragments, 'class A:\n    def f(self):\n        """The labels."""', "a.py:2: The labels."),
    (fragments, 'def f():\n    """Returns the labels."""', "Returns"),
    (fragments, 'def f():\n    """(rows,) the labels."""', "(rows,)"),
    (fragments, 'def f():\n    """String of digits."""', "String"),
    (noun_fragments, 'class A:\n    """Where instances start."""', "a.py:1: Where"),
    (noun_fragments, '"""How good a labelling is."""', "a.py:1: How"),
    (private_phrases, '"""Lines are searched in\nvain."""', "docstring: 'in vain' (a.py:1)"),
    (private_phrases, 'x = f"{1} is seen to"', "message: 'seen to"),
    (private_phrases, 'X = 1\n"""The dead."""', "docstring: 'the dead"),
    (vague_names, "def f():\n    found = 1", "1 functions have a variable 'found', more than 0"),
    (vague_names, "def f(*, own): ...", "'own'"),
    (vague_names, "def f():\n    return [told for told in ()]", "'told'"),
    (vague_names, "def f(given): ...", "'given'"),
]


@pytest.mark.parametrize(("rule", "code", "message"), PLANTED)
def test_rule_finds_a_planted_violation(tmp_path, rule, code, message):
    (tmp_path / "a.py").write_text(code)
    violations = rule(tmp_path)
    assert len(violations) == 1
    assert message in violations[0]


PLAIN = [
    (fragments, 'def f():\n    """Return the labels."""'),
    (fragments, 'def f():\n    """Pass over the data."""'),
    (fragments, 'class A:\n    @property\n    def f(self):\n        """Whether it is empty."""'),
    (fragments, "def f(): ..."),
    (private_phrases, '"""Return what can be told apart."""'),
    (vague_names, "def f():\n    return x.found, g(own=1)"),
]


@pytest.mark.parametrize(("rule", "code"), PLAIN)
def test_rule_accepts_plain_code(tmp_path, rule, code):
    (tmp_path / "a.py").write_text(code)
    assert rule(tmp_path) == []
