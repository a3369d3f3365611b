#include "splitting/absolute_error.hpp"
#include "splitting/criterion_search.hpp"

MORFOREST_SEARCH_BY(absolute_error, (AbsoluteError(targets.values.data(), targets.bits)))
