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
    "-O3",
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
    """Compile `name`.cpp for an instruction set, and return the program."""
    program = Path(folder) / f"{name}-{march}"
    sources = [HERE / f"{name}.cpp", *core_sources()]
    command = [compiler(), *FLAGS, f"-march={march}", f"-I{CORE}", "-pthread", *sources]
    subprocess.run([*command, "-o", program], check=True)
    return program


def core_sources():
    """Return the source files of the core, without those that bind it to Python."""
    lists = (CORE / "sources.cmake").read_text()
    found = re.findall(r"set\(MORFOREST_(KERNELS|SUPPORT)\s([^)]*)\)", lists)
    return [CORE / name for _, names in found for name in names.split()]


def first_line(program):
    """Return the first line that a program prints about its version."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return output.stdout.splitlines()[0]
