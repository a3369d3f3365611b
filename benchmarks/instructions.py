"""Instructions that the core executes on small, fixed works, counted by valgrind's callgrind.

Clocks swing with the machine's load; a count is the same in every run. It says nothing of memory,
so it stands beside the timings and not in their place.
"""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKS = ("byte-patches", "float-sporf", "regression")
# As in CMakeLists.txt: one build for all processors, one for those with AVX2.
ARCHITECTURES = ("x86-64", "x86-64-v3")
FLAGS = (
    "-std=c++20",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)


def run(say, sheet, versions, architectures=ARCHITECTURES):
    """Add a row for each work and instruction set; say why not, where that is impossible."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    missing = [name for name in ("valgrind",) if not shutil.which(name)]
    if not compiler:
        missing.append("a C++ compiler")
    if platform.machine() not in ("x86_64", "AMD64"):
        missing.append("an x86-64 processor")
    if missing:
        say(f"instructions: skipped, because this needs {' and '.join(missing)}.")
        return
    tools = {"compiler": _first_line(compiler), "valgrind": _first_line("valgrind")}
    with tempfile.TemporaryDirectory() as folder:
        for march in architectures:
            say(f"instructions: compiling for {march}, about half a minute")
            program = Path(folder) / march
            source = str(HERE / "instructions.cpp")
            include = f"-I{HERE.parent / 'core'}"
            command = [compiler, *FLAGS, f"-march={march}", include, source, "-o", str(program)]
            subprocess.run(command, check=True)
            for work in WORKS:
                count = _count(program, work, folder)
                sheet.add(**versions, **tools, work=work, march=march, instructions=count)
                say(f"instructions {work} {march}: {count:,}")


def _first_line(program):
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return output.stdout.splitlines()[0]


def _count(program, work, folder):
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=measured"]
    command += [f"--callgrind-out-file={folder}/callgrind.out", str(program), work]
    output = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Collected\s*:\s*(\d+)", output.stderr)
    if output.returncode or not found:
        raise RuntimeError(f"{' '.join(command)} failed:\n{output.stderr}")
    return int(found[1])
