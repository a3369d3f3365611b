"""Compile programs of this folder against the core, as CMakeLists.txt compiles the core."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
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
    source, include = str(HERE / f"{name}.cpp"), f"-I{HERE.parent / 'core'}"
    command = [compiler(), *FLAGS, f"-march={march}", include, source, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def first_line(program):
    """Return the first line that a program prints about its version."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return output.stdout.splitlines()[0]
