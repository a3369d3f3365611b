#include "projection/projector.hpp"

namespace morf {

template class Projector<std::uint8_t>;
template class Projector<std::uint16_t>;
template class Projector<std::int16_t>;
template class Projector<std::int32_t>;
template class Projector<std::int64_t>;
template class Projector<double>;

}  // namespace morf
