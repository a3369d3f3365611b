"""The command ``morforest``: its arguments, and what becomes of errors."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

from morforest import _commands as commands
from morforest._completion import SHELLS, completion
from morforest._version import __version__

EPILOG = """\
examples:
  morforest fit train.npz --target y --dictionary series -o model.safetensors
  morforest predict model.safetensors test.npz --proba -o predictions.csv
  morforest evaluate table.csv --target price --task regression --report report.md
  morforest inspect model.safetensors

exit codes: 0, all went well; 1, the data, the model or a file is not as it should be; 2, the
command line is not; 130, it was interrupted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("morforest: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except commands.UsageError as error:
        print(f"morforest {options.command}: error: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        if getattr(options, "traceback", False):
            raise
        return _fail(error)
    return 0


def _fail(error: Exception) -> int:
    """Say what is wrong, in one line and without a traceback."""
    words = " ".join(str(error).split()) or type(error).__name__
    known = isinstance(error, (ValueError, TypeError, OSError, ImportError, MemoryError))
    if isinstance(error, OSError) and error.strerror:
        words = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if not known:
        words = f"{type(error).__name__}: {words} (--traceback shows where)"
    print(f"morforest: error: {words}", file=sys.stderr)
    return 1


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"morforest: warning: {' '.join(str(message).split())}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors point to the help."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="morforest",
        description="Random forests for data with shape: images, time series, volumes, tables.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"morforest {__version__}")
    some = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    fit = _command(some, "fit", "fit a model and save it", commands.fit)
    _add_data(fit)
    _add_model(fit)
    fit.add_argument("-o", "--output", required=True, metavar="FILE", help="model file to write")
    predict = _command(some, "predict", "predict samples with a model", commands.predict)
    predict.add_argument("model", help="model file")
    _add_data(predict)
    predict.add_argument("--proba", action="store_true", help="probabilities of the classes")
    predict.add_argument(
        "-o", "--output", metavar="FILE", help="a .csv or .npy file; otherwise standard output"
    )
    evaluate = _command(
        some, "evaluate", "judge a model by cross-validation, or on test data", commands.evaluate
    )
    _add_data(evaluate)
    _add_model(evaluate)
    evaluate.add_argument("--using", metavar="FILE", help="judge this model file on the data")
    evaluate.add_argument("--folds", type=int, default=5, help="folds (default: 5)")
    evaluate.add_argument("--groups", metavar="NAME", help="array or column of groups to hold out")
    evaluate.add_argument("--report", metavar="FILE", help="Markdown file to write")
    inspect = _command(some, "inspect", "say what a model file holds", commands.inspect)
    inspect.add_argument("model", help="model file")
    convert = _command(some, "convert", "write a model for other languages", commands.convert)
    convert.add_argument("model", help="model file")
    convert.add_argument("output", help="a .onnx, .h, .js or .mjs file")
    _command(some, "demo", "compare three dictionaries on images of digits", commands.demo)
    shell = some.add_parser("completion", help="print completion for a shell")
    shell.add_argument("shell", choices=SHELLS)
    shell.set_defaults(run=lambda options: print(completion(parser, options.shell)))
    return parser


def _command(some: Any, name: str, words: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = some.add_parser(
        name, help=words, description=f"{words[0].upper()}{words[1:]}."
    )
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--traceback", action="store_true", help="show where an error arises")
    return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("data")
    group.add_argument(
        "data", help="a .npz, .npy, .csv, .tsv, .parquet, .ts or .arff file, or a folder of images"
    )
    group.add_argument(
        "--target", metavar="NAME", help="column or array of the targets, or a .npy file of them"
    )
    group.add_argument(
        "--samples", metavar="NAME", help="array of an .npz file that holds the samples"
    )
    group.add_argument(
        "--size", type=_pair, metavar="H,W", help="height and width to bring images to"
    )
    group.add_argument("--grey", action="store_true", help="read images without colours")


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        dest="kind",
        choices=commands.KINDS,
        default="forest",
        help="kind of model (default: forest)",
    )
    group.add_argument(
        "--task",
        choices=("classification", "regression"),
        help="what the targets are; otherwise fractions are numbers to predict, and others classes",
    )
    group.add_argument("--dictionary", metavar="NAME", help=f"one of {', '.join(commands.NAMES)}")
    group.add_argument(
        "--shape", type=_numbers, metavar="N,N", help="shape of a sample, where rows are flat"
    )
    group.add_argument("--channel-axis", type=int, metavar="N", help="axis of channels, such as 1")
    group.add_argument("--trees", type=int, metavar="N", help="number of trees, or of rounds")
    group.add_argument("--seed", type=int, default=0, help="seed of all draws (default: 0)")
    group.add_argument("--jobs", type=int, default=-1, help="threads (default: all processors)")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of the estimator, as Python writes it; may be repeated",
    )


def _numbers(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isdecimal() and int(word) for word in words):
        raise argparse.ArgumentTypeError(f"write whole numbers such as 28,28, not {text}")
    return tuple(map(int, words))


def _pair(text: str) -> tuple[int, int]:
    found = _numbers(text)
    if len(found) != 2:
        raise argparse.ArgumentTypeError(f"write height and width such as 28,28, not {text}")
    return found[0], found[1]
