# The sources of the core, without Python. Kernels are where time is spent, and are optimised hardest; the others run once per call.
# A group is compiled as one source; a change in it should take no more than some ten seconds to compile.
function(morforest_group list group)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
  set(${list} ${${list}} ${ARGN} PARENT_SCOPE)
endfunction()

morforest_group(MORFOREST_KERNELS atoms
  atoms/sampler.cpp)
morforest_group(MORFOREST_KERNELS data
  base/sorting.cpp
  data/gaps.cpp
  data/row_filler.cpp
  data/table.cpp)
morforest_group(MORFOREST_KERNELS projection
  projection/atom_values.cpp
  projection/byte_patches.cpp
  projection/gap_projection.cpp
  projection/pooling.cpp
  projection/projector.cpp
  splitting/value_search.cpp)
morforest_group(MORFOREST_KERNELS classification
  splitting/search_by_entropy.cpp
  splitting/search_by_gini.cpp)
morforest_group(MORFOREST_KERNELS regression
  splitting/search_by_absolute_error.cpp
  splitting/search_by_gradient.cpp
  splitting/search_by_poisson.cpp
  splitting/search_by_several.cpp
  splitting/search_by_squared_error.cpp)
morforest_group(MORFOREST_KERNELS growth
  growth/combination.cpp
  growth/grow.cpp
  growth/subset.cpp)
morforest_group(MORFOREST_KERNELS forest
  forest/forest.cpp
  forest/leaf_samples.cpp
  forest/tree_walk.cpp)
morforest_group(MORFOREST_SUPPORT support
  atoms/atom_list.cpp
  atoms/dictionary.cpp
  data/row_layout.cpp
  forest/compiled_nodes.cpp
  growth/bags.cpp
  splitting/node_search.cpp)
# Compiled once for all instruction sets; module.cpp is compiled for each.
morforest_group(MORFOREST_BINDINGS bindings
  python/atoms.cpp
  python/bags.cpp
  python/dictionary.cpp
  python/forest.cpp
  python/functions.cpp
  python/layout.cpp
  python/leaf_samples.cpp
  python/table.cpp
  python/training.cpp
  python/trees.cpp)
