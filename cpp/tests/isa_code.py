"""Fail if kernels of an instruction set do their arithmetic one number at a time.

The kernels are written over vectors, and the compiler may take vectors apart: GCC turns
comparisons and selections of vectors that are wider than the registers into scalar code. The
results stay the same, so that no other test fails, but the kernels run ten times slower. This test
needs no clock: it disassembles the objects of one instruction set and compares, in every hot
kernel, packed with scalar floating-point arithmetic. Moves, broadcasts, conversions and comparisons
of control flow do not count. An instruction counts LOOP times as much for every loop around it, so
that sums over the lanes of a vector, or the rest of a row after its last full vector, hardly
matter.

Scalar instructions in a loop that also has packed ones are vectors taken apart: MOST_MIXED is the
largest share there. Loops with scalar instructions alone are mostly remainders of vector loops:
MOST_SCALAR is the largest share in all of a kernel. GCC 12 and Clang 14 to 19 stay below 0.32 and
0.70 where vectors are as wide as the registers, and reach 0.94 where they are wider.

Usage: isa_code.py OBJDUMP SET OBJECT...
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

LOOP = 100
MOST_MIXED, MOST_SCALAR = 0.4, 0.8
SKIPPED = 77

# Functions that must be vector code: what they compute, and their names without namespaces. Of
# several patterns the first that matches any function counts; later ones name the caller into which
# a compiler may have inlined the kernel.
HOT_KERNELS = {
    "sums in bundles": [r"BundleSum<float>::step_(ahead|back|rates)\("],
    "sums over edges": [r"EdgeSum<float, \w+<float> ?>::add\("],
    "best paths in bundles": [r"bundle_best<float>\("],
    "expectations in bundles": [r"BundleExpectation<float>::step_ahead\(", r"expectation<float>\("],
    "messages": [r"ScaledSum<float>::(up|down|least_down)\("],
    "hidden units": [r"(score|gradient)_tile<\w+<float>, float>\("],
    "linear scores": [r"scores_of_rows<float, \d>\("],
    "linear scores by masks": [r"scores_by_masks<\d>\(", r"scores_of_rows<float, \d>\("],
    "linear gradients": [r"gradient_of_features<float, \d>\("],
    "dense products": [r"(multiply_columns<float, \d>|add_outer<float>)\("],
    "sums over permutations": [
        r"(permutation_moments|SubsetSums::(cross_moments|run|pass_backward))\("
    ],
    "lists of permutations": [r"PermutationListing<\w+>::walk\("],
}
# The registers that a set brings; a kernel that leaves them idle was compiled for another.
REGISTERS = {"baseline": "xmm", "avx2": "ymm", "avx512": "zmm"}
ARM_REGISTERS = "v"

# x86-64 in AT&T's words, as objdump prints them, and AArch64.
X86 = r"v?(add|sub|mul|div|max|min|sqrt|r(cp|sqrt)(14)?|fn?m(add|sub)(132|213|231)|cmp\w*)"
ARM = r"f(add|sub|mul|ml[as]|div|(max|min)(nm)?|sqrt|abd|cm(eq|[gl][et])|r(ecp|sqrt)[es])"
ARM_SCALAR = r"f(n?m(add|sub)|nmul|csel)"
PACKED = re.compile(rf"{X86}p[sd] .*?(?P<x86>[xyz]mm).*|{ARM} (?P<arm>v)\d+\.[24][sd].*")
SCALAR = re.compile(rf"{X86}s[sd] .*|({ARM}|{ARM_SCALAR}) [sd]\d.*")
JUMP = re.compile(r"j\w+|b(\.\w+)?|br|[ct]bn?z")
NO_WAY_ON = re.compile(r"jmpq?|retq?|ud2|b|br|brk")


@dataclass(frozen=True)
class Instruction:
    """A line of a disassembly."""

    address: int
    name: str
    operands: str

    @property
    def ends_block(self) -> bool:
        """Whether the next instruction may not follow."""
        return bool(JUMP.fullmatch(self.name) or NO_WAY_ON.fullmatch(self.name))

    @property
    def target(self) -> int | None:
        """The address that a jump leads to; None for computed ones and for tail calls."""
        label = re.search(r"\b(?:0x)?([0-9a-f]+) <", self.operands)
        if not JUMP.fullmatch(self.name) or not label or int(label[1], 16) == self.address:
            return None
        return int(label[1], 16)

    @property
    def arithmetic(self) -> str | None:
        """The register of packed arithmetic, or "scalar", or None if it is neither."""
        text = f"{self.name} {self.operands}"
        if SCALAR.fullmatch(text):
            return "scalar"
        packed = PACKED.fullmatch(text)
        return packed and (packed["x86"] or packed["arm"])


def functions(text: str) -> Iterator[tuple[str, list[Instruction]]]:
    """Yield the name and the instructions of every function in a disassembly."""
    parts = re.split(r"^[0-9a-f]+ <(.*)>:$", text, flags=re.MULTILINE)
    line = re.compile(r"^ *([0-9a-f]+):\s+(?:notrack |bnd )?(\S+)[ \t]*(.*)$", re.MULTILINE)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        yield name, [Instruction(int(at, 16), word, rest) for at, word, rest in line.findall(body)]


class Blocks:
    """The basic blocks of a function, and the loops that the jumps between them make."""

    def __init__(self, code: list[Instruction]) -> None:
        place = {one.address: k for k, one in enumerate(code)}
        targets = {k: place[one.target] for k, one in enumerate(code) if one.target in place}
        after = {k + 1 for k, one in enumerate(code[:-1]) if one.ends_block}
        starts = sorted({0, *after, *targets.values()})
        number = {start: block for block, start in enumerate(starts)}
        self.code = [code[a:b] for a, b in zip(starts, [*starts[1:], len(code)], strict=True)]
        self.next: list[set[int]] = [set() for _ in self.code]
        for block, own in enumerate(self.code):
            end = starts[block] + len(own) - 1
            if end in targets:
                self.next[block].add(number[targets[end]])
            if block + 1 < len(self.code) and not NO_WAY_ON.fullmatch(own[-1].name):
                self.next[block].add(block + 1)
        # A computed jump may lead to every block that nothing else leads to.
        others = set(range(1, len(self.code))).difference(*self.next)
        for block, own in enumerate(self.code):
            if own[-1].ends_block and re.match(r"\*|x\d", own[-1].operands):
                self.next[block] |= others
        self.before: list[set[int]] = [set() for _ in self.code]
        for block, following in enumerate(self.next):
            for other in following:
                self.before[other].add(block)

    def reached(self, begin: int, edges: list[set[int]], without: int) -> set[int]:
        """Return the blocks on the ways from one, itself included, that avoid another."""
        seen = {begin} - {without}
        waiting = list(seen)
        while waiting:
            new = edges[waiting.pop()] - seen - {without}
            seen |= new
            waiting += new
        return seen

    def loops(self) -> list[set[int]]:
        """Return the blocks of every loop.

        A jump back closes a loop if all ways to it pass the block that it leads to.
        """
        found = []
        for head, before in enumerate(self.before):
            ends = {block for block in before if block >= head}
            if ends:
                ends -= self.reached(0, self.next, without=head)
            if ends:
                bodies = [self.reached(end, self.before, without=head) for end in ends]
                found.append(set.union({head}, *bodies))
        return found


@dataclass(frozen=True)
class Kernel:
    """The weighted arithmetic of a function, by innermost loop and register."""

    name: str
    loops: list[Counter[str]]

    @classmethod
    def of(cls, name: str, code: list[Instruction]) -> Kernel:
        """Count the arithmetic of a function."""
        blocks = Blocks(code)
        loops = blocks.loops()
        found: dict[int | None, Counter[str]] = defaultdict(Counter)
        for number, block in enumerate(blocks.code):
            around = [k for k, body in enumerate(loops) if number in body]
            innermost = min(around, key=lambda k: len(loops[k]), default=None)
            for one in block:
                if one.arithmetic:
                    found[innermost][one.arithmetic] += LOOP ** len(around)
        return cls(name, list(found.values()))

    @property
    def mixed(self) -> float:
        """The scalar share in loops that have packed arithmetic."""
        return scalar_share([loop for loop in self.loops if loop.keys() - {"scalar"}])

    @property
    def scalar(self) -> float:
        """The scalar share in all of the function."""
        return scalar_share(self.loops)

    def faults(self, register: str) -> Iterator[str]:
        """Yield what is wrong with a function that should compute in these registers."""
        if self.mixed > MOST_MIXED:
            yield f"{self.mixed:.0%} of the arithmetic in its vector loops is scalar"
        elif self.scalar > MOST_SCALAR:
            yield f"{self.scalar:.0%} of its arithmetic is scalar"
        if not any(loop[register] for loop in self.loops):
            yield f"it has no packed arithmetic in {register} registers"


def scalar_share(loops: list[Counter[str]]) -> float:
    """Return the share of scalar instructions."""
    total = sum(loops, Counter[str]())
    return total["scalar"] / max(1, total.total())


def hot_kernels(text: str, isa: str) -> dict[str, list[Kernel]]:
    """Return the functions that compute each of HOT_KERNELS, from a disassembly."""
    space = f"crfx::{isa}::"
    named = [
        (name.replace(space, "").replace("crfx::", ""), code)
        for name, code in functions(text)
        if space in name
    ]
    found: dict[str, list[Kernel]] = {}
    for task, patterns in HOT_KERNELS.items():
        found[task] = []
        for pattern in patterns:
            sought = re.compile(rf"(^| ){pattern}")
            kernels = [Kernel.of(name, code) for name, code in named if sought.search(name)]
            found[task] = found[task] or [one for one in kernels if one.loops]
    return found


def check(text: str, isa: str) -> tuple[list[str], list[str]]:
    """Return a line about every hot kernel of a disassembly, and the faults."""
    register = ARM_REGISTERS if "aarch64" in text[:1000] else REGISTERS[isa]
    lines, faults = ["scalar share in vector loops, and in all of the function"], []
    for task, kernels in hot_kernels(text, isa).items():
        if not kernels:
            faults.append(f"{task}: no such function; name the new one in HOT_KERNELS")
        for kernel in kernels:
            lines.append(f"{kernel.mixed:4.0%} {kernel.scalar:4.0%}  {task}: {kernel.name}")
            faults += [f"{task}: {kernel.name}: {each}" for each in kernel.faults(register)]
    return lines, faults


def main(objdump: str, isa: str, *objects: str) -> None:
    """Check objects."""
    if not shutil.which(objdump):
        print(f"skipped: there is no objdump ({objdump})")
        sys.exit(SKIPPED)
    asked = [objdump, "-d", "-C", "--no-show-raw-insn", *objects]
    text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    machine = re.search(r"file format (.*)", text)
    if not machine or not re.fullmatch(r"elf64-(x86-64|littleaarch64)", machine[1]):
        print(f"skipped: {machine and machine[1]} is not code for x86-64 or AArch64 in ELF files")
        sys.exit(SKIPPED)
    lines, faults = check(text, isa)
    print("\n".join(lines))
    if faults:
        sys.exit(
            f"\nthe compiler took vectors of {isa} apart, or never made any (at most "
            f"{MOST_MIXED:.0%} mixed, {MOST_SCALAR:.0%} scalar):\n  " + "\n  ".join(faults)
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
