"""The check of machine code (cpp/tests/isa_code.py) reports scalar code in vector kernels."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "cpp" / "tests" / "isa_code.py"


@pytest.fixture
def isa_code(monkeypatch):
    spec = importlib.util.spec_from_file_location("isa_code", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


NAMES = {
    "sums in bundles": "BundleSum<float>::step_ahead(long)",
    "sums over edges": "EdgeSum<float, crfx::avx2::EdgeMarginalTerm<float> >::add(long)",
    "best paths in bundles": "void crfx::avx2::bundle_best<float>(long)",
    "expectations in bundles": "void crfx::avx2::expectation<float>(long)",
    "messages": "ScaledSum<float>::least_down(float const*)",
    "hidden units": "void crfx::avx2::score_tile<crfx::avx2::Tanh<float>, float>(long)",
    "linear scores": "void crfx::avx2::scores_of_rows<float, 2>(long)",
    "linear scores by masks": "void crfx::avx2::scores_by_masks<2>(long)",
    "linear gradients": "void crfx::avx2::gradient_of_features<float, 2>(long)",
    "dense products": "void crfx::avx2::add_outer<float>(long)",
    "sums over permutations": "permutation_moments(crfx::QueryBundle const&)",
    "lists of permutations": "PermutationListing<true>::walk(int)",
}
ARM_NAMES = {task: name.replace("avx2", "baseline") for task, name in NAMES.items()}

VECTORS = """
   0:	vxorps %xmm0,%xmm0,%xmm0
   4:	vfmadd231ps (%rdi,%rax,4),%ymm1,%ymm0
   a:	vmaxps %ymm0,%ymm2,%ymm2
   e:	add    $0x20,%rax
  12:	jne    4 <kernel+0x4>
  14:	ret
"""
TAKEN_APART = """
   0:	vmovaps (%rdi),%ymm1
   4:	vmulps %ymm1,%ymm1,%ymm1
   8:	vcmpltss %xmm1,%xmm2,%xmm3
   c:	vblendvps %xmm3,%xmm1,%xmm2,%xmm3
  10:	vcmpltss %xmm4,%xmm2,%xmm3
  14:	vblendvps %xmm3,%xmm4,%xmm2,%xmm3
  18:	jne    0 <kernel>
  1a:	ret
"""
SCALAR = """
   0:	vaddps %ymm0,%ymm1,%ymm1
   4:	vmulss (%rdi,%rax,4),%xmm0,%xmm0
   8:	add    $0x4,%rax
   c:	jne    4 <kernel+0x4>
   e:	ret
"""
WITH_REMAINDER = """
   0:	vmulps (%rdi,%rax,4),%ymm0,%ymm0
   4:	add    $0x20,%rax
   8:	jne    0 <kernel>
   a:	vmulss (%rdi,%rax,4),%xmm0,%xmm0
   e:	add    $0x4,%rax
  12:	vucomiss %xmm1,%xmm0
  16:	jb     a <kernel+0xa>
  18:	vaddss %xmm0,%xmm0,%xmm0
  1c:	vaddss %xmm0,%xmm0,%xmm0
  20:	vaddss %xmm0,%xmm0,%xmm0
  24:	ret
"""
HALF_AS_WIDE = VECTORS.replace("ymm", "xmm")
# The last block jumps back to what also runs without it: compilers put rare cases there.
JUMP_BACK = """
   0:	test   %rax,%rax
   2:	je     10 <kernel+0x10>
   4:	vaddps %ymm0,%ymm1,%ymm1
   8:	vaddss %xmm0,%xmm1,%xmm1
   c:	vaddss %xmm0,%xmm1,%xmm1
   e:	ret
  10:	vxorps %xmm0,%xmm0,%xmm0
  14:	jmp    4 <kernel+0x4>
"""
ARM = """
   0:	fmla   v0.4s, v1.4s, v2.4s
   4:	fcmgt  v3.4s, v0.4s, v1.4s
   8:	subs   x0, x0, #0x1
   c:	b.ne   0 <kernel>
  10:	ret
