// CRC32C of WDP datagrams (spec/wdp 2.3): 4 bytes at offset 12 in every class, computed over the
// whole UDP payload with these bytes taken as zero, stored least significant byte first as MPA
// does. CTL and RDACK always carry it; their codecs compute and check it. Data carry it where F_CRC
// is set; the functions here are for whoever moves the payload, which is seldom in one piece.
#pragma once

#include "base/bytes.h"
#include "base/crc32c.h"

namespace weft::wire {

inline constexpr size_t kWdpCrcOffset = 12;

// The CRC after `header`, which begins the datagram and has 16 bytes at least; what the CRC field
// holds does not matter. The payload's pieces are to follow by update() or copy_with_crc().
Crc32c wdp_crc_of_header(Bytes header);

inline void store_wdp_crc(std::byte* datagram, uint32_t crc) {
  store_le32(datagram + kWdpCrcOffset, crc);
}
inline uint32_t load_wdp_crc(const std::byte* datagram) {
  return load_le32(datagram + kWdpCrcOffset);
}

// For a datagram of at least 16 bytes that lies in one piece.
inline bool wdp_crc_matches(Bytes datagram) {
  return wdp_crc_of_header(datagram).value() == load_wdp_crc(datagram.data());
}
inline void seal_wdp(MutableBytes datagram) {
  store_wdp_crc(datagram.data(), wdp_crc_of_header(datagram).value());
}

}  // namespace weft::wire
