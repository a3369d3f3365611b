// GrowthRule, Gradients and Targets: what training asks for.
#include <algorithm>
#include <numeric>

#include "growth/trees.hpp"
#include "python/glue.hpp"
#include "splitting/targets.hpp"

namespace {

const Names<CriterionKind> criteria{{"gini", CriterionKind::gini},
                                    {"entropy", CriterionKind::entropy},
                                    {"squared_error", CriterionKind::squared_error},
                                    {"poisson", CriterionKind::poisson},
                                    {"absolute_error", CriterionKind::absolute_error},
                                    {"gradient", CriterionKind::gradient}};
const Names<Splitter> splitters{{"exact", Splitter::exact}, {"histogram", Splitter::histogram}};

const Names<EmptyLeaf> empty_leaves{{"prune", EmptyLeaf::prune},
                                    {"ignore", EmptyLeaf::ignore},
                                    {"uniform", EmptyLeaf::uniform},
                                    {"empirical", EmptyLeaf::empirical}};

using RuleState = std::tuple<std::string, std::string, std::size_t, std::vector<std::uint64_t>, std::vector<double>, std::size_t,
                             std::vector<double>, std::string>;

RuleState state_of(const GrowthRule& rule) {
  return {name_of(rule.criterion, criteria),
          name_of(rule.splitter, splitters),
          rule.candidates,
          {rule.max_depth, rule.min_samples_split, rule.min_samples_leaf, rule.max_leaf_nodes},
          {rule.min_weight_fraction_leaf, rule.min_impurity_decrease, rule.min_child_fraction, rule.random_split_rate},
          rule.threads,
          rule.penalties,
          name_of(rule.empty_leaf, empty_leaves)};
}

GrowthRule rule_of(const RuleState& state) {
  const auto& [criterion, splitter, candidates, limits, shares, threads, penalties, empty_leaf] = state;
  require(limits.size() == 4 && shares.size() == 4, "no growth rule");
  return {.criterion = parse(criterion, criteria),
          .splitter = parse(splitter, splitters),
          .candidates = candidates,
          .max_depth = limits[0],
          .min_samples_split = limits[1],
          .min_samples_leaf = limits[2],
          .min_weight_fraction_leaf = shares[0],
          .min_impurity_decrease = shares[1],
          .min_child_fraction = shares[2],
          .random_split_rate = shares[3],
          .max_leaf_nodes = limits[3],
          .threads = threads,
          .penalties = penalties,
          .empty_leaf = parse(empty_leaf, empty_leaves)};
}

}  // namespace

