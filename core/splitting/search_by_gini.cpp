#include "splitting/class_criterion.hpp"
#include "splitting/criterion_search.hpp"

MORFOREST_SEARCH_BY(gini, (ClassCriterion<Gini>(targets.classes.data(), targets.class_count)))
