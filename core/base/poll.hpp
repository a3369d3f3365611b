// How long work asks whether to go on.
#pragma once

#include <cstddef>
#include <functional>

namespace morf {

// Long work calls this every now and then, with the number of rows that it is about to pass. It may throw to give up.
using Poll = std::function<void(std::size_t rows)>;

}  // namespace morf
