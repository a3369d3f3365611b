"""Compile programs of this folder against the core, as CMakeLists.txt compiles the core."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORE = HERE.parent / "core"
FLAGS = (
    "-std=c++20",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
)


def compiler():
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")


def missing():
    """Return what this machine lacks to build for x86-64, in words."""
    wants = [] if compiler() else ["a C++ compiler"]
    return wants if platform.machine() in ("x86_64", "AMD64") else [*wants, "an x86-64 processor"]


def build(name, march, folder):
    """Compile `name`.cpp and the core for an instruction set, and return the program."""
    folder = Path(folder)
    objects = [_compile(HERE / f"{name}.cpp", "-O3", march, folder / f"{name}.o")]
    for kind, group, sources in _groups():
        combined = folder / f"{group}.cpp"
        combined.write_text("".join(f'#include "{source}"\n' for source in sources))
        # What is no kernel is compiled once for all instruction sets.
        target = march if kind == "KERNELS" else "x86-64"
        objects.append(_compile(combined, "-O3", target, folder / f"{group}.o"))
    program = folder / f"{name}-{march}"
    subprocess.run([compiler(), *map(str, objects), "-pthread", "-o", str(program)], check=True)
    return program


def _groups():
    """Return kind, name and sources of what core/sources.cmake has compiled as one source."""
    text = (CORE / "sources.cmake").read_text()
    groups = re.findall(r"^morforest_group\(MORFOREST_(\w+) (\w+)\s([^)]*)\)", text, re.MULTILINE)
    return [(kind, name, files.split()) for kind, name, files in groups if kind != "BINDINGS"]


def _compile(source, options, march, result):
    command = [compiler(), *FLAGS, options, f"-march={march}", f"-I{CORE}", "-c", str(source)]
    subprocess.run([*command, "-o", str(result)], check=True)
    return result


def first_line(program):
    """Return the first line that a program prints about its version."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return output.stdout.splitlines()[0]
