"""morforest measured beside other libraries: `python -m benchmarks.bench`."""
