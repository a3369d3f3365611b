# The sources of the core, without Python. Kernels are where time is spent, and are optimised hardest; the others run once per call.
set(MORFOREST_KERNELS
  atoms/sampler.cpp
  base/sorting.cpp
  data/row_filler.cpp
  data/table.cpp
  forest/forest.cpp
  forest/walk_rows.cpp
  growth/combination.cpp
  growth/grow.cpp
  growth/subset.cpp
  projection/atom_values.cpp
  projection/byte_patches.cpp
  projection/pooling.cpp
  projection/projector.cpp
  splitting/search_by_absolute_error.cpp
  splitting/search_by_entropy.cpp
  splitting/search_by_gini.cpp
  splitting/search_by_gradient.cpp
  splitting/search_by_poisson.cpp
  splitting/search_by_squared_error.cpp
  splitting/value_search.cpp)
set(MORFOREST_SUPPORT
  atoms/atom_list.cpp
  atoms/dictionary.cpp
  data/row_layout.cpp
  forest/compiled_nodes.cpp
  growth/bags.cpp
  splitting/node_search.cpp)
# Compiled once for all instruction sets; module.cpp is compiled for each.
set(MORFOREST_BINDINGS
  python/atoms.cpp
  python/bags.cpp
  python/dictionary.cpp
  python/forest.cpp
  python/functions.cpp
  python/layout.cpp
  python/table.cpp
  python/training.cpp
  python/trees.cpp)
list(TRANSFORM MORFOREST_BINDINGS PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM MORFOREST_KERNELS PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM MORFOREST_SUPPORT PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
