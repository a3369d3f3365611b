#include "splitting/criterion_search.hpp"
#include "splitting/absolute_error.hpp"

MORFOREST_SEARCH_BY(absolute_error, (AbsoluteError(targets.values.data(), targets.bits)))
