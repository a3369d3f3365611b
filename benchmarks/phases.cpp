// Grows trees on images and times the parts of it, for phases.py to set beside what the machine can do.
//
//     phases WORK FILE ROWS TREES REPEATS
//
// FILE holds ROWS images of 28 x 28 bytes, then a byte for each one's class. One thread. Writes a line of CSV for each
// class of node sizes. A tree is a function of its key, so its repeats make the same calls in the same order, and the
// least time of each call is kept: what other programs take from the processor falls out.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "atoms/sampler.hpp"
#include "growth/bags.hpp"
#include "growth/grow.hpp"
#include "projection/with_projection.hpp"

using namespace morf;

namespace {

constexpr std::size_t side = 28, features = side * side, class_count = 10, candidates = 28;
constexpr int size_classes = 32;
constexpr std::uint64_t seed = 0;

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

// The least seconds of several runs.
template <class Run>
double least_seconds(int repeats, Run run) {
  double least = std::numeric_limits<double>::infinity();
  for (int r = 0; r < repeats; ++r) {
    const auto start = Clock::now();
    run();
    least = std::min(least, seconds_between(start, Clock::now()));
  }
  return least;
}

volatile std::uint64_t kept = 0;  // results go here, so that the compiler must compute them

// A call of the projection: the candidates of one node, unless it is too large for one go or draws again.
struct Call {
  std::size_t rows, atoms;
  double project;  // seconds
  double rest;     // from its end to the next call, or to the end of the tree
  double draw;     // the part of the rest in which its atoms were drawn; measured apart
};

// Passes everything on, and writes down how long that took.
template <class Value>
class TimedProjection final : public Projection<Value> {
 public:
  explicit TimedProjection(Projection<Value>& inner) : inner_(inner), ended_(Clock::now()) {}

  void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                  std::size_t atom_count, Value* values, std::size_t values_stride, Range<Value>* ranges) override {
    const auto start = Clock::now();
    end_rest(start);
    inner_(rows, row_count, atoms, first, atom_count, values, values_stride, ranges);
    ended_ = Clock::now();
    calls_.push_back({row_count, atom_count, seconds_between(start, ended_), 0.0, 0.0});
  }

  // Growing asks for another one per further thread, and there is none.
  std::unique_ptr<Projection<Value>> copy() const override { return inner_.copy(); }

  std::vector<Call> end_tree() {
    end_rest(Clock::now());
    if (!calls_.empty()) calls_.front().rest += before_;
    return std::move(calls_);
  }

 private:
  void end_rest(Clock::time_point now) { (calls_.empty() ? before_ : calls_.back().rest) = seconds_between(ended_, now); }

  Projection<Value>& inner_;
  Clock::time_point ended_;
  double before_ = 0.0;  // the first call
  std::vector<Call> calls_;
};

struct Work {
  Dictionary dictionary{{side, side}, false};
  CellType type;
};

std::optional<Work> make_work(std::string_view name) {
  const auto patches = [](std::int64_t rows, std::int64_t columns, CellType type) {
    Work work{.type = type};
    work.dictionary.add_patch({{2, 2}, {rows, columns}}, {Boundary::zero, Boundary::zero}, {true, true});
    return work;
  };
  if (name == "narrow-patches") return patches(2, 5, CellType::bytes);
  if (name == "wide-patches") return patches(14, 14, CellType::u16);
  if (name != "axis") return std::nullopt;
  Work work{.type = CellType::u8};
  work.dictionary.add_axis();
  return work;
}

// By content, as _bagging.py has it.
std::vector<std::uint32_t> canonical_order(const Table& table, const std::vector<std::uint32_t>& classes) {
  std::vector<std::uint32_t> order(table.rows());
  std::iota(order.begin(), order.end(), 0u);
  const auto place = [&](std::uint32_t row) { return std::tuple(table.hash()[row], classes[row], row); };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  return order;
}

// --- what the machine can do --------------------------------------------------------------------

