#include "splitting/criterion_search.hpp"
#include "splitting/class_criterion.hpp"

MORFOREST_SEARCH_BY(entropy, (ClassCriterion<Entropy>(targets.classes.data(), targets.class_count)))
