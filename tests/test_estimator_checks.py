"""Every check that scikit-learn makes of its own estimators, without exceptions."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
)


@parametrize_with_checks(
    [
        MorfClassifier(n_estimators=10),
        MorfRegressor(n_estimators=10),
        MorfTreeClassifier(),
        MorfTreeRegressor(),
        AtomFeatures(n_atoms=20),
        AtomFeatures(n_atoms=20, dtype="float64"),
        AtomRidgeClassifier(n_atoms=100),
        AtomRidgeRegressor(n_atoms=1000),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
