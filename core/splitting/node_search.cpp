#include "splitting/node_search.hpp"

#include "splitting/criterion_search.hpp"

namespace morf {

template <class Value>
std::unique_ptr<NodeSearch<Value>> make_node_search(CriterionKind criterion, Splitter splitter, const Targets& targets,
                                                    Projection<Value>& projection) {
  if (targets.outputs() > 1) return search_by_several(criterion, splitter, targets, projection);
  switch (criterion) {
    case CriterionKind::gini: return search_by_gini(splitter, targets, projection);
    case CriterionKind::entropy: return search_by_entropy(splitter, targets, projection);
    case CriterionKind::squared_error: return search_by_squared_error(splitter, targets, projection);
    case CriterionKind::poisson: return search_by_poisson(splitter, targets, projection);
    case CriterionKind::absolute_error: return search_by_absolute_error(splitter, targets, projection);
    case CriterionKind::gradient: break;
  }
  return search_by_gradient(splitter, targets, projection);
}

template std::unique_ptr<NodeSearch<std::uint16_t>> make_node_search(CriterionKind, Splitter, const Targets&,
                                                                     Projection<std::uint16_t>&);
template std::unique_ptr<NodeSearch<std::int32_t>> make_node_search(CriterionKind, Splitter, const Targets&,
                                                                    Projection<std::int32_t>&);
template std::unique_ptr<NodeSearch<std::int64_t>> make_node_search(CriterionKind, Splitter, const Targets&,
                                                                    Projection<std::int64_t>&);
template std::unique_ptr<NodeSearch<double>> make_node_search(CriterionKind, Splitter, const Targets&, Projection<double>&);

}  // namespace morf
