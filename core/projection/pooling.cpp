#include "projection/pooling.hpp"

namespace morf {

template ValueOf<std::uint8_t> atom_value<std::uint8_t>(const std::uint8_t*, const std::uint32_t*, const double*, std::size_t,
                                                        const Operation&);
template ValueOf<std::uint16_t> atom_value<std::uint16_t>(const std::uint16_t*, const std::uint32_t*, const double*, std::size_t,
                                                          const Operation&);
template ValueOf<std::int16_t> atom_value<std::int16_t>(const std::int16_t*, const std::uint32_t*, const double*, std::size_t,
                                                        const Operation&);
template ValueOf<std::int32_t> atom_value<std::int32_t>(const std::int32_t*, const std::uint32_t*, const double*, std::size_t,
                                                        const Operation&);
template ValueOf<std::int64_t> atom_value<std::int64_t>(const std::int64_t*, const std::uint32_t*, const double*, std::size_t,
                                                        const Operation&);
template ValueOf<double> atom_value<double>(const double*, const std::uint32_t*, const double*, std::size_t, const Operation&);
template void respond<Into::place, std::uint8_t>(const std::uint8_t*, const std::uint32_t*, const double*, std::size_t,
                                                 std::size_t, std::size_t, std::uint8_t*);
template void respond<Into::place, std::uint16_t>(const std::uint16_t*, const std::uint32_t*, const double*, std::size_t,
                                                  std::size_t, std::size_t, std::uint16_t*);
template void respond<Into::place, std::int16_t>(const std::int16_t*, const std::uint32_t*, const double*, std::size_t,
                                                 std::size_t, std::size_t, std::int16_t*);
template void respond<Into::place, std::int32_t>(const std::int32_t*, const std::uint32_t*, const double*, std::size_t,
                                                 std::size_t, std::size_t, std::int32_t*);
template void respond<Into::place, std::int64_t>(const std::int64_t*, const std::uint32_t*, const double*, std::size_t,
                                                 std::size_t, std::size_t, std::int64_t*);
template class PooledProjector<std::uint8_t>;
template class PooledProjector<std::uint16_t>;
template class PooledProjector<std::int16_t>;
template class PooledProjector<std::int32_t>;
template class PooledProjector<std::int64_t>;
template class PooledProjector<double>;

}  // namespace morf
