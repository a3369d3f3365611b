"""Instructions that the core executes on small, fixed works, counted by valgrind's callgrind.

Times vary with the load of the machine; a count is the same in every run. It says nothing about
memory, so it complements the timings and does not replace them.
"""

import re
import shutil
import subprocess
import tempfile

from benchmarks import native

WORKS = ("byte-patches", "float-sporf", "regression")
# As in CMakeLists.txt: one build for all processors, one for those with AVX2.
ARCHITECTURES = ("x86-64", "x86-64-v3")


def run(say, sheet, versions, architectures=ARCHITECTURES):
    """Add a row per work and instruction set; where that is impossible, say why."""
    missing = [*([] if shutil.which("valgrind") else ["valgrind"]), *native.missing()]
    if missing:
        say(f"instructions: skipped, because this needs {' and '.join(missing)}.")
        return
    tools = {
        "compiler": native.first_line(native.compiler()),
        "valgrind": native.first_line("valgrind"),
    }
    with tempfile.TemporaryDirectory() as folder:
        for march in architectures:
            say(f"instructions: compiling for {march}, about half a minute")
            program = native.build("instructions", march, folder)
            for work in WORKS:
                count = _count(program, work, folder)
                sheet.add(**versions, **tools, work=work, march=march, instructions=count)
                say(f"instructions {work} {march}: {count:,}")


def _count(program, work, folder):
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=measured"]
    command += [f"--callgrind-out-file={folder}/callgrind.out", str(program), work]
    output = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Collected\s*:\s*(\d+)", output.stderr)
    if output.returncode or not found:
        raise RuntimeError(f"{' '.join(command)} failed:\n{output.stderr}")
    return int(found[1])
