#include "wire/wdp_crc.h"

#include <array>

namespace weft::wire {

Crc32c wdp_crc_of_header(Bytes header) {
  // The 16 common bytes in one run, so that a short header is two calls.
  std::array<std::byte, kWdpCrcOffset + 4> common{};
  std::memcpy(common.data(), header.data(), kWdpCrcOffset);
  Crc32c crc;
  crc.update(common);
  crc.update(header.subspan(common.size()));
  return crc;
}

}  // namespace weft::wire