// Seconds to read the cells of all rows once, in order.
double stream_table(const Table& table, std::size_t row_bytes, int repeats) {
  return least_seconds(repeats, [&] {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const auto* words = reinterpret_cast<const std::uint64_t*>(table.buffer().row(i));
      for (std::size_t w = 0; w < row_bytes / sizeof *words; ++w) sum += words[w];
    }
    kept = kept + sum;
  });
}

// Seconds a row and candidate of the projection where nothing waits for memory: few rows, over and over.
template <class Value>
double project_warm(Projection<Value>& projection, const Dictionary& dictionary, std::size_t row_bytes, int repeats) {
  constexpr std::size_t near_bytes = std::size_t{1} << 17;  // rows and values: within any second-level cache
  constexpr int nodes = 100, calls = 20;
  const std::size_t rows = near_bytes / (row_bytes + candidates * sizeof(Value)) / 8 * 8;
  std::vector<std::uint32_t> row(rows);
  std::iota(row.begin(), row.end(), 0u);
  std::vector<Value> values(rows * candidates);
  std::vector<Range<Value>> ranges(candidates);
  Sampler sampler(dictionary);
  Stream stream(seed);
  AtomList atoms;
  double total = 0.0;
  for (int node = 0; node < nodes; ++node) {
    sampler.begin_node();
    atoms.clear();
    sampler.draw(stream, candidates, atoms);
    const auto run = [&] { projection(row.data(), rows, atoms, 0, candidates, values.data(), rows, ranges.data()); };
    run();
    total += least_seconds(repeats, [&] {
      for (int c = 0; c < calls; ++c) run();
    });
    kept = kept + static_cast<std::uint64_t>(values[0]);
  }
  return total / (nodes * calls) / static_cast<double>(rows * candidates);
}

// --- what growing takes -------------------------------------------------------------------------

// Draws as many atoms as the calls had, because the engine's own draws cannot be told from what surrounds them.
void draw_again(const Dictionary& dictionary, std::vector<Call>& calls, int repeats) {
  Sampler sampler(dictionary);
  AtomList atoms;
  for (Call& call : calls) call.draw = std::numeric_limits<double>::infinity();
  for (int r = 0; r < repeats; ++r) {
    std::uint64_t key = seed;
    for (Call& call : calls) {
      const auto start = Clock::now();
      sampler.begin_node();
      atoms.clear();
      Stream stream(derive(key++, Purpose::left));
      sampler.draw(stream, call.atoms, atoms);
      call.draw = std::min(call.draw, seconds_between(start, Clock::now()));
      kept = kept + atoms.cell.back();
    }
  }
}

struct Grown {
  std::vector<Call> calls{};
  std::size_t nodes = 0;
  double wall = 0.0, cpu = 0.0;  // seconds of all repeats
};

template <class Value>
Grown grow_trees(Projection<Value>& projection, const Work& work, const Table& table, const std::vector<std::uint32_t>& classes,
                 std::uint64_t trees, int repeats) {
  Grown grown;
  const std::vector<std::uint32_t> order = canonical_order(table, classes);
  const Targets targets{.classes = classes, .class_count = class_count};
  const GrowthRule rule{.candidates = candidates};
  for (std::uint64_t tree = 0; tree < trees; ++tree) {
    const std::uint64_t key = tree_key(seed, tree);
    const std::vector<std::uint32_t> count = draw_bags({key}, order.size(), order, {}, [](std::size_t) {});
    std::vector<Call> least;
    for (int r = 0; r < repeats; ++r) {
      const auto start = Clock::now();
      const std::clock_t cpu = std::clock();
      TimedProjection<Value> timed(projection);
      Trees made;
      grow_tree<Value>(
          timed, work.dictionary, derive(key, Purpose::root), {count.data(), count.data(), count.size()}, targets, rule,
          [](std::size_t) {}, made);
      const std::vector<Call> calls = timed.end_tree();
      grown.cpu += static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
      grown.wall += seconds_between(start, Clock::now());
      if (r == 0) {
        least = calls;
        grown.nodes += made.next.size();
      }
      for (std::size_t i = 0; i < calls.size(); ++i) {
        least[i].project = std::min(least[i].project, calls[i].project);
        least[i].rest = std::min(least[i].rest, calls[i].rest);
      }
    }
    grown.calls.insert(grown.calls.end(), least.begin(), least.end());
  }
  return grown;
}

