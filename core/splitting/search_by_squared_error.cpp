#include "splitting/criterion_search.hpp"
#include "splitting/sum_criterion.hpp"

MORFOREST_SEARCH_BY(squared_error, (SumCriterion<SquaredError>(targets.values.data(), targets.bits)))
