// nanobind glue and nothing else: arrays in, arrays out, the interpreter released while the core works.
#include "glue.hpp"

NB_MODULE(MORFOREST_MODULE, m) {
  m.doc() = "The compiled core of morforest. Private: no promise of stability.";
  nb::set_leak_warnings(false);  // forests that are still held when the interpreter ends are no leak
  m.def("instruction_set", &instruction_set, "The best build of the core that this processor runs.");
  m.def("derive", [](std::uint64_t key, std::uint64_t index) { return derive(key, index); }, "key"_a, "index"_a);
  m.def("tree_key", &tree_key, "seed"_a, "tree"_a);
  m.def(
      "stream",
      [](std::uint64_t key, std::size_t n) {
        std::vector<std::uint64_t> numbers(n);
        Stream stream(key);
        for (auto& x : numbers) x = stream.next();
        return to_numpy(std::move(numbers));
      },
      "key"_a, "n"_a, "The first n numbers of a key's stream.");
  m.def(
      "draw_bags",
      [](const Vector<std::uint64_t>& keys, std::uint64_t draws, const Vector<std::uint32_t>& order, const Vector<std::uint64_t>& cumulative) {
        // With unit weights a draw is an index; else it is looked up in the cumulated weights.
        std::vector<std::uint32_t> count(keys.size() * order.size(), 0);
        {
          nb::gil_scoped_release release;
          const std::uint64_t* cumulated = cumulative.data();
          const std::uint64_t total = cumulative.size() > 0 ? cumulated[cumulative.size() - 1] : order.size();
          for (std::size_t tree = 0; tree < keys.size(); ++tree) {
            Stream stream(derive(keys.data()[tree], Purpose::bag));
            std::uint32_t* const of_tree = count.data() + tree * order.size();
            for (std::uint64_t i = 0; i < draws; ++i) {
              const std::uint64_t x = stream.below(total);
              const std::size_t place =
                  cumulative.size() > 0 ? std::upper_bound(cumulated, cumulated + cumulative.size(), x) - cumulated : x;
              ++of_tree[order.data()[place]];
            }
          }
        }
        return to_numpy(std::move(count));
      },
      "tree_keys"_a, "draws"_a, "order"_a, "cumulative"_a,
      "How often each row is drawn, for one tree after another; `order` is the canonical one.");

  nb::class_<Dictionary>(m, "Dictionary")
      .def(
          "__init__",
          [](Dictionary* self, std::vector<std::int64_t> shape, bool direct, const Vector<double>& sources) {
            new (self) Dictionary(std::move(shape), direct, to_sources(sources));
          },
          "shape"_a, "direct"_a, "sources"_a)
      .def("set_sources", &Dictionary::set_sources, "numbers"_a, "Say which sources the components added from now on look at.")
      .def(
          "set_pool",
          [](Dictionary& self, const std::vector<std::string>& ops, std::vector<std::int64_t> windows, const Vector<std::uint64_t>& sizes) {
            Pool pool{{}, std::move(windows), to_vector(sizes)};
            for (const std::string& name : ops) pool.ops.push_back(parse_op(name));
            self.set_pool(std::move(pool));
          },
          "ops"_a, "windows"_a, "sizes"_a, "Say how the atoms of components added from now on are pooled.")
      .def("add_axis", &Dictionary::add_axis)
      .def(
          "add_finite",
          [](Dictionary& self, const Vector<std::uint32_t>& begin, const Vector<std::uint32_t>& cell,
             const Vector<double>& weight, const Vector<std::uint64_t>& cumulative) {
            AtomList atoms;
            atoms.begin = to_vector(begin);
            atoms.cell = to_vector(cell);
            atoms.weight = to_vector(weight);
            if (atoms.begin.empty() || atoms.begin.front() != 0 || atoms.begin.back() != atoms.cell.size() ||
                atoms.cell.size() != atoms.weight.size() || !std::is_sorted(atoms.begin.begin(), atoms.begin.end()))
              throw std::invalid_argument("atoms are not a sparse matrix");
            self.add_finite(std::move(atoms), to_vector(cumulative));
          },
          "begin"_a, "cell"_a, "weight"_a, "cumulative"_a)
      .def(
          "guide", [](Dictionary& self, const Vector<std::uint64_t>& features) { self.guide(to_vector(features)); }, "features"_a)
      .def(
          "add_sparse",
          [](Dictionary& self, const Vector<std::uint64_t>& cumulative) { self.add_sparse(to_vector(cumulative)); },
          "cumulative"_a)
      .def(
          "add_patch",
          [](Dictionary& self, const std::vector<std::int64_t>& min_size, const std::vector<std::int64_t>& max_size,
             const std::vector<std::vector<std::uint64_t>>& sizes, const std::vector<std::string>& boundary,
             const std::vector<bool>& contiguous) {
            std::vector<Boundary> boundaries;
            for (const std::string& name : boundary)
              boundaries.push_back(parse<Boundary>(
                  name, {{"zero", Boundary::zero}, {"inside", Boundary::inside}, {"wrap", Boundary::wrap}}));
            self.add_patch({min_size, max_size, sizes}, boundaries, contiguous);
          },
          "min_size"_a, "max_size"_a, "sizes"_a, "boundary"_a, "contiguous"_a)
      .def(
          "add_haar",
          [](Dictionary& self, const std::vector<std::int64_t>& min_size, const std::vector<std::int64_t>& max_size,
             const std::vector<std::vector<std::uint64_t>>& sizes, const std::vector<bool>& lobed, const std::vector<std::string>& lobes) {
            std::vector<Lobes> kinds;
            for (const std::string& name : lobes)
              kinds.push_back(parse<Lobes>(name, {{"two", Lobes::two}, {"three", Lobes::three}, {"square", Lobes::square}}));
            self.add_haar({min_size, max_size, sizes}, lobed, std::move(kinds));
          },
          "min_size"_a, "max_size"_a, "sizes"_a, "lobed"_a, "lobes"_a)
      .def(
          "add_pair",
          [](Dictionary& self, const std::vector<std::int64_t>& min_size, const std::vector<std::int64_t>& max_size,
             const std::vector<std::vector<std::uint64_t>>& sizes, const std::vector<std::int64_t>& reach) {
            self.add_pair({min_size, max_size, sizes}, reach);
          },
          "min_size"_a, "max_size"_a, "sizes"_a, "reach"_a)
      .def(
          "add_kernels",
          [](Dictionary& self, const std::vector<std::vector<std::int64_t>>& extent, const std::vector<std::vector<std::uint32_t>>& cell,
             const std::vector<std::vector<std::int32_t>>& weight, const std::vector<std::vector<std::uint64_t>>& dilations,
             std::int64_t dilation, bool random_signs, std::size_t rivals) {
            if (cell.size() != extent.size() || weight.size() != extent.size() || dilations.size() != extent.size())
              throw std::invalid_argument("kernels need an extent, cells, weights and dilations each");
            std::vector<Kernel> kernels;
            for (std::size_t k = 0; k < extent.size(); ++k) {
              if (cell[k].size() != weight[k].size()) throw std::invalid_argument("a kernel needs a weight a cell");
              Kernel kernel{extent[k], {}, dilations[k], dilation};
              for (std::size_t t = 0; t < cell[k].size(); ++t) kernel.taps.push_back({cell[k][t], weight[k][t]});
              kernels.push_back(std::move(kernel));
            }
            self.add_kernels(std::move(kernels), random_signs, rivals);
          },
          "extent"_a, "cell"_a, "weight"_a, "dilations"_a, "dilation"_a, "random_signs"_a, "rivals"_a)
      .def(
          "add_variance",
          [](Dictionary& self, const std::vector<std::int64_t>& min_size, const std::vector<std::int64_t>& max_size,
             const std::vector<std::vector<std::uint64_t>>& sizes) { self.add_variance({min_size, max_size, sizes}); },
          "min_size"_a, "max_size"_a, "sizes"_a)
      .def(
          "set_cumulative",
          [](Dictionary& self, const Vector<std::uint64_t>& cumulative) { self.set_cumulative(to_vector(cumulative)); },
          "cumulative"_a)
      .def("set_subset", &Dictionary::set_subset, "atoms"_a, "Say how many atoms a tree draws for all of its nodes.")
      .def_prop_ro("view_sources", [](const Dictionary& self) { return to_numpy(to_numbers(self.view_sources())); },
                   nb::rv_policy::automatic, "The source of each view, five numbers each.")
      .def_prop_ro("views", [](const Dictionary& self) { return to_numpy(std::vector<std::uint32_t>(self.views())); },
                   nb::rv_policy::automatic)
      .def_prop_ro("pooled_views", [](const Dictionary& self) { return to_numpy(to_numbers(self.pooled_views())); },
                   nb::rv_policy::automatic, "Seven numbers a view.")
      .def_prop_ro("cells", &Dictionary::cells)
      .def_prop_ro("has_forms", &Dictionary::has_forms, "Whether some atoms are not linear.")
      .def_prop_ro("narrow_patches", &suits_byte_patches, "Whether a table of type bytes serves this dictionary.")
      .def(
          "sample",
          [](const Dictionary& self, std::uint64_t key, std::size_t n, bool one_node) {
            AtomList atoms;
            Sampler sampler(self);
            Stream stream(key);
            for (std::size_t i = 0; i < n; ++i) {
              if (!one_node) sampler.begin_node();
              sampler.draw(stream, 1, atoms);
            }
            atoms.drop_rivals();
            return nb::make_tuple(to_numpy(std::move(atoms.begin)), to_numpy(std::move(atoms.cell)),
                                  to_numpy(std::move(atoms.weight)));
          },
          "key"_a, "n"_a, "one_node"_a = true, "Atoms as (begin, cell, weight), as one node would draw them, without their rivals.");

  nb::class_<Table>(m, "Table")
      .def(
          "__init__",
          [](Table* self, std::size_t rows, const Dictionary& dictionary, const std::string& cell_type, bool tiles) {
            if (rows >= (std::size_t{1} << 31)) throw std::invalid_argument("more than 2^31 rows");
            const CellType type = parse_cell_type(cell_type);
            if (type == CellType::bytes && !suits_byte_patches(dictionary))
              throw std::invalid_argument("tables of bytes need a dictionary of narrow patches");
            new (self) Table(rows, dictionary, type, tiles ? Layout::tiles : Layout::rows);
          },
          "rows"_a, "dictionary"_a, "cell_type"_a, "tiles"_a = false)
      .def(
          "fill",
          [](Table& self, const Samples& x, std::size_t first, int shift, double limit) {
            require_features(x, self.features());
            if (first > self.rows() || x.shape(0) > self.rows() - first) throw std::invalid_argument("no such rows");
            nb::gil_scoped_release release;
            with_samples(x, [&](const auto* data) { self.fill(data, first, x.shape(0), Quantiser(shift, limit)); });
          },
          "x"_a, "first"_a, "shift"_a, "limit"_a, "Write samples to the rows from `first` on.")
      .def_prop_ro("rows", &Table::rows)
      .def_prop_ro("features", &Table::features)
      .def_prop_ro(
          "hash",
          [](const Table& self) { return nb::ndarray<nb::numpy, const std::uint64_t, nb::ndim<1>>(self.hash().data(), {self.rows()}); },
          nb::rv_policy::reference_internal, "A hash of each row's values; a view that keeps the table alive.");

  m.def(
      "hash_rows",
      [](const Samples& x) {
        // Of the values, whatever their type and the order of the rows.
        const Dictionary dictionary = [&] {
          Dictionary d({static_cast<std::int64_t>(x.shape(1))}, true);
          d.add_axis();
          return d;
        }();
        const RowLayout layout(dictionary);
        std::vector<std::uint64_t> hash(x.shape(0));
        {
          nb::gil_scoped_release release;
          std::vector<double> row(layout.cells());
          with_samples(x, [&](const auto* data) {
            for (std::size_t i = 0; i < hash.size(); ++i)
              hash[i] = fill_row(data + i * x.shape(1), layout, Quantiser(0, 0.0), row.data());
          });
        }
        return to_numpy(std::move(hash));
      },
      "x"_a, "A hash of each row's values.");

  m.def(
      "draw_subsets",
      [](const Vector<std::uint64_t>& keys, std::uint64_t draws, const Vector<std::uint32_t>& order, const Vector<std::uint32_t>& copies) {
        // Without replacement, from the rows in canonical order, each as often as there are copies of it.
        const std::uint32_t* const of_row = copies.data();
        if (copies.size() != order.size()) throw std::invalid_argument("copies need one entry a row");
        std::uint64_t total = 0;
        for (std::size_t i = 0; i < copies.size(); ++i) total += of_row[i];
        if (draws > total) throw std::invalid_argument("more draws than samples");
        std::vector<std::uint32_t> count(keys.size() * order.size(), 0);
        {
          nb::gil_scoped_release release;
          for (std::size_t tree = 0; tree < keys.size(); ++tree) {
            Stream stream(derive(keys.data()[tree], Purpose::bag));
            std::uint32_t* const of_tree = count.data() + tree * order.size();
            std::uint64_t left = total, wanted = draws;
            for (std::size_t i = 0; i < order.size() && wanted > 0; ++i)
              for (std::uint32_t copy = 0; copy < of_row[order.data()[i]] && wanted > 0; ++copy)
                if (stream.below(left--) < wanted) {
                  ++of_tree[order.data()[i]];
                  --wanted;
                }
          }
        }
        return to_numpy(std::move(count));
      },
      "tree_keys"_a, "draws"_a, "order"_a, "copies"_a, "How often each row is drawn, without replacement.");

  nb::class_<Gradients>(m, "Gradients")
      .def(nb::init<std::size_t, std::size_t>(), "rows"_a, "outputs"_a)
      .def(
          "set",
          [](Gradients& self, const Matrix& gradient, const Matrix& curvature) {
            require_scores(gradient, self.rows(), self.outputs());
            require_scores(curvature, self.rows(), self.outputs());
            nb::gil_scoped_release release;
            self.set(gradient.data(), curvature.data());
          },
          "gradient"_a, "curvature"_a);

  m.def(
      "exp",
      [](const Vector<double>& x) {
        std::vector<double> out(x.size());
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = exact_exp(x.data()[i]);
        return to_numpy(std::move(out));
      },
      "x"_a, "The same on every platform.");
  m.def(
      "log",
      [](const Vector<double>& x) {
        std::vector<double> out(x.size());
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = exact_log2(x.data()[i]) * 0.6931471805599453;
        return to_numpy(std::move(out));
      },
      "x"_a, "Of positive numbers, the same on every platform.");
  m.def(
      "softmax",
      [](const Matrix& scores, const MutableMatrix& out) {
        require_scores(out, scores.shape(0), scores.shape(1));
        nb::gil_scoped_release release;
        for (std::size_t row = 0; row < scores.shape(0); ++row)
          softmax(scores.data() + row * scores.shape(1), scores.shape(1), out.data() + row * scores.shape(1));
      },
      "scores"_a, nb::arg("out").noconvert());
  m.def(
      "logistic",
      [](const Matrix& scores, const MutableMatrix& out) {
        require_scores(out, scores.shape(0), scores.shape(1));
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < scores.size(); ++i) out.data()[i] = logistic(scores.data()[i]);
      },
      "scores"_a, nb::arg("out").noconvert());

  m.def(
      "uniforms",
      [](std::uint64_t key, const Vector<std::uint32_t>& numbers, std::size_t count, const MutableMatrix& out) {
        require_scores(out, numbers.size(), count);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          Stream stream(derive(derive(key, Purpose::copy), numbers.data()[i]));
          for (std::size_t k = 0; k < count; ++k) out.data()[i * count + k] = stream.unit();
        }
      },
      "key"_a, "numbers"_a, "count"_a, nb::arg("out").noconvert(), "Uniform numbers in [0, 1) for each of some numbered rows.");
  m.def(
      "warp_images",
      [](const Matrix& x, std::size_t height, std::size_t width, std::size_t stride, const Matrix& parameters, const MutableMatrix& out) {
        // A parameter row is angle, scale, horizontal shear, shift down and right. Planes of height x width x stride follow one another.
        require_scores(out, x.shape(0), x.shape(1));
        require_scores(parameters, x.shape(0), 5);
        if (height * width * stride == 0 || x.shape(1) % (height * width * stride) != 0) throw std::invalid_argument("no images of that shape");
        nb::gil_scoped_release release;
        for (std::size_t row = 0; row < x.shape(0); ++row) {
          const double* const p = parameters.data() + row * 5;
          const double sine = exact_sine(p[0]), cosine = exact_cosine(p[0]), s = p[1];
          const Affine affine{s * cosine, s * -sine, s * (sine + p[2] * cosine), s * (cosine - p[2] * sine), p[3], p[4]};
          for (std::size_t plane = 0; plane < x.shape(1); plane += height * width * stride)
            for (std::size_t k = 0; k < stride; ++k)
              warp_plane(x.data() + row * x.shape(1) + plane + k, height, width, stride, affine, out.data() + row * x.shape(1) + plane + k);
        }
      },
      "x"_a, "height"_a, "width"_a, "stride"_a, "parameters"_a, nb::arg("out").noconvert());
  m.def(
      "warp_series",
      [](const Matrix& x, std::size_t length, std::size_t stride, const Matrix& parameters, bool around, const MutableMatrix& out) {
        // A parameter row is stretch, wave, move and amplitude.
        require_scores(out, x.shape(0), x.shape(1));
        require_scores(parameters, x.shape(0), 4);
        if (length * stride == 0 || x.shape(1) % (length * stride) != 0) throw std::invalid_argument("no series of that length");
        nb::gil_scoped_release release;
        for (std::size_t row = 0; row < x.shape(0); ++row) {
          const double* const p = parameters.data() + row * 4;
          for (std::size_t sensor = 0; sensor < x.shape(1); sensor += length * stride)
            for (std::size_t k = 0; k < stride; ++k)
              warp_series(x.data() + row * x.shape(1) + sensor + k, length, stride, {p[0], p[1], p[2], p[3]}, around,
                          out.data() + row * x.shape(1) + sensor + k);
        }
      },
      "x"_a, "length"_a, "stride"_a, "parameters"_a, "around"_a, nb::arg("out").noconvert());
  m.def(
      "draw_atoms",
      [](const Table& table, const Dictionary& dictionary, const Vector<std::uint32_t>& order, std::uint64_t key, std::size_t n, bool apart) {
        if (!table.suits(dictionary)) throw std::invalid_argument("the table was made for another dictionary");
        for (std::size_t i = 0; i < order.size(); ++i)
          if (order.data()[i] >= table.rows()) throw std::invalid_argument("no such row");
        AtomList atoms;
        {
          nb::gil_scoped_release release;
          Sampler sampler(dictionary);
          Stream stream(key);
          sampler.begin_node();
          for (std::size_t i = 0; i < n; ++i) {
            if (!apart) sampler.begin_node();
            sampler.draw(stream, 1, atoms);
          }
          const std::vector<std::uint32_t> once(order.size(), 1);
          if (dictionary.has_biases())
            with_cell_type(table.type(), [&](auto cell) {
              PooledProjector<decltype(cell)>(table).set_biases(order.data(), once.data(), order.size(), atoms, 0);
            });
        }
        nb::dict d;
        std::vector<std::uint8_t> op;
        std::vector<std::int64_t> bias;
        std::vector<std::uint32_t> window;
        for (const Form& form : atoms.form) {
          op.push_back(static_cast<std::uint8_t>(form.op));
          bias.push_back(form.bias);
          for (const Window& w : form.window) window.insert(window.end(), {w.count, w.stride});
        }
        d["begin"] = to_numpy(std::move(atoms.begin));
        d["cell"] = to_numpy(std::move(atoms.cell));
        d["weight"] = to_numpy(std::move(atoms.weight));
        d["form_op"] = to_numpy(std::move(op));
        d["form_bias"] = to_numpy(std::move(bias));
        d["form_window"] = to_numpy(std::move(window));
        return d;
      },
      "table"_a, "dictionary"_a, "order"_a, "key"_a, "n"_a, "apart"_a = false,
      "Atoms independent of each other, or `apart` as those of a node, with biases from rows of the table.");

  nb::class_<AtomFeatures>(m, "AtomFeatures")
      .def(
          "__init__",
          [](AtomFeatures* self, std::vector<std::int64_t> shape, const Vector<std::uint32_t>& views, const Vector<double>& sources,
             const Vector<double>& pooled_views, const Vector<std::uint32_t>& begin, const Vector<std::uint32_t>& cell,
             const Vector<double>& weight, const Vector<std::uint8_t>& form_op, const Vector<std::int64_t>& form_bias,
             const Vector<std::uint32_t>& form_window, const Vector<double>& scale) {
            AtomList atoms;
            atoms.begin = to_vector(begin);
            atoms.cell = to_vector(cell);
            atoms.weight = to_vector(weight);
            if (form_bias.size() != form_op.size() || form_window.size() != 4 * form_op.size()) throw std::invalid_argument("damaged atoms");
            for (std::size_t i = 0; i < form_op.size(); ++i) {
              if (form_op.data()[i] > last_op) throw std::invalid_argument("damaged atoms");
              const std::uint32_t* w = form_window.data() + 4 * i;
              atoms.form.push_back({.op = static_cast<Op>(form_op.data()[i]), .window = {{w[0], w[1]}, {w[2], w[3]}}, .bias = form_bias.data()[i]});
            }
            RowLayout layout(std::move(shape), to_vector(views), to_sources(sources), to_pooled_views(pooled_views));
            new (self) AtomFeatures(std::move(layout), std::move(atoms), to_vector(scale));
          },
          "shape"_a, "views"_a, "sources"_a, "pooled_views"_a, "begin"_a, "cell"_a, "weight"_a, "form_op"_a, "form_bias"_a,
          "form_window"_a, "scale"_a)
      .def("transform", &transform_atoms<float>, "x"_a, "cell_type"_a, "shift"_a, "limit"_a, nb::arg("out").noconvert())
      .def("transform", &transform_atoms<double>, "x"_a, "cell_type"_a, "shift"_a, "limit"_a, nb::arg("out").noconvert());

  nb::class_<StopFlag>(m, "StopFlag").def(nb::init<>()).def("set", [](StopFlag& self) { self.set = true; });

  nb::class_<Subset>(m, "Subset")
      .def(
          "__init__",
          [](Subset* self, const Table& table, const Dictionary& dictionary) {
            if (!table.suits(dictionary)) throw std::invalid_argument("the table was made for another dictionary");
            if (dictionary.subset() == 0) throw std::invalid_argument("the dictionary has no subsets");
            new (self) Subset(table, dictionary);
          },
          "table"_a, "dictionary"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def(
          "draw",
          [](Subset& self, std::uint64_t key, const Vector<std::uint32_t>& count, const Vector<std::uint32_t>& order) {
            const std::size_t rows = self.rows();
            if (count.size() != rows || order.size() != rows) throw std::invalid_argument("counts and order need one entry a row");
            require_rows(order, rows);
            check_bag({count.data(), count.data(), rows}, nullptr, 0);
            self.draw(key, count.data(), order.data());
            return self.atoms().size();
          },
          "key"_a, "count"_a, "order"_a, "Draw atoms, whose values must then be computed, and return their number.")
      .def(
          "fill",
          [](Subset& self, std::size_t first, std::size_t count) {
            if (first > self.atoms().size() || count > self.atoms().size() - first) throw std::invalid_argument("no such atoms");
            nb::gil_scoped_release release;
            std::vector<std::uint32_t> rows(self.rows());
            std::iota(rows.begin(), rows.end(), 0u);
            self.fill(first, count, rows.data(), rows.size(), [](std::size_t) {});
          },
          "first"_a, "count"_a, "Compute some atoms for all rows. Threads may fill different atoms.")
      .def(
          "find_leaves",
          [](const Subset& self, const Vector<std::int32_t>& next, const Vector<std::int64_t>& threshold,
             const Vector<double>& real_threshold, const Vector<std::uint32_t>& picked) {
            if (!self.filled()) throw std::invalid_argument("the subset has no values yet");
            const bool real = self.type() == CellType::f64;
            if ((real ? real_threshold.size() : threshold.size()) != next.size()) throw std::invalid_argument("thresholds need one entry a node");
            std::vector<std::int32_t> leaf(self.rows());
            {
              nb::gil_scoped_release release;
              const auto find = [&](const auto* thresholds) {
                self.find_leaves(next.data(), thresholds, next.size(), picked.data(), picked.size(), leaf.data());
              };
              if (real) find(real_threshold.data());
              else find(threshold.data());
            }
            return to_numpy(std::move(leaf));
          },
          "next"_a, "threshold"_a, "real_threshold"_a, "picked"_a, "The leaf of each row in a tree, of whose splits each has picked an atom.");

  m.def(
      "grow_trees",
      [](const Table& table, const Dictionary& dictionary, const Vector<std::uint64_t>& keys,
         const Vector<std::uint32_t>& count, const Vector<std::uint32_t>& weight, const Vector<std::uint32_t>& order,
         const Vector<std::uint32_t>& classes, std::size_t class_count,
         const Vector<std::int64_t>& values, int bits, const std::string& criterion, const std::string& splitter,
         std::size_t candidates, std::uint64_t max_depth, std::uint64_t min_samples_split, std::uint64_t min_samples_leaf,
         double min_weight_fraction_leaf, double min_impurity_decrease, std::uint64_t max_leaf_nodes, const StopFlag& stop,
         const Gradients* gradients, double l2, double learning_rate, double largest_leaf, const Subset* subset,
         std::size_t threads, const std::vector<double>& penalties) {
        GrowthRule rule;
        rule.criterion = parse<CriterionKind>(criterion, {{"gini", CriterionKind::gini},
                                                          {"entropy", CriterionKind::entropy},
                                                          {"squared_error", CriterionKind::squared_error},
                                                          {"poisson", CriterionKind::poisson},
                                                          {"absolute_error", CriterionKind::absolute_error},
                                                          {"gradient", CriterionKind::gradient}});
        rule.splitter = parse<Splitter>(splitter, {{"exact", Splitter::exact}, {"histogram", Splitter::histogram}, {"random", Splitter::random}});
        rule.candidates = candidates;
        rule.max_depth = max_depth;
        rule.min_samples_split = min_samples_split;
        rule.min_samples_leaf = min_samples_leaf;
        rule.min_weight_fraction_leaf = min_weight_fraction_leaf;
        rule.min_impurity_decrease = min_impurity_decrease;
        rule.max_leaf_nodes = max_leaf_nodes;
        rule.threads = threads;
        rule.penalties = penalties;
        for (const double penalty : penalties)
          if (!(penalty > 0.0 && penalty < infinity)) throw std::invalid_argument("penalties must be positive");
        if (!penalties.empty() && (subset != nullptr || dictionary.subset() > 0)) throw std::invalid_argument("directions need plain columns");
        const bool classification = rule.criterion == CriterionKind::gini || rule.criterion == CriterionKind::entropy;
        const std::size_t rows = table.rows(), trees = keys.size();
        if (trees == 0 || count.size() != trees * rows || weight.size() != trees * rows)
          throw std::invalid_argument("counts and weights need one entry a row and tree");
        const bool boosted = rule.criterion == CriterionKind::gradient;
        if (boosted && gradients == nullptr) throw std::invalid_argument("boosting needs gradients");
        if ((boosted ? gradients->rows() : classification ? classes.size() : values.size()) != rows) throw std::invalid_argument("targets need one entry a row");
        if (order.size() != rows) throw std::invalid_argument("the order needs one entry a row");
        require_rows(order, rows);
        if (subset != nullptr && subset->rows() != rows) throw std::invalid_argument("the subset was made for other rows");
        if (subset != nullptr && !subset->filled()) throw std::invalid_argument("the subset has no values yet");
        if (!table.suits(dictionary)) throw std::invalid_argument("the table was made for another dictionary");
        std::vector<Seedling> seedlings;
        for (std::size_t i = 0; i < trees; ++i) {
          const Bag bag{count.data() + i * rows, weight.data() + i * rows, rows, order.data()};
          check_bag(bag, classification ? classes.data() : nullptr, class_count);
          seedlings.push_back({bag, derive(keys.data()[i], Purpose::root)});
        }
        const Targets targets{classes.data(), class_count, values.data(), bits, gradients, {l2, learning_rate, largest_leaf}};
        Trees grown;
        {
          nb::gil_scoped_release release;
          Watch watch(stop);
          if (subset != nullptr) grow_on_subset(*subset, targets, seedlings, rule, std::ref(watch), grown);
          else grow_trees(table, dictionary, targets, seedlings, rule, std::ref(watch), grown);
        }
        std::vector<std::uint32_t> picked = std::move(grown.picked);
        nb::dict trees_of = to_dict(std::move(grown));
        if (subset != nullptr) trees_of["picked"] = to_numpy(std::move(picked));
        return trees_of;
      },
      "table"_a, "dictionary"_a, "tree_keys"_a, "count"_a, "weight"_a, "order"_a, "classes"_a, "class_count"_a, "values"_a, "bits"_a,
      "criterion"_a, "splitter"_a, "candidates"_a, "max_depth"_a, "min_samples_split"_a, "min_samples_leaf"_a,
      "min_weight_fraction_leaf"_a, "min_impurity_decrease"_a, "max_leaf_nodes"_a, "stop"_a,
      "gradients"_a = nb::none(), "l2"_a = 0.0, "learning_rate"_a = 1.0, "largest_leaf"_a = infinity, "subset"_a = nb::none(), "threads"_a = 1,
      "penalties"_a = std::vector<double>{},
      "Trees behind one another, as a dictionary of flat arrays: children count within a tree, payloads within the dictionary. "
      "With a subset its atoms are the candidates, and `picked` says which of them each split has.");

  m.def(
      "depth_first_next",
      [](const Vector<std::int64_t>& tree_begin, const Vector<std::uint8_t>& split, const Vector<std::uint32_t>& leaf_kind,
         std::size_t class_count) {
        return to_numpy(depth_first_next(to_vector(tree_begin), to_vector(split), to_vector(leaf_kind), class_count));
      },
      "tree_begin"_a, "split"_a, "leaf_kind"_a, "class_count"_a, "The children and payloads of depth-first trees.");
  m.def(
      "node_weights",
      [](const Vector<std::int64_t>& tree_begin, const Vector<std::int32_t>& next, const Vector<std::uint32_t>& leaf_weight) {
        return to_numpy(node_weights(to_vector(tree_begin), to_vector(next), to_vector(leaf_weight)));
      },
      "tree_begin"_a, "next"_a, "leaf_weight"_a, "The weights of all nodes, from those of the leaves.");

  nb::class_<Forest>(m, "Forest")
      .def(
          "__init__",
          [](Forest* self, std::vector<std::int64_t> shape, const Vector<std::uint32_t>& views, const Vector<double>& sources,
             const Vector<double>& pooled_views,
             const Vector<std::int64_t>& tree_begin, const Vector<std::int32_t>& next,
             const Vector<std::int64_t>& threshold, const Vector<double>& real_threshold,
             const Vector<std::uint32_t>& term_count, const Vector<std::uint32_t>& term_cell,
             const Vector<double>& term_weight, std::size_t class_count, const Vector<std::uint32_t>& distribution_size,
             const Vector<std::uint32_t>& distribution_class, const Vector<std::uint32_t>& distribution_weight,
             const Vector<double>& leaf_value, std::size_t values, const Vector<std::uint8_t>& form_op, const Vector<std::int64_t>& form_bias,
             const Vector<std::uint32_t>& form_window) {
            ForestArrays arrays{to_vector(tree_begin), to_vector(next), to_vector(threshold), to_vector(real_threshold),
                                to_vector(term_count), to_vector(term_cell), to_vector(term_weight), class_count,
                                to_vector(distribution_size), to_vector(distribution_class),
                                to_vector(distribution_weight), to_vector(leaf_value), values, to_vector(form_op), to_vector(form_bias),
                                to_vector(form_window)};
            new (self) Forest(RowLayout(std::move(shape), to_vector(views), to_sources(sources), to_pooled_views(pooled_views)), std::move(arrays));
          },
          "shape"_a, "views"_a, "sources"_a, "pooled_views"_a, "tree_begin"_a, "next"_a, "threshold"_a, "real_threshold"_a, "term_count"_a, "term_cell"_a,
          "term_weight"_a, "class_count"_a, "distribution_size"_a, "distribution_class"_a, "distribution_weight"_a,
          "leaf_value"_a, "values"_a, "form_op"_a, "form_bias"_a, "form_window"_a)
      .def_prop_ro("takes_bytes", &Forest::takes_bytes, "Whether samples of bytes may be passed as cells of type bytes.")
      .def(
          "predict",
          [](const Forest& self, const Samples& x, const std::string& cell_type, int shift, double limit, int extra_bits, bool mean,
             nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
            require_features(x, self.features());
            if (out.shape(0) != x.shape(0) || out.shape(1) != self.outputs()) throw std::invalid_argument("wrong output shape");
            const CellType type = parse_cell_type(cell_type);
            nb::gil_scoped_release release;
            with_samples(x, [&](const auto* data) {
              self.predict(data, x.shape(0), type, Quantiser(shift, limit), extra_bits, out.data(), mean);
            });
          },
          "x"_a, "cell_type"_a, "shift"_a, "limit"_a, "extra_bits"_a, "mean"_a, nb::arg("out").noconvert())
      .def(
          "apply",
          [](const Forest& self, const Samples& x, const std::string& cell_type, int shift, double limit, int extra_bits,
             nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
            require_features(x, self.features());
            if (out.shape(0) != x.shape(0) || out.shape(1) != self.trees()) throw std::invalid_argument("wrong output shape");
            const CellType type = parse_cell_type(cell_type);
            nb::gil_scoped_release release;
            with_samples(x, [&](const auto* data) {
              self.apply(data, x.shape(0), type, Quantiser(shift, limit), extra_bits, out.data());
            });
          },
          "x"_a, "cell_type"_a, "shift"_a, "limit"_a, "extra_bits"_a, nb::arg("out").noconvert())
      .def(
          "find_leaves",
          [](const Forest& self, std::size_t tree, const Table& table) {
            if (tree >= self.trees()) throw std::invalid_argument("no such tree");
            std::vector<std::int32_t> leaf(table.rows());
            {
              nb::gil_scoped_release release;
              self.find_leaves(tree, table, leaf.data());
            }
            return to_numpy(std::move(leaf));
          },
          "tree"_a, "table"_a, "The leaf of each row of a table, within the tree.")
      .def(
          "add_tree",
          [](const Forest& self, std::size_t tree, const Table& table, const Vector<std::uint32_t>& rows,
             nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
            if (tree >= self.trees() || out.shape(0) != table.rows() || out.shape(1) != self.outputs())
              throw std::invalid_argument("no such tree, or wrong output shape");
            for (std::size_t i = 0; i < rows.size(); ++i)
              if (rows.data()[i] >= table.rows()) throw std::invalid_argument("no such row");
            nb::gil_scoped_release release;
            self.add_tree(tree, table, rows.data(), rows.size(), out.data());
          },
          "tree"_a, "table"_a, "rows"_a, nb::arg("out").noconvert())
      .def(
          "add_trees",
          [](const Forest& self, const Table& table, std::size_t first, nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
            if (first > table.rows() || out.shape(0) > table.rows() - first || out.shape(1) != self.outputs())
              throw std::invalid_argument("no such rows, or wrong output shape");
            nb::gil_scoped_release release;
            self.add_trees(table, first, out.shape(0), out.data());
          },
          "table"_a, "first"_a, nb::arg("out").noconvert(), "Add the trees one after another for rows of a table from `first` on.")
      .def(
          "importances",
          [](const Forest& self, const Vector<double>& amount) {
            if (amount.size() != self.nodes()) throw std::invalid_argument("an amount a node is needed");
            std::vector<double> shared(static_cast<std::size_t>(self.features())), used(shared.size());
            {
              nb::gil_scoped_release release;
              self.add_importances(amount.data(), shared.data(), used.data());
            }
            return nb::make_tuple(to_numpy(std::move(shared)), to_numpy(std::move(used)));
          },
          "amount"_a, "Each node's amount, shared out among its atom's features; and how many atoms use each feature.")
      .def(
          "expect_roots",
          [](const Forest& self, const Vector<std::uint32_t>& weight) {
            if (weight.size() != self.nodes()) throw std::invalid_argument("a weight a node is needed");
            std::vector<double> sum(self.outputs());
            double largest;
            {
              nb::gil_scoped_release release;
              largest = self.expect_roots(weight.data(), sum.data());
            }
            return nb::make_tuple(to_numpy(std::move(sum)), largest);
          },
          "weight"_a, "The sum of the roots' expected predictions, and the largest sum of changes on a path.")
      .def(
          "attribute",
          [](const Forest& self, const nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& leaf,
             const Vector<std::uint32_t>& weight, int bits, double divisor,
             nb::ndarray<std::uint64_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> out) {
            if (weight.size() != self.nodes()) throw std::invalid_argument("a weight a node is needed");
            if (leaf.shape(1) != self.trees() || out.shape(0) != leaf.shape(0) || out.shape(2) != self.outputs() ||
                static_cast<std::int64_t>(out.shape(1)) != self.features())
              throw std::invalid_argument("wrong shape of leaves or output");
            for (std::size_t i = 0; i < leaf.size(); ++i)
              if (leaf.data()[i] < 0 || static_cast<std::size_t>(leaf.data()[i]) >= self.tree_size(i % self.trees()))
                throw std::invalid_argument("no such leaf");
            nb::gil_scoped_release release;
            self.attribute(leaf.data(), leaf.shape(0), weight.data(), bits, divisor, out.data());
          },
          "leaf"_a, "weight"_a, "bits"_a, "divisor"_a, nb::arg("out").noconvert());

  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Stopped&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
}