"""
ARM_TAKEN_APART = """
   0:	fmul   v0.4s, v1.4s, v2.4s
   4:	fcmpe  s0, s1
   8:	fcsel  s2, s0, s1, mi
   c:	cbnz   x0, 0 <kernel>
  10:	ret
"""


def disassembly(kernels, isa="avx2", machine="elf64-x86-64"):
    """Return what objdump prints about functions in the namespace of an instruction set."""
    text = f"\nkernels.o:     file format {machine}\n\n\nDisassembly of section .text:\n"
    for name, code in kernels.items():
        is_full = "crfx::" in name.partition("(")[0].partition("<")[0]
        full = name if is_full else f"crfx::{isa}::{name}"
        text += f"\n0000000000000000 <{full}>:{code}"
    return text


def faults_of(isa_code, code, task="messages"):
    """The faults found if one kernel has this code and all others are vector code."""
    kernels = dict.fromkeys(NAMES.values(), VECTORS) | {NAMES[task]: code}
    return isa_code.check(disassembly(kernels), "avx2")[1]


def test_vector_code_passes(isa_code):
    for code in (VECTORS, WITH_REMAINDER):
        assert faults_of(isa_code, code) == []


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (TAKEN_APART, "67% of the arithmetic in its vector loops is scalar"),
        (SCALAR, "99% of its arithmetic is scalar"),
        (HALF_AS_WIDE, "no packed arithmetic in ymm registers"),
    ],
)
def test_scalar_code_is_reported(isa_code, code, fault):
    for task in NAMES:
        (message,) = faults_of(isa_code, code, task)
        assert message.startswith(f"{task}: ")
        assert fault in message


def test_missing_kernel_is_reported(isa_code):
    kernels = dict.fromkeys(list(NAMES.values())[1:], VECTORS)
    faults = isa_code.check(disassembly(kernels), "avx2")[1]
    assert faults == ["sums in bundles: no such function; name the new one in HOT_KERNELS"]
    of_another_set = disassembly(dict.fromkeys(NAMES.values(), VECTORS))
    assert len(isa_code.check(of_another_set, "avx512")[1]) == len(NAMES)


def test_instructions_count_by_the_loops_around_them(isa_code):
    ((_, code),) = isa_code.functions(disassembly({"f": WITH_REMAINDER}))
    loops = isa_code.Kernel.of("f", code).loops
    assert loops == [{"ymm": isa_code.LOOP}, {"scalar": isa_code.LOOP}, {"scalar": 3}]
    ((_, code),) = isa_code.functions(disassembly({"f": JUMP_BACK}))
    assert isa_code.Kernel.of("f", code).loops == [{"ymm": 1, "scalar": 2}]


def test_arm_code_is_read(isa_code):
    kernels = dict.fromkeys(ARM_NAMES.values(), ARM) | {ARM_NAMES["messages"]: ARM_TAKEN_APART}
    text = disassembly(kernels, "baseline", "elf64-littleaarch64")
    (fault,) = isa_code.check(text, "baseline")[1]
    assert fault.endswith("50% of the arithmetic in its vector loops is scalar")


def run(objdump):
    asked = [sys.executable, SCRIPT, objdump, "avx2", "kernels.o"]
    return subprocess.run(asked, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not shutil.which("sh"), reason="writes a shell script")
@pytest.mark.parametrize(
    ("code", "machine", "returned", "word"),
    [
        (VECTORS, "elf64-x86-64", 0, "messages: ScaledSum"),
        (SCALAR, "elf64-x86-64", 1, "messages: ScaledSum"),
        (VECTORS, "mach-o arm64", 77, "skipped: mach-o arm64"),
        (None, "", 77, "there is no objdump"),
    ],
)
def test_command_ends_as_ctest_expects(tmp_path, code, machine, returned, word):
    objdump = tmp_path / "objdump"
    if code is not None:
        kernels = dict.fromkeys(NAMES.values(), VECTORS) | {NAMES["messages"]: code}
        (tmp_path / "text").write_text(disassembly(kernels, machine=machine))
        objdump.write_text(f"#!/bin/sh\ncat '{tmp_path / 'text'}'\n")
        objdump.chmod(0o755)
    done = run(str(objdump))
    assert done.returncode == returned
    assert word in (done.stderr if returned == 1 else done.stdout)