void bind_training(nb::module_& m) {
  nb::class_<GrowthRule>(m, "GrowthRule", "When nodes are split, and by what. Limits are none at first.")
      .def(
          "__init__",
          [](GrowthRule* self, const std::string& criterion, const std::string& splitter, std::size_t candidates) {
            new (self) GrowthRule{
                .criterion = parse(criterion, criteria), .splitter = parse(splitter, splitters), .candidates = candidates};
          },
          "criterion"_a, "splitter"_a, "candidates"_a)
      .def_prop_ro("criterion", [](const GrowthRule& self) { return name_of(self.criterion, criteria); })
      .def_prop_ro("splitter", [](const GrowthRule& self) { return name_of(self.splitter, splitters); })
      .def_ro("candidates", &GrowthRule::candidates)
      .def_rw("max_depth", &GrowthRule::max_depth)
      .def_rw("min_samples_split", &GrowthRule::min_samples_split)
      .def_rw("min_samples_leaf", &GrowthRule::min_samples_leaf)
      .def_rw("min_weight_fraction_leaf", &GrowthRule::min_weight_fraction_leaf)
      .def_rw("min_impurity_decrease", &GrowthRule::min_impurity_decrease)
      .def_rw("min_child_fraction", &GrowthRule::min_child_fraction)
      .def_rw("random_split_rate", &GrowthRule::random_split_rate)
      .def_rw("max_leaf_nodes", &GrowthRule::max_leaf_nodes)
      .def_prop_rw(
          "empty_leaf", [](const GrowthRule& self) { return name_of(self.empty_leaf, empty_leaves); },
          [](GrowthRule& self, const std::string& name) { self.empty_leaf = parse(name, empty_leaves); },
          "What honest trees do about leaves that no row fills.")
      .def_rw("threads", &GrowthRule::threads, "Threads that search a node of boosting.")
      .def_rw("penalties", &GrowthRule::penalties, "Of the combination that each node learns; empty: none.")
      .def("__getstate__", &state_of)
      .def("__setstate__", [](GrowthRule& self, const RuleState& state) { new (&self) GrowthRule(rule_of(state)); });

  nb::class_<Gradients>(m, "Gradients", "What a round of boosting knows of each row.")
      .def(nb::init<std::size_t, std::size_t>(), "rows"_a, "outputs"_a)
      .def(
          "set",
          [](Gradients& self, const Matrix<double>& gradient, const Matrix<double>& curvature) {
            require_shape(gradient, self.rows(), self.outputs(), "gradients have another shape");
            require_shape(curvature, self.rows(), self.outputs(), "curvatures have another shape");
            nb::gil_scoped_release release;
            self.set(gradient.data(), curvature.data());
          },
          "gradient"_a, "curvature"_a, "Set the negative gradient and the curvature of each row's loss for each output.");

  using TargetState =
      std::tuple<Vector<std::uint32_t>, std::vector<std::uint32_t>, std::size_t, Vector<std::int64_t>, std::vector<int>, int>;
  nb::class_<Targets>(m, "Targets", "What trees are to predict, with an entry per row of the table.")
      .def_static(
          "of_classes",
          [](const Vector<std::uint32_t>& classes, std::size_t class_count) {
            require(class_count > 0, "there are no classes");
            return Targets{.classes = to_vector(classes), .class_count = class_count};
          },
          "classes"_a, "class_count"_a)
      .def_static(
          "of_values",
          [](const Vector<std::int64_t>& values, int bits) { return Targets{.values = to_vector(values), .bits = bits}; },
          "values"_a, "bits"_a, "Targets in fixed point: multiples of 2^-bits.")
      .def_static(
          "of_class_outputs",
          [](const Vector<std::uint32_t>& classes, const std::vector<std::uint32_t>& classes_of) {
            require(classes_of.size() > 1 && classes.size() % classes_of.size() == 0, "there are not several outputs");
            require(std::find(classes_of.begin(), classes_of.end(), 0u) == classes_of.end(), "there are no classes");
            return Targets{.classes = to_vector(classes),
                           .class_count = std::accumulate(classes_of.begin(), classes_of.end(), std::size_t{0}),
                           .classes_of = classes_of};
          },
          "classes"_a, "classes_of"_a, "Several outputs behind one another, which have so many classes each.")
      .def_static(
          "of_value_outputs",
          [](const Vector<std::int64_t>& values, const std::vector<int>& bits_of) {
            require(bits_of.size() > 1 && values.size() % bits_of.size() == 0, "there are not several outputs");
            return Targets{.values = to_vector(values), .bits_of = bits_of};
          },
          "values"_a, "bits_of"_a, "Several outputs behind one another, in multiples of 2^-bits each.")
      .def_static(
          "of_gradients",
          [](const Gradients& gradients, double l2_regularization, double learning_rate, double largest_leaf) {
            return Targets{.gradients = &gradients, .leaf = {l2_regularization, learning_rate, largest_leaf}};
          },
          "gradients"_a, "l2_regularization"_a, "learning_rate"_a, "largest_leaf"_a, nb::keep_alive<0, 1>())
      .def(
          "take",
          [](const Targets& self, const Vector<std::uint32_t>& rows) {
            require(self.gradients == nullptr, "gradients belong to all rows");
            Targets some{
                .class_count = self.class_count, .classes_of = self.classes_of, .bits = self.bits, .bits_of = self.bits_of};
            for (std::size_t k = 0; k < self.outputs(); ++k)
              for (std::size_t i = 0; i < rows.size(); ++i) {
                require(rows.data()[i] < self.rows(), "no such row");
                const std::size_t at = k * self.rows() + rows.data()[i];
                if (self.class_count > 0) some.classes.push_back(self.classes[at]);
                else some.values.push_back(self.values[at]);
              }
            return some;
          },
          "rows"_a, "Return the targets of some rows, in their order.")
      .def_ro("class_count", &Targets::class_count, "Number of classes of all outputs; 0 if there are none.")
      .def_ro("classes_of", &Targets::classes_of, "Number of classes of each of several outputs; else empty.")
      .def_prop_ro("outputs", &Targets::outputs)
      .def("__getstate__",
           [](const Targets& self) {
             require(self.gradients == nullptr, "targets of boosting stay in their process");
             return std::tuple(to_numpy(std::vector(self.classes)), self.classes_of, self.class_count,
                               to_numpy(std::vector(self.values)), self.bits_of, self.bits);
           })
      .def("__setstate__", [](Targets& self, const TargetState& state) {
        const auto& [classes, classes_of, class_count, values, bits_of, bits] = state;
        new (&self) Targets{.classes = to_vector(classes),
                            .class_count = class_count,
                            .classes_of = classes_of,
                            .values = to_vector(values),
                            .bits = bits,
                            .bits_of = bits_of};
      });
}
