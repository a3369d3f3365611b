"""The command line, through a shell and in this process; the files that it reads."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score

import morforest
from morforest import MorfBoostingRegressor, MorfClassifier, Patch, SharedAtoms
from morforest._command_line import main
from morforest._commands import UsageError, read_dictionary
from morforest._data_files import DataOptions, read_data

SCRIPT = Path(sys.executable).with_name("morforest")
IMAGES, DIGITS = load_digits().images[:120].astype(np.uint8), load_digits().target[:120]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("digits.npz", X=IMAGES, y=DIGITS)
    np.save("images.npy", IMAGES[:10])
    table = load_diabetes(as_frame=True).frame.iloc[:80].round(4)
    table.to_csv("table.csv", index=False)
    table.to_parquet("table.parquet")
    table.drop(columns="bmi").to_csv("without.csv", index=False)
    return tmp_path


def shell(words, program=(SCRIPT,)):
    run = [*program, *shlex.split(words)]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def said(capsys, words):
    """Run a command in this process, and return its exit code and what it printed."""
    capsys.readouterr()
    try:
        code = main(shlex.split(words))
    except SystemExit as exit:
        code = exit.code
    found = capsys.readouterr()
    return code, found.out, found.err


# --- through a shell -----------------------------------------------------------------------------


def test_a_model_is_fitted_and_used_in_a_shell(here):
    fitted = shell("fit digits.npz --target y --dictionary patch --trees 5 --set max_depth=6 -o m")
    assert fitted.returncode == 0, fitted.stderr
    assert "MorfClassifier of 120 samples of shape (8, 8), 10 classes" in fitted.stdout
    assert "trees 5/5" in fitted.stderr  # progress
    model = MorfClassifier("patch", n_estimators=5, max_depth=6, random_state=0)
    expected = model.fit(IMAGES, DIGITS).predict(IMAGES[:10])
    done = shell("predict m images.npy", program=(sys.executable, "-m", "morforest"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "prediction\n" + "".join(f"{label}\n" for label in expected)
    assert done.stderr == ""


def test_errors_have_no_traceback_and_a_code(here):
    wrong = shell("fit digits.npz --target labels -o m")
    assert wrong.returncode == 1
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("morforest: error: --target labels: the data have no such")
    assert len(wrong.stderr.splitlines()) == 1
    usage = shell("fit digits.npz")
    assert usage.returncode == 2
    assert "the following arguments are required: -o" in usage.stderr


def test_a_reader_that_has_enough_ends_it_quietly(here):
    run = f'"{SCRIPT}" completion bash | head -1; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["_morforest() {", "0"]
    assert done.stderr == ""


def test_bash_completes_commands_and_options(tmp_path, capsys):
    (tmp_path / "script").write_text(said(capsys, "completion bash")[1])
    ask = (
        f"source {tmp_path}/script; "
        "COMP_WORDS=(morforest {0}); COMP_CWORD={1}; _morforest; echo ${{COMPREPLY[@]}}"
    )
    for words, number, expected in (("ev", 1, "evaluate"), ("fit --dic", 2, "--dictionary")):
        run = ask.format(words, number)
        done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [expected], done.stderr


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_other_shells_read_their_completion(name, tmp_path, capsys):
    _, script, _ = said(capsys, f"completion {name}")
    assert "evaluate" in script
    assert "dictionary" in script
    if shutil.which(name):
        path = tmp_path / "script"
        path.write_text(script)
        subprocess.run([name, "-n", path], check=True)


# --- what the commands do ------------------------------------------------------------------------


def test_tables_are_fitted_by_the_names_of_their_columns(here, capsys):
    fit = "fit table.csv --target target --task regression --model boosting --trees 5 -o m --json"
    code, out, err = said(capsys, fit)
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert (facts["estimator"], facts["shape"]) == ("MorfBoostingRegressor", [10])
    table = pd.read_csv("table.csv")
    X, y = table.drop(columns="target"), table["target"]
    expected = MorfBoostingRegressor(max_iter=5, random_state=0).fit(X, y).predict(X)
    code, out, _ = said(capsys, "predict m table.parquet -o p.npy")
    assert (code, out) == (0, "80 predictions in p.npy\n")
    np.testing.assert_array_equal(np.load("p.npy"), expected)
    code, out, err = said(capsys, "predict m without.csv")
    assert (code, out) == (1, "")
    assert "the data lack 1 of the 10 columns that the model was fitted to (bmi)" in err
    assert morforest.load("m").get_params()["verbose"] == 0


def test_probabilities_are_written(here, capsys):
    assert said(capsys, "fit digits.npz --target y --trees 3 -o m --quiet")[0] == 0
    code, _, _ = said(capsys, "predict m digits.npz --target y --proba -o p.csv")
    assert code == 0
    found = pd.read_csv("p.csv")
    assert list(found.columns) == [f"probability {k}" for k in range(10)]
    expected = morforest.load("m").predict_proba(IMAGES)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-12)
    code, out, _ = said(capsys, "predict m images.npy --json")
    assert json.loads(out)["columns"] == ["prediction"]
    assert len(json.loads(out)["predictions"]) == 10


def test_evaluation_is_that_of_scikit_learn(here, capsys):
    words = "evaluate digits.npz --target y --trees 5 --folds 3 --dictionary axis --report r.md"
    code, out, err = said(capsys, f"{words} --json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    model = MorfClassifier("axis", n_estimators=5, random_state=0)
    expected = cross_val_score(model, IMAGES, DIGITS, cv=folds)
    assert [fold["accuracy"] for fold in facts["folds"]] == expected.tolist()
    assert facts["mean"]["accuracy"] == expected.mean()
    report = Path("r.md").read_text()
    assert "| true \\ predicted | 0 |" in report
    assert f"{expected.mean():.4f}" in report
    code, out, err = said(capsys, words)
    assert "fold 3/3: accuracy" in err
    assert f"{expected.mean():.4f}" in out


def test_regression_and_groups_are_evaluated(here, capsys):
    table = pd.read_csv("table.csv").assign(patient=np.arange(80) // 8)
    table.to_csv("grouped.csv", index=False)
    words = "evaluate grouped.csv --target target --groups patient --folds 4 --trees 3"
    code, out, _ = said(capsys, f"{words} --task regression --json")
    facts = json.loads(out)
    assert code == 0
    assert "groups stay together" in facts["how"]
    assert {"r2", "rmse", "mae", "baseline"} <= facts["mean"].keys()
    code, _, err = said(capsys, words)
    assert code == 2
    assert "say with --task" in err


def test_a_fitted_model_is_judged_on_test_data(here, capsys):
    assert said(capsys, "fit digits.npz --target y --trees 5 -o m --quiet")[0] == 0
    _, out, _ = said(capsys, "evaluate digits.npz --target y --using m --json")
    expected = morforest.load("m").score(IMAGES, DIGITS)
    assert json.loads(out)["mean"]["accuracy"] == expected


def test_a_file_is_inspected(here, capsys):
    MorfClassifier("axis", n_estimators=2, random_state=0).fit(IMAGES, DIGITS).save("m")
    code, out, _ = said(capsys, "inspect m")
    assert code == 0
    assert out.startswith("MorfClassifier in m\n")
    code, out, _ = said(capsys, "inspect m --json")
    assert json.loads(out)["fitted"]["trees"] == 2
    Path("m").write_bytes(Path("m").read_bytes()[:-1])
    code, out, err = said(capsys, "inspect m")
    assert (code, out) == (1, "")
    assert "m is damaged: its arrays take" in err


def test_models_are_converted(here, capsys):
    MorfClassifier("axis", n_estimators=2, random_state=0).fit(IMAGES, DIGITS).save("m")
    for name in ("model.h", "model.mjs"):
        code, out, err = said(capsys, f"convert m {name}")
        assert code == 0, err
        assert f"written to {name}" in out
        assert Path(name).stat().st_size > 1000
    code, _, err = said(capsys, "convert m model.pmml")
    assert code == 2
    assert "the suffix must be one of .onnx, .h, .js, .mjs" in err


def test_the_demo_runs(capsys):
    code, out, _ = said(capsys, "demo --json")
    assert code == 0
    assert all(0.8 < found["accuracy"] < 1 for found in json.loads(out).values())


USAGE = {
    "a parameter": ("--set max_dept=3", "do you mean max_depth?"),
    "no value": ("--set max_depth", "write NAME=VALUE"),
    "a dictionary": ("--dictionary nothing", "give one of axis, sporf"),
    "a call": ("--dictionary open('x')", "or a dictionary such as"),
    "a wrong call": ("--dictionary Patch(largest=3)", "unexpected keyword"),
    "trees of a tree": ("--model tree --trees 5", "has no number of trees"),
    "a shape": ("--shape 8,x", "write whole numbers such as 28,28, not 8,x"),
    "a size": ("--size 8", "write height and width"),
    "a model": ("--model svm", "invalid choice"),
    "a number": ("--trees many", "invalid int value"),
}
DATA = {
    "a suffix": ("fit data.xyz --target y -o m", "has the suffix '.xyz'"),
    "an array": (
        "fit digits.npz --samples Z --target y -o m",
        "no such array. Its arrays are X, y",
    ),
    "no file": ("fit none.csv --target y -o m", "there is no file 'none.csv'"),
    "no model": ("predict none images.npy", "No such file or directory: none"),
    "a folder for output": ("fit digits.npz --target y -o no/m", "there is no folder 'no'"),
    "a wrong shape": ("fit digits.npz --target y -o m --shape 7,7", "data_shape"),
    "a broken archive": ("fit broken.npz --target y -o m", "cannot be read"),
    "a pickled array": ("fit objects.npy --target y.npy -o m", "allow_pickle"),
    "words": ("fit words.csv --target y -o m", "name"),
    "a parameter": ("fit digits.npz --target y -o m --set max_depth=0", "max_depth must be"),
    "too many folds": ("evaluate digits.npz --target y --folds 50", "the rarest class has"),
    "one fold": ("evaluate digits.npz --target y --folds 1", "--folds must be from 2"),
    "other targets": ("fit digits.npz --target short.npy --samples X -o m", "and 3 targets"),
    "missing targets": ("fit holes.csv --target y -o m", "1 values are missing"),
    "no groups": ("evaluate digits.npz --target y --groups g", "--groups g: the data have no"),
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_command_lines_are_named(case, here, capsys):
    words, message = USAGE[case]
    code, out, err = said(capsys, f"fit digits.npz --target y -o m {words}")
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("m").exists()


@pytest.mark.parametrize("case", DATA)
def test_wrong_data_are_named(case, here, capsys):
    words, message = DATA[case]
    Path("data.xyz").touch()
    Path("broken.npz").write_bytes(Path("digits.npz").read_bytes()[:500])
    np.save("objects.npy", np.array([{}, 1], dtype=object))
    np.save("short.npy", np.arange(3))
    pd.DataFrame({"name": ["a", "b"], "y": [0, 1]}).to_csv("words.csv", index=False)
    pd.DataFrame({"x": [1.0, 2, 3], "y": [0, None, 1]}).to_csv("holes.csv", index=False)
    code, out, err = said(capsys, words)
    assert (code, out) == (1, "")
    assert err.startswith("morforest: error: ")
    assert message in err
    assert "Traceback" not in err
    assert not Path("m").exists()


def test_unknown_errors_say_where_if_asked(here, capsys, monkeypatch):
    monkeypatch.setattr("morforest._commands.inspect_file", lambda path: {}[path])
    code, _, err = said(capsys, "inspect m")
    assert (code, err) == (1, "morforest: error: KeyError: 'm' (--traceback shows where)\n")
    with pytest.raises(KeyError):
        main(["inspect", "m", "--traceback"])


def test_an_interrupt_has_a_code_of_its_own(here, capsys, monkeypatch):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("morforest._commands.inspect_file", interrupted)
    assert said(capsys, "inspect m") == (130, "", "morforest: interrupted\n")


def test_dictionaries_are_read_and_no_code_is_run():
    assert read_dictionary("series") == "series"
    assert read_dictionary("Patch((1, 2), 5, boundary='wrap')") == Patch((1, 2), 5, boundary="wrap")
    shared = read_dictionary("SharedAtoms(Patch(max_size=5, views=[Raw()]), 100)")
    assert isinstance(shared, SharedAtoms)
    assert shared.n_atoms == 100
    for text in ("__import__('os')", "Patch.__init__()", "[Patch()]", "MorfClassifier()", "1 +"):
        with pytest.raises(UsageError):
            read_dictionary(text)


def test_the_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(page.split("```python\n")[1].split("```")[0], {})
    commands = re.findall("^    morforest (.*)$", page, re.MULTILINE)
    assert len(commands) >= 10
    for words in commands:
        code, _, err = said(capsys, words.replace("--trees 50", "--trees 5"))
        assert code == 0, f"{words}: {err}"


# --- files of data -------------------------------------------------------------------------------

TS = """\
# a comment
@problemName Some
@timeStamps false
@univariate {univariate}
@classLabel true up down
@data
{data}
"""


def read_text(path, text, **options):
    Path(path).write_text(text)
    return read_data(str(path), DataOptions(**options))


def test_series_of_one_channel_are_read(tmp_path):
    text = TS.format(univariate="true", data="1,2,?:up\n4.5,NaN,-6e1:down")
    found = read_text(tmp_path / "x.ts", text)
    np.testing.assert_array_equal(found.X, [[1, 2, np.nan], [4.5, np.nan, -60]])
    assert found.y.tolist() == ["up", "down"]
    assert found.channel_axis is None


def test_series_of_several_channels_and_lengths_are_read(tmp_path):
    text = TS.format(univariate="false", data="1,2:3,4:up\n5,6:7,8:down")
    found = read_text(tmp_path / "x.ts", text)
    np.testing.assert_array_equal(found.X, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    assert found.channel_axis == 1
    text = TS.format(univariate="false", data="1,2:3,4:up\n5:7:down")
    found = read_text(tmp_path / "y.ts", text)
    assert [one.tolist() for one in found.X] == [[[1, 2], [3, 4]], [[5], [7]]]
    targets = "@targetLabel true\n@data\n1,2:0.5\n3,4:1.5\n"
    assert read_text(tmp_path / "z.ts", targets).y.tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@timeStamps true\n@data\n(1,2):a\n", "has time stamps"),
        ("1,2:a\n", "line 1: expected a line that begins with @"),
        (TS.format(univariate="true", data="1,x:up"), "line 7: could not convert"),
        (TS.format(univariate="true", data="1,2:3:up"), "line 7: the channels of a series differ"),
        (TS.format(univariate="true", data="1:2:up\n3:up"), "different numbers of channels"),
        (TS.format(univariate="true", data=""), "has no samples"),
    ],
)
def test_damaged_series_are_named(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_text(tmp_path / "x.ts", text)


def test_arff_tables_and_series_are_read(tmp_path):
    head = "% c\n@relation r\n@attribute a numeric\n@attribute 'b c' real\n@attribute y {u,'v w'}\n"
    found = read_text(tmp_path / "x.arff", head + "@data\n1,?,u\n2,3,'v w'\n")
    np.testing.assert_array_equal(found.X, [[1, np.nan], [2, 3]])
    assert found.y.tolist() == ["u", "v w"]
    with pytest.raises(ValueError, match="line 7: there are 2 values and 3 attributes"):
        read_text(tmp_path / "y.arff", head + "@data\n1,u\n")
    several = (
        "@relation r\n@attribute s relational\n  @attribute t1 numeric\n  @attribute t2 numeric\n"
        "@end s\n@attribute y {u,v}\n@data\n'1,2\\n3,4',u\n\"5,6\\n7,8\",v\n"
    )
    found = read_text(tmp_path / "z.arff", several)
    np.testing.assert_array_equal(found.X, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    assert (found.y.tolist(), found.channel_axis) == (["u", "v"], 1)


def save_images(folder, arrays):
    folder.mkdir(parents=True)
    for number, array in enumerate(arrays):
        Image.fromarray(array).save(folder / f"{number}.png")


def test_folders_of_images_are_read(tmp_path):
    random = np.random.default_rng(0)
    grey = random.integers(0, 256, (4, 5, 6)).astype(np.uint8)
    save_images(tmp_path / "grey" / "cat", grey[:2])
    save_images(tmp_path / "grey" / "dog", grey[2:])
    found = read_data(str(tmp_path / "grey"), DataOptions())
    np.testing.assert_array_equal(found.X, grey)
    assert found.y.tolist() == ["cat", "cat", "dog", "dog"]
    colours = random.integers(0, 256, (2, 5, 6, 3)).astype(np.uint8)
    save_images(tmp_path / "flat", colours)
    found = read_data(str(tmp_path / "flat"), DataOptions())
    np.testing.assert_array_equal(found.X, colours)
    assert (found.y, found.channel_axis) == (None, -1)
    assert read_data(str(tmp_path / "flat"), DataOptions(grey=True)).X.shape == (2, 5, 6)
    save_images(tmp_path / "mixed", [grey[0], grey[0, :3]])
    with pytest.raises(ValueError, match=r"--size HEIGHT,WIDTH"):
        read_data(str(tmp_path / "mixed"), DataOptions())
    assert read_data(str(tmp_path / "mixed"), DataOptions(size=(3, 4))).X.shape == (2, 3, 4)
    (tmp_path / "mixed" / "2.png").write_text("no image")
    with pytest.raises(ValueError, match=r"2\.png cannot be read"):
        read_data(str(tmp_path / "mixed"), DataOptions(size=(3, 4)))
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="holds no images"):
        read_data(str(tmp_path / "none"), DataOptions())


@pytest.mark.parametrize(
    ("package", "name"), [("pandas", "x.csv"), ("PIL", "folder")], ids=["pandas", "Pillow"]
)
def test_missing_packages_are_named(package, name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "folder").mkdir()
    (tmp_path / "x.csv").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match=r"pip install 'morforest\[(tables|images)\]'"):
        read_data(str(tmp_path / name), DataOptions())
