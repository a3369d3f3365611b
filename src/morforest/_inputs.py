"""What users pass as samples: arrays of numbers from data frames and tensors, or what to do first.

A data frame stays one, so that scikit-learn reads the names of its columns; only columns whose
values are not plain numbers are replaced.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

MOST_NAMED = 5  # columns that a message lists


def read_samples(X: Any, estimator: str) -> Any:
    """Return an array, a sparse matrix or a data frame of numbers; missing ones are NaN.

    What holds no numbers raises an error that names the columns and says what to do, for an
    estimator of that name.
    """
    if type(X) is np.ndarray:
        return X
    kind = type(X).__module__.partition(".")[0]
    if kind == "polars":
        return _read_polars(X, estimator)
    if kind == "pandas" and hasattr(X, "columns"):
        return _read_pandas(X, estimator)
    if hasattr(X, "columns") or hasattr(X, "toarray"):  # other data frames, and sparse
        return X
    if hasattr(X, "requires_grad"):
        _check_tensor(X)
    found = np.asarray(X)
    if found.dtype == object and not found.ndim:
        raise TypeError(
            f"X is a {type(X).__name__}, which is no array of samples: pass a NumPy array, a list "
            "of samples, a data frame or a sparse matrix."
        )
    return found


def _check_tensor(X: Any) -> None:
    """Raise unless NumPy can read a tensor."""
    steps = []
    if X.requires_grad:
        steps.append((".detach()", "requires grad"))
    device = str(getattr(X, "device", "cpu"))
    if not device.startswith("cpu"):
        steps.append((".cpu()", f"is on the device {device}"))
    dtype = str(getattr(X, "dtype", ""))
    if dtype.endswith("bfloat16"):
        steps.append((".float()", f"has dtype {dtype}, which NumPy does not know"))
    if steps:
        what, calls = (" and ".join(parts[i] for parts in steps) for i in (1, 0))
        calls = calls.replace(" and ", "")
        raise TypeError(f"X is a tensor that {what}: pass X{calls}.numpy().")


def _read_polars(X: Any, estimator: str) -> Any:
    """Return a data frame of polars with numbers alone; nulls become NaN."""
    if hasattr(X, "collect"):
        raise TypeError(
            "X is a LazyFrame of polars, whose values are not computed yet: pass X.collect()."
        )
    if not hasattr(X, "columns"):  # a single series
        return X.to_numpy()
    polars = sys.modules["polars"]
    bad, changed = [], []
    for column in X.get_columns():
        dtype = column.dtype
        if (dtype.is_integer() or dtype.is_float()) and not column.null_count():
            continue
        if dtype == polars.Boolean and not column.null_count():
            continue
        number = dtype.is_numeric() or dtype in (polars.Boolean, polars.Null)
        try:
            if not number and dtype not in (polars.String, polars.Object):
                raise TypeError("no numbers")
            if dtype == polars.Object:
                values = np.array([np.nan if v is None else v for v in column], dtype=np.float64)
                changed.append(polars.Series(column.name, values))
            else:
                changed.append(column.cast(polars.Float64).fill_null(np.nan))
        except (TypeError, ValueError, polars.exceptions.PolarsError):
            bad.append((column.name, str(dtype)))
    if bad:
        raise ValueError(_explain(bad, estimator))
    return X.with_columns(changed) if changed else X


def _read_pandas(X: Any, estimator: str) -> Any:
    """Return a data frame of pandas with numbers alone; missing ones become NaN."""
    if all(_is_plain(dtype) for dtype in X.dtypes.unique()):
        return X
    pandas = sys.modules["pandas"]
    bad, columns = [], {}
    for number, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        column = X.iloc[:, number]
        if not _is_plain(dtype):
            try:
                column = pandas.Series(_numbers(column, dtype), index=X.index)
            except (TypeError, ValueError):
                bad.append((name, str(dtype)))
        columns[number] = column
    if bad:
        raise ValueError(_explain(bad, estimator))
    found = pandas.DataFrame(columns, index=X.index)
    found.columns = X.columns
    return found


def _is_plain(dtype: Any) -> bool:
    """Say whether a column of pandas is one of NumPy's numbers, or a sparse one of these."""
    known = isinstance(getattr(dtype, "subtype", dtype), np.dtype)
    return known and dtype.kind in "biufc"


def _numbers(column: Any, dtype: Any) -> np.ndarray:
    """Return a column of pandas as an array of numbers."""
    kind = getattr(dtype, "kind", "O")
    if kind in "mM":
        raise TypeError("dates")
    missing = column.isna().to_numpy()
    if kind in "biuf":
        plain = getattr(dtype, "numpy_dtype", np.dtype(np.float64))
        if missing.any() or plain.kind not in "biuf":
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(column.to_numpy(dtype=plain))
    values = column.to_numpy(dtype=object)
    values = np.where(missing, np.nan, values)
    return values.astype(np.float64)


def _is_word(value: Any) -> bool:
    """Say whether a value is a word, a date or a time span."""
    return isinstance(value, (str, bytes)) or hasattr(value, "year") or hasattr(value, "days")


def explain_values(X: Any, estimator: str) -> str | None:
    """Say which columns of an array of objects or strings hold words, if there are any."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "OUS":
        return None
    bad = []
    for number in range(X.shape[1]):
        try:
            X[:, number].astype(np.float64)
        except (TypeError, ValueError):
            words = next((v for v in X[:, number] if _is_word(v)), None)
            if words is None:
                return None
            bad.append((number, f"such as {str(words)[:20]!r}"))
    if bad:
        return _explain(bad, estimator)
    if X.dtype.kind in "US":
        return f"X holds numbers as strings (dtype {X.dtype}): pass X.astype(float)."
    return None


def _explain(bad: list[tuple[Any, str]], estimator: str) -> str:
    """Name columns that are not numbers, and say what to do about them."""
    named = ", ".join(f"{name!r} ({kind})" for name, kind in bad[:MOST_NAMED])
    more = f" and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    columns = repr([name for name, _ in bad[:MOST_NAMED]])
    if more:
        columns = columns[:-1] + ", ...]"
    several = "columns that are" if len(bad) > 1 else "a column that is"
    return (
        f"X has {several} not numeric: {named}{more}. Encode categories first (OrdinalEncoder, "
        "OneHotEncoder, or TargetEncoder if there are many), and turn dates into numbers:\n"
        f'  encode = ColumnTransformer([("encode", OrdinalEncoder(), {columns})], '
        'remainder="passthrough")\n'
        f"  model = make_pipeline(encode, {estimator}())"
    )
