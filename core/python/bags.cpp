// Bags, and drawing them.
#include "growth/bags.hpp"

#include "python/glue.hpp"

void bind_bags(nb::module_& m) {
  nb::class_<StopFlag>(m, "StopFlag", "Asks threads of the core to give up.").def(nb::init<>()).def("set", [](StopFlag& self) {
    self.set = true;
  });

  nb::class_<Bags>(m, "Bags", "Which rows each tree sees, and what they count for.")
      .def(
          "__init__",
          [](Bags* self, const Matrix<std::uint32_t>& count, const Matrix<std::uint32_t>& weight,
             const Vector<std::uint32_t>& order) {
            require_shape(weight, count.shape(0), count.shape(1), "weights need one entry per row and tree");
            require(count.shape(1) == order.size(), "counts need one entry per row and tree");
            std::vector<std::uint32_t> weights;
            if (weight.data() != count.data()) weights.assign(weight.data(), weight.data() + weight.size());
            new (self) Bags({count.data(), count.data() + count.size()}, std::move(weights), to_vector(order));
          },
          "count"_a, "weight"_a, "order"_a,
          "Counts and weights have one row per tree; `order` is the canonical one of the training rows.")
      .def_prop_ro("trees", &Bags::trees)
      .def_prop_ro("rows", &Bags::rows);

  m.def(
      "draw_bags",
      [](const Vector<std::uint64_t>& tree_keys, std::uint64_t draws, const Vector<std::uint32_t>& order,
         const Vector<std::uint64_t>& cumulative, const StopFlag& stop) {
        const std::vector<std::uint64_t> keys = to_vector(tree_keys), weights = to_vector(cumulative);
        const std::vector<std::uint32_t> rows = to_vector(order);
        std::vector<std::uint32_t> count;
        {
          nb::gil_scoped_release release;
          Watch watch(stop);
          count = draw_bags(keys, draws, rows, weights, std::ref(watch));
        }
        return to_numpy(std::move(count), rows.size());
      },
      "tree_keys"_a, "draws"_a, "order"_a, "cumulative"_a, "stop"_a,
      "Return how often each row is drawn with replacement (trees, rows); `order` is the canonical one.");
  m.def(
      "choose_leaf_rows",
      [](const Vector<std::uint64_t>& tree_keys, double share, const Vector<std::uint32_t>& order,
         const Vector<std::uint32_t>& group, const Vector<std::uint32_t>& classes, const Matrix<std::uint32_t>& count) {
        require_shape(count, tree_keys.size(), order.size(), "counts need one entry per row and tree");
        const std::vector<std::uint64_t> keys = to_vector(tree_keys);
        const std::vector<std::uint32_t> rows = to_vector(order), groups = to_vector(group), labels = to_vector(classes),
                                         counts(count.data(), count.data() + count.size());
        std::vector<std::uint8_t> chosen;
        {
          nb::gil_scoped_release release;
          chosen = choose_leaf_rows(keys, share, rows, groups, labels, counts);
        }
        return to_numpy(std::move(chosen), rows.size());
      },
      "tree_keys"_a, "share"_a, "order"_a, "group"_a, "classes"_a, "count"_a,
      "Return a one for each drawn row that fills leaves of honest trees (trees, rows), and else a zero.");
  m.def(
      "draw_rows",
      [](std::uint64_t tree_key, std::uint64_t draws, const Vector<std::uint32_t>& order, const Vector<std::uint32_t>& count,
         const StopFlag& stop) {
        const std::vector<std::uint32_t> rows = to_vector(order), counts = to_vector(count);
        std::vector<std::uint32_t> drawn;
        {
          nb::gil_scoped_release release;
          Watch watch(stop);
          drawn = draw_rows(tree_key, draws, rows, counts, std::ref(watch));
        }
        return to_numpy(std::move(drawn));
      },
      "tree_key"_a, "draws"_a, "order"_a, "count"_a, "stop"_a, "Return how often each row is drawn without replacement.");
  m.def(
      "draw_few_rows",
      [](std::uint64_t tree_key, std::uint64_t draws, std::uint64_t population, bool replace, const StopFlag& stop) {
        DrawnRows drawn;
        {
          nb::gil_scoped_release release;
          Watch watch(stop);
          drawn = draw_few_rows(tree_key, draws, population, replace, std::ref(watch));
        }
        return std::make_tuple(to_numpy(std::move(drawn.row)), to_numpy(std::move(drawn.count)));
      },
      "tree_key"_a, "draws"_a, "population"_a, "replace"_a, "stop"_a,
      "Return the rows that a tree draws of very many, in increasing order, and how often each is drawn.");
}
