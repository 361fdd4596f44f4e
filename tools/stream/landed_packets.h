// Which packets an RDMA Write has brought: they lie in the ring when an immediate tells of them,
// and this finds out which they are and tells the lane's ledger.
#pragma once

#include "stream/inlet.h"
#include "stream/write_format.h"

namespace weft::stream {

// The thread of the lanes.
class LandedPackets {
 public:
  // All are kept.
  LandedPackets(const InletOptions& options, Lanes& lanes, const Ring& ring)
      : options_(options), lanes_(lanes), slot_bytes_(ring.spec().slot_bytes) {}
  LandedPackets(const LandedPackets&) = delete;
  LandedPackets& operator=(const LandedPackets&) = delete;

  // A sender of this stream's packets begins. `trailers`: each packet has one, so that one of which
  // nothing told can be found.
  void begin(uint32_t stream, const Shape& shape, bool trailers);
  // A Write of so many bytes to this stream, from a sender of up to `group` packets each. False: it
  // is none that such a sender makes; the lane keeps the first one of these.
  bool account_for(uint32_t stream, uint32_t group, const Mark& mark, uint32_t bytes,
                   int64_t now_ns);
  // As Inlet::settle().
  void settle(uint32_t stream, int64_t now_ns);

 private:
  void refuse(Lane& lane, const Mark& mark, const std::string& reason) const;
  bool intact(const Lane& lane, uint64_t number) const;
  static uint64_t number_of(const Lane& lane, const Mark& mark, int64_t now_ns);
  bool account_for_circuit(uint32_t stream, const Mark& mark, int64_t now_ns);
  void believe(uint32_t stream, const Continuity::Judgement& judgement, int64_t now_ns);

  const InletOptions& options_;
  Lanes& lanes_;
  const uint32_t slot_bytes_;
};

}  // namespace weft::stream
