#include <algorithm>
#include <cmath>
#include <memory>

#include "splitting/absolute_error.hpp"
#include "splitting/class_criterion.hpp"
#include "splitting/criterion_search.hpp"
#include "splitting/several_outputs.hpp"
#include "splitting/sum_criterion.hpp"

namespace morf {
namespace {

template <class Criterion>
std::unique_ptr<OutputCriterion> output_by(Criterion criterion) {
  return std::make_unique<OutputBy<Criterion>>(std::move(criterion));
}

std::unique_ptr<OutputCriterion> output_of_classes(CriterionKind kind, const std::uint32_t* classes, std::size_t count) {
  if (kind == CriterionKind::gini) return output_by(ClassCriterion<Gini, false>(classes, count));
  return output_by(ClassCriterion<Entropy>(classes, count));
}

std::unique_ptr<OutputCriterion> output_of_values(CriterionKind kind, const std::int64_t* values, int bits) {
  if (kind == CriterionKind::squared_error) return output_by(SumCriterion<SquaredError>(values, bits));
  if (kind == CriterionKind::poisson) return output_by(SumCriterion<Poisson>(values, bits));
  return output_by(AbsoluteError(values, bits));
}

// Outputs of more bits have smaller units. All scores are measured in the largest one.
SeveralOutputs outputs_of(CriterionKind kind, const Targets& targets) {
  SeveralOutputs outputs;
  const std::size_t rows = targets.rows();
  std::uint32_t first_class = 0;
  for (std::size_t k = 0; k < targets.classes_of.size(); first_class += targets.classes_of[k++])
    outputs.add(output_of_classes(kind, &targets.classes[k * rows], targets.classes_of[k]), 1.0, first_class);
  if (targets.class_count > 0) return outputs;
  const int least = *std::min_element(targets.bits_of.begin(), targets.bits_of.end());
  const int power = kind == CriterionKind::squared_error ? 2 : 1;
  for (std::size_t k = 0; k < targets.bits_of.size(); ++k)
    outputs.add(output_of_values(kind, &targets.values[k * rows], targets.bits_of[k]),
                std::ldexp(1.0, power * (least - targets.bits_of[k])), 0);
  return outputs;
}

}  // namespace

template <class Value>
std::unique_ptr<NodeSearch<Value>> search_by_several(CriterionKind criterion, Splitter splitter, const Targets& targets,
                                                     Projection<Value>& projection) {
  if (criterion == CriterionKind::absolute_error) splitter = Splitter::exact;  // it has no bins
  return std::make_unique<CriterionSearch<Value, SeveralOutputs>>(projection, outputs_of(criterion, targets), splitter);
}

template std::unique_ptr<NodeSearch<std::uint16_t>> search_by_several(CriterionKind, Splitter, const Targets&,
                                                                      Projection<std::uint16_t>&);
template std::unique_ptr<NodeSearch<std::int32_t>> search_by_several(CriterionKind, Splitter, const Targets&,
                                                                     Projection<std::int32_t>&);
template std::unique_ptr<NodeSearch<std::int64_t>> search_by_several(CriterionKind, Splitter, const Targets&,
                                                                     Projection<std::int64_t>&);
template std::unique_ptr<NodeSearch<double>> search_by_several(CriterionKind, Splitter, const Targets&, Projection<double>&);

}  // namespace morf