// --- the report ---------------------------------------------------------------------------------

template <class Value>
void report(Projection<Value>& projection, const Work& work, const Table& table, std::size_t row_bytes, double build,
            const std::vector<std::uint32_t>& classes, std::uint64_t trees, int repeats) {
  const double stream = stream_table(table, row_bytes, 5 * repeats);
  const double warm = project_warm(projection, work.dictionary, row_bytes, repeats);
  Grown grown = grow_trees(projection, work, table, classes, trees, repeats);
  draw_again(work.dictionary, grown.calls, repeats);
  const double clock = least_seconds(repeats,
                                     [] {
                                       for (int i = 0; i < 1000; ++i)
                                         kept = kept + static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
                                     }) /
                       1000;

  struct Sums {
    std::size_t calls = 0, row_visits = 0, atoms = 0, values = 0;
    double project = 0.0, draw = 0.0, rest = 0.0;
  };
  std::array<Sums, size_classes> by_size{};
  for (const Call& call : grown.calls) {
    int k = 0;
    while (call.rows >> (k + 1)) ++k;
    Sums& sums = by_size[static_cast<std::size_t>(k)];
    ++sums.calls;
    sums.row_visits += call.rows;
    sums.atoms += call.atoms;
    sums.values += call.rows * call.atoms;
    sums.project += call.project;
    sums.draw += call.draw;
    sums.rest += call.rest - call.draw;
  }
  std::printf(
      "rows,trees,repeats,nodes,row_bytes,table_s,stream_s,warm_ns,clock_ns,all_wall_s,all_cpu_s,"
      "smallest_node,calls,row_visits,atoms,values,project_s,draw_s,rest_s\n");
  for (std::size_t k = 0; k < by_size.size(); ++k) {
    const Sums& sums = by_size[k];
    if (sums.calls == 0) continue;
    std::printf("%zu,%llu,%d,%zu,%zu,%.6f,%.6f,%.5f,%.2f,%.4f,%.4f,%zu,%zu,%zu,%zu,%zu,%.6f,%.6f,%.6f\n", table.rows(),
                static_cast<unsigned long long>(trees), repeats, grown.nodes, row_bytes, build, stream, warm * 1e9, clock * 1e9,
                grown.wall, grown.cpu, std::size_t{1} << k, sums.calls, sums.row_visits, sums.atoms, sums.values, sums.project,
                sums.draw, sums.rest);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto work = make_work(argc == 6 ? argv[1] : "");
  if (!work) {
    std::fprintf(stderr, "usage: phases narrow-patches|wide-patches|axis FILE ROWS TREES REPEATS\n");
    return 2;
  }
  const std::size_t rows = std::strtoull(argv[3], nullptr, 10);
  const std::uint64_t trees = std::strtoull(argv[4], nullptr, 10);
  const int repeats = std::atoi(argv[5]);
  std::vector<std::uint8_t> bytes(rows * (features + 1));
  std::ifstream file(argv[2], std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()))) {
    std::fprintf(stderr, "%s holds fewer than %zu images and classes\n", argv[2], rows);
    return 1;
  }
  const std::vector<std::uint32_t> classes(bytes.begin() + static_cast<std::ptrdiff_t>(rows * features), bytes.end());

  std::unique_ptr<Table> table;
  const double build = least_seconds(repeats, [&] {
    table.reset();  // its memory is returned, and asked for again
    table = std::make_unique<Table>(Samples{bytes.data(), rows, features}, work->dictionary.layout(), work->type,
                                    Quantiser(0, 0x1.0p61));
  });
  const std::size_t cell_bytes = work->type == CellType::u16 ? 2 : 1;
  with_projection(*table, work->dictionary, [&]<class Value>(Projection<Value>& projection) {
    report(projection, *work, *table, table->cells() * cell_bytes, build, classes, trees, repeats);
  });
}
