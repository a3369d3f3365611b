#include "splitting/criterion_search.hpp"
#include "splitting/gradient_criterion.hpp"

MORFOREST_SEARCH_BY(gradient, (GradientCriterion(*targets.gradients, targets.leaf)))
