#include "splitting/criterion_search.hpp"
#include "splitting/sum_criterion.hpp"

MORFOREST_SEARCH_BY(poisson, (SumCriterion<Poisson>(targets.values.data(), targets.bits)))
