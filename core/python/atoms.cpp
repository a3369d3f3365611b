// AtomList, and the values of its atoms.
#include "atoms/atom_list.hpp"
#include "atoms/dictionary.hpp"
#include "growth/subset.hpp"
#include "projection/atom_values.hpp"
#include "python/glue.hpp"

namespace {

using Windows = nb::ndarray<const std::uint32_t, nb::numpy, nb::shape<-1, 2, 2>, nb::c_contig, nb::device::cpu>;

// Windows of linear atoms are zeros for Python.
AtomList to_atoms(const Vector<std::uint32_t>& count, const Vector<std::uint32_t>& cell, const Vector<double>& weight,
                  const Vector<std::uint8_t>& operation, const Vector<std::int64_t>& bias, const Windows& window) {
  AtomList atoms{.begin = {0}, .cell = to_vector(cell), .weight = to_vector(weight), .operation = {}};
  for (std::size_t i = 0; i < count.size(); ++i) atoms.begin.push_back(atoms.begin.back() + count.data()[i]);
  require(atoms.begin.back() == cell.size() && cell.size() == weight.size(), "damaged atoms: terms do not fit the atoms");
  require(bias.size() == operation.size() && window.shape(0) == operation.size(),
          "damaged atoms: operations do not fit the atoms");
  for (std::size_t i = 0; i < operation.size(); ++i) {
    require(operation.data()[i] <= last_op, "damaged atoms: operation");
    const std::uint32_t* w = window.data() + 4 * i;
    Operation made{.op = static_cast<Op>(operation.data()[i]), .window = {{w[0], w[1]}, {w[2], w[3]}}, .bias = bias.data()[i]};
    if (made.op == Op::none) {
      require(std::all_of(w, w + 4, [](std::uint32_t x) { return x == 0; }), "damaged atoms: only pooled atoms have windows");
      made.window[0] = made.window[1] = {};
    }
    atoms.operation.push_back(made);
  }
  return atoms;
}

AnyVector counts_of(const AtomList& self) {
  std::vector<std::uint64_t> count(self.size());
  for (std::size_t i = 0; i < count.size(); ++i) count[i] = self.terms(i);
  return to_narrow_numpy(count);
}

AnyVector windows_of(const AtomList& self) {
  std::vector<std::uint32_t> window;
  for (const Operation& operation : self.operation)
    for (const Window& w : operation.window)
      window.insert(window.end(), {operation.op == Op::none ? 0 : w.count, operation.op == Op::none ? 0 : w.stride});
  return to_narrow_numpy(window);
}

template <class Out>
void transform(const AtomValues& self, const SampleArray& x, const std::string& cell_type, int shift, double limit, bool gaps,
               const OutMatrix<Out>& out) {
  require_features(x, self.features());
  require_shape(out, x.shape(0), self.size(), "wrong output shape");
  const CellType type = parse_cell_type(cell_type);
  const Samples samples = to_samples(x, gaps);
  nb::gil_scoped_release release;
  self.transform(samples, type, Quantiser(shift, limit), out.data());
}

}  // namespace

void bind_atoms(nb::module_& m) {
  nb::class_<AtomList>(m, "AtomList", "Atoms over one layout. Arrays are read in the narrowest type that holds them.")
      .def(
          "__init__",
          [](AtomList* self, const Vector<std::uint32_t>& count, const Vector<std::uint32_t>& cell, const Vector<double>& weight,
             const Vector<std::uint8_t>& operation, const Vector<std::int64_t>& bias,
             const Windows& window) { new (self) AtomList(to_atoms(count, cell, weight, operation, bias, window)); },
          "count"_a, "cell"_a, "weight"_a, "operation"_a, "bias"_a, "window"_a)
      .def("check", &AtomList::check, "layout"_a, "real"_a, "Raise ValueError unless the atoms make sense over such rows.")
      .def("__len__", &AtomList::size)
      .def_prop_ro("count", &counts_of, nb::rv_policy::automatic, "The number of terms of each atom.")
      .def_prop_ro(
          "cell", [](const AtomList& self) { return to_narrow_numpy(self.cell); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "weight", [](const AtomList& self) { return to_narrow_numpy(self.weight); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "operation",
          [](const AtomList& self) {
            std::vector<std::uint8_t> operation;
            for (const Operation& o : self.operation) operation.push_back(static_cast<std::uint8_t>(o.op));
            return to_numpy(std::move(operation));
          },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "bias",
          [](const AtomList& self) {
            std::vector<std::int64_t> bias;
            for (const Operation& o : self.operation) bias.push_back(o.bias);
            return to_narrow_numpy(bias);
          },
          nb::rv_policy::automatic)
      .def_prop_ro("window", &windows_of, nb::rv_policy::automatic,
                   "Counts and strides of two windows for each atom, as one row of numbers.");

  nb::class_<AtomValues>(m, "AtomValues", "Computes the values of atoms for samples, times a scale for each atom.")
      .def(
          "__init__",
          [](AtomValues* self, const RowLayout& layout, const AtomList& atoms, const Vector<double>& scale, bool real) {
            new (self) AtomValues(layout, atoms, to_vector(scale), real);
          },
          "layout"_a, "atoms"_a, "scale"_a, "real"_a)
      .def("transform", &transform<float>, "x"_a, "cell_type"_a, "shift"_a, "limit"_a, "gaps"_a, nb::arg("out").noconvert())
      .def("transform", &transform<double>, "x"_a, "cell_type"_a, "shift"_a, "limit"_a, "gaps"_a, nb::arg("out").noconvert(),
           "Write the values of each sample's atoms.");

  m.def(
      "draw_atoms",
      [](const Table& table, const Dictionary& dictionary, const Vector<std::uint32_t>& rows, std::uint64_t key,
         std::size_t count, bool one_node) {
        const std::vector<std::uint32_t> biased = to_vector(rows);
        nb::gil_scoped_release release;
        return draw_atoms(table, dictionary, biased, key, count, one_node);
      },
      "table"_a, "dictionary"_a, "rows"_a, "key"_a, "count"_a, "one_node"_a = false,
      "Draw atoms independently of each other, or as one node draws them, with biases from rows of the table.");
}
