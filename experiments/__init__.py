"""The experiments of the MORF paper, and those beyond it: `python -m experiments.paper`."""
