// Samples by a formula: noise, and a tone that stands in each beamlet and goes on from packet to
// packet. Everybody can compute what each byte of each packet should be (docs/streams-reference.md;
// examples/stream_consumer.c does it in C).
#pragma once

#include <cstdint>
#include <vector>

#include "stream/packet.h"

namespace weft::stream {

class Synthetic {
 public:
  explicit Synthetic(const Shape& shape);
  // What the payload of this packet is. Good as long as this object.
  ConstPacket payload(uint32_t stream, uint64_t number) const;

 private:
  std::vector<std::byte> table_;
  size_t payload_;
};

}  // namespace weft::stream
