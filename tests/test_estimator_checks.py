"""Every check that scikit-learn makes of its own estimators, without exceptions."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from morforest import (
    AtomFeatures,
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
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
