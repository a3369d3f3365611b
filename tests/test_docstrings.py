"""Docstrings of the estimators: written out, complete, and equal where they mean the same."""

import ast
import inspect
import re

import pytest

import morforest
from morforest import (
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
)

FORESTS = (MorfClassifier, MorfRegressor)
TREES = (MorfTreeClassifier, MorfTreeRegressor)
BOOSTING = (MorfBoostingClassifier, MorfBoostingRegressor)
ESTIMATORS = (*FORESTS, *TREES, *BOOSTING)
CLASSIFIERS, REGRESSORS = ESTIMATORS[::2], ESTIMATORS[1::2]

# Parameters and attributes that do not mean the same everywhere. Within each group they do.
DIFFERENT = {
    "dictionary": [(*FORESTS, *TREES), BOOSTING],  # boosting has another default for flat rows
    "max_features": [CLASSIFIERS[:2], REGRESSORS[:2], BOOSTING],  # what "auto" means
    "splitter": [(*FORESTS, *BOOSTING), TREES],  # the default
    "criterion": [CLASSIFIERS[:2], REGRESSORS[:2]],  # which there are
    "max_depth": [(*FORESTS, *TREES), BOOSTING],  # the default
    "min_samples_leaf": [(*FORESTS, *TREES), BOOSTING],  # boosting has "auto"
    "max_leaf_nodes": [(*FORESTS, *TREES), BOOSTING],  # impurity or gain
    "honest": [FORESTS, TREES],  # forests have "oob"
    "honest_prior": [CLASSIFIERS[:2], REGRESSORS[:2]],  # numbers have no uniform distribution
    "calibration_folds": [BOOSTING[:1], BOOSTING[1:]],  # quantile losses have "auto"
    "oob_score": [FORESTS[:1], FORESTS[1:]],  # accuracy or R squared
    "augment": [FORESTS, BOOSTING],  # copies of a tree or of a generation
    "class_weight": [CLASSIFIERS[:2], BOOSTING[:1]],  # boosting has no "balanced_subsample"
    "classes_": [CLASSIFIERS[:2], BOOSTING[:1]],  # of several outputs
    "n_classes_": [CLASSIFIERS[:2], BOOSTING[:1]],
    "warm_start": [FORESTS, BOOSTING],  # n_estimators or max_iter
    "n_jobs": [FORESTS, BOOSTING],  # what threads share
    "verbose": [FORESTS, BOOSTING],  # what is shown
    "bootstrap_": [FORESTS, TREES],  # always False for trees
    "feature_importances_": [(*FORESTS, *TREES), BOOSTING],  # impurity or gain
}


def sections(text):
    """The entries of the sections of a docstring: {section: {name: text with the heading}}."""
    lines = inspect.cleandoc(text).splitlines()
    starts = [i for i in range(1, len(lines)) if re.fullmatch("-{3,}", lines[i])]
    found = {}
    for start, end in zip(starts, [*(s - 1 for s in starts[1:]), len(lines)], strict=True):
        entries = found[lines[start - 1]] = {}
        name = None
        for line in lines[start + 1 : end]:
            heading = re.match(r"(\w+) : ", line)
            if heading:
                name = heading[1]
                entries[name] = []
            if name is not None and line:
                entries[name].append(line)
    return {
        section: {name: "\n".join(text) for name, text in entries.items()}
        for section, entries in found.items()
    }


def texts(name):
    """The text of a parameter or attribute in each estimator that has it."""
    found = {}
    for estimator in ESTIMATORS:
        of = sections(estimator.__doc__)
        entries = of["Parameters"] | of["Attributes"]
        if name in entries:
            found[estimator] = entries[name]
    return found


def all_names():
    found = [sections(estimator.__doc__) for estimator in ESTIMATORS]
    return sorted({name for of in found for name in of["Parameters"] | of["Attributes"]})


@pytest.mark.parametrize("name", all_names())
def test_paragraphs_that_mean_the_same_are_equal(name):
    found = texts(name)
    groups = DIFFERENT.get(name, [tuple(found)])
    assert {estimator for group in groups for estimator in group} == set(found)
    for group in groups:
        assert len({found[estimator] for estimator in group}) == 1
    assert len(set(found.values())) == len(groups), "an exception that is none"


def test_exceptions_are_parameters():
    assert set(DIFFERENT) <= set(all_names())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_documented_with_its_default(estimator):
    documented = sections(estimator.__doc__)["Parameters"]
    parameters = inspect.signature(estimator).parameters
    assert list(documented) == list(parameters)
    for name, parameter in parameters.items():
        default = re.search(r"default=(.*)$", documented[name].splitlines()[0])
        assert default, name
        assert ast.literal_eval(default[1]) == parameter.default, name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_docstrings_are_written_out_in_the_source(estimator):
    # Editors and static tools do not run the module.
    tree = ast.parse(inspect.getsource(inspect.getmodule(estimator)))
    (found,) = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == estimator.__name__
    ]
    assert ast.get_docstring(found) == inspect.cleandoc(estimator.__doc__)


def fitted(estimator):
    X = [[0.0, 3.0], [1.0, 1.0], [2.0, 0.0], [3.0, 5.0]] * 10
    model = estimator(dictionary="auto", random_state=0)
    few = {"n_estimators": 20, "oob_score": True} if estimator in FORESTS else {"max_iter": 5}
    return model.set_params(**({} if estimator in TREES else few)).fit(X, [0, 0, 1, 1] * 10)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_attribute_is_documented_and_exists(estimator):
    model = fitted(estimator)
    documented = set(sections(estimator.__doc__)["Attributes"])
    public = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    assert public == documented - {"feature_names_in_"}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_public_method_has_a_docstring(estimator):
    for name, member in inspect.getmembers(estimator, callable):
        if not name.startswith("_") and member.__module__.startswith("morforest"):
            assert member.__doc__, name


def test_the_estimators_are_all_there_are():
    named = {name for name in morforest.__all__ if name.startswith("Morf")}
    assert named == {estimator.__name__ for estimator in ESTIMATORS}
