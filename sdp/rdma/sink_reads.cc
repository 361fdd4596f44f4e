#include "sdp/rdma/sink_reads.h"

namespace weft::sdp {
namespace {

constexpr uint32_t kStaging = 256 << 10;

}  // namespace

SinkReads::Target SinkReads::stage(ibv_pd* pd) {
  if (waits_ || (!has_staging() && !staging_.allocate(pd, 1, kStaging))) return {};
  return {staging_.at(0), kStaging, staging_.key()};
}

Bytes SinkReads::end() {
  const uint32_t bytes = std::exchange(bytes_, 0);
  if (!has_staging() || to_ != staging_.at(0)) {
    arrived_ = bytes;
    return {};
  }
  waits_ = true;
  return {staging_.at(0), bytes};
}

}  // namespace weft::sdp
