// The module. It is compiled once for each build of the core, which differ in their names; the bindings are the same for all.
#include "python/glue.hpp"

namespace {

std::string instruction_set() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return "baseline";
}

}  // namespace

NB_MODULE(MORFOREST_MODULE, m) {
  m.doc() = "The compiled core of morforest. Private: no promise of stability.";
  nb::set_leak_warnings(false);  // forests that are still held when the interpreter ends are no leak
  m.def("instruction_set", &instruction_set, "Return the best build of the core that this processor runs.");
  bind_functions(m);
  bind_layout(m);
  bind_atoms(m);
  bind_dictionary(m);
  bind_table(m);
  bind_bags(m);
  bind_training(m);
  bind_trees(m);
  bind_forest(m);
  bind_leaf_samples(m);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Stopped&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
}
