#include "splitting/criterion_search.hpp"
#include "splitting/class_criterion.hpp"

MORFOREST_SEARCH_BY(gini, (ClassCriterion<Gini>(targets.classes.data(), targets.class_count)))
