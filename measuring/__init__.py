"""What benchmarks and experiments share: arrays and result files, machine facts, tables, figures.

Workers of the benchmarks import `arrays` in environments of other libraries, where morforest is
not installed. So nothing here imports morforest, and only `figures` imports matplotlib.
"""
