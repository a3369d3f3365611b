# The sources of the core, without Python. Kernels are inner loops over cells, values and rows, which vectors of AVX2 make faster; the
# others decide what kernels do, and are compiled once for all instruction sets.
# A group is compiled as one source, because each parses headers and instantiates templates anew; a change in it should take no more
# than some ten seconds to compile.
function(morforest_group list group)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
  set(${list} ${${list}} ${ARGN} PARENT_SCOPE)
endfunction()

morforest_group(MORFOREST_KERNELS splitting
  splitting/search_by_absolute_error.cpp
  splitting/search_by_entropy.cpp
  splitting/search_by_gini.cpp
  splitting/search_by_gradient.cpp
  splitting/search_by_poisson.cpp
  splitting/search_by_several.cpp
  splitting/search_by_squared_error.cpp)
morforest_group(MORFOREST_KERNELS projection
  forest/attribution_sums.cpp
  forest/byte_walk.cpp
  projection/atom_values.cpp
  projection/byte_patches.cpp
  projection/pooling.cpp
  projection/projector.cpp)
morforest_group(MORFOREST_KERNELS data
  base/sorting.cpp
  data/row_filler.cpp
  data/table.cpp
  growth/combination.cpp
  growth/subset.cpp
  splitting/value_search.cpp)
# Alone, because compilers inline more of it then.
morforest_group(MORFOREST_SUPPORT sampler
  atoms/sampler.cpp)
morforest_group(MORFOREST_SUPPORT growth
  growth/bags.cpp
  growth/grow.cpp
  projection/gap_projection.cpp
  projection/with_projection.cpp
  splitting/node_search.cpp)
morforest_group(MORFOREST_SUPPORT forest
  atoms/atom_list.cpp
  atoms/dictionary.cpp
  atoms/relation.cpp
  data/gaps.cpp
  data/row_layout.cpp
  forest/attribution.cpp
  forest/compiled_nodes.cpp
  forest/forest.cpp
  forest/leaf_samples.cpp
  forest/prediction.cpp
  forest/tree_walk.cpp)
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
