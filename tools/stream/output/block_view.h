// A block of a stream as what writes files sees it: its packets, those that are missing, and when
// they were taken.
#pragma once

#include <weft/stream_ring.h>

#include <cstdint>
#include <limits>

#include "stream/packet.h"
#include "stream/sample_time.h"

namespace weft::stream {

class BlockView {
 public:
  // Packets before `start_ns` count as missing. All is referred to.
  BlockView(const Shape& shape, const weft_stream_block& block, const std::byte* data,
            std::optional<int64_t> start_ns = {});

  const Shape& shape() const { return shape_; }
  uint32_t stream() const { return block_.stream; }
  uint64_t first() const { return block_.number * block_.packets; }  // number
  uint32_t packets() const { return block_.packets; }
  bool has(uint32_t i) const { return i >= begin_ && (block_.valid[i / 8] >> (i % 8) & 1) != 0; }
  ConstPacket packet(uint32_t i) const {
    return {data_ + uint64_t{i} * block_.slot_bytes, block_.packet_bytes};
  }
  ConstPacket payload(uint32_t i) const { return packet(i).subspan(shape_.header_bytes()); }
  // The first packet that is here, and behind the last one; both packets(), or 0, where none is.
  uint32_t first_here() const;
  uint32_t end_here() const;
  uint32_t here() const;
  // When packet `i` was taken: ns since 1970. Of packets that do not tell, when the block was
  // published.
  int64_t time_ns(uint32_t i) const { return time_ns_ + period_.times(i); }
  const PacketPeriod& period() const { return period_; }
  // Of the first packet in the block's memory.
  const Origin& origin() const { return origin_; }

 private:
  const Shape& shape_;
  const weft_stream_block& block_;
  const std::byte* data_;
  uint32_t begin_ = 0;
  int64_t time_ns_ = 0;
  PacketPeriod period_;
  Origin origin_;
};

}  // namespace weft::stream
