"""The virtual environments of the peers, all under `.venv-peers`.

treeple 0.10.3 does not import beside today's scikit-learn, so it has an environment of its own.
An environment is made when it is first needed, and made again when its packages change here.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".venv-peers"
ENVIRONMENTS = {
    "treeple": ("treeple==0.10.3", "scikit-learn==1.6.1"),
    "quantile": ("quantile-forest",),
    "current": ("scikit-learn", "ydf", "xgboost", "lightgbm"),
    "cluster": ("dask[array,dataframe,distributed]", "scikit-learn", "xgboost"),
}
HOME = {
    "morforest": None,  # this interpreter
    "treeple": "treeple",
    "quantile-forest": "quantile",
    "scikit-learn": "current",
    "ydf": "current",
    "xgboost": "current",
    "lightgbm": "current",
    "xgboost-dask": "cluster",
}
LIBRARIES = tuple(library for library in HOME if library != "xgboost-dask")


def interpreters(libraries):
    """Return the Python of each library; name and leave out those that cannot be installed."""
    pythons = {None: sys.executable}
    found = {}
    for library in libraries:
        environment = HOME[library]
        if environment not in pythons:
            pythons[environment] = interpreter(environment)
        if pythons[environment] is None:
            print(f"Left out: {library}.", flush=True)
        else:
            found[library] = pythons[environment]
    return found


def interpreter(environment):
    """Return the Python of an environment, made now if need be, or None if it cannot be made."""
    folder, packages = FOLDER / environment, ENVIRONMENTS[environment]
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    made = folder / ".made"
    if made.exists() and made.read_text().split() == list(packages):
        return python
    print(
        f"Making the environment .venv-peers/{environment} with {', '.join(packages)}: "
        "some minutes, once ...",
        flush=True,
    )
    venv.create(folder, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*command, *packages]).returncode:
        print(f"pip could not install {', '.join(packages)} for Python {sys.version.split()[0]}.")
        return None
    made.write_text("\n".join(packages))
    return python
