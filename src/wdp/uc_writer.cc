#include "wdp/uc_writer.h"

#include <cstring>

#include "wire/wdp_crc.h"

namespace weft::wdp {
namespace {

Bytes bytes_of(const IoVec& v) {
  return {static_cast<const std::byte*>(v.iov_base), v.iov_len};
}

}  // namespace

void UcWriter::write(Train& train, wire::WdpData d, std::span<const IoVec> payload, Payload kind) {
  constexpr size_t kHeader = wire::WdpData::kSize;
  size_t size = 0;
  for (const IoVec& v : payload) size += v.iov_len;
  d.wdp_class = wire::WdpClass::uc;
  d.flags.crc = parameters_.crc;
  d.didx = parameters_.peer_index();
  d.sidx = parameters_.own_index();
  d.token = parameters_.peer_token;
  d.psn = next_psn_;
  next_psn_ = next(next_psn_);
  ++written_;

  train.begin(kHeader + size, parameters_.path);
  const bool copies = size < Train::kCopyBelow || (kind == Payload::may_change && parameters_.crc);
  std::byte* const header = train.stage(kHeader + (copies ? size : 0));
  d.encode(header);
  Crc32c crc;
  if (parameters_.crc) crc = wire::wdp_crc_of_header({header, kHeader});
  std::byte* to = header + kHeader;
  for (const IoVec& v : payload) {
    if (v.iov_len == 0) continue;
    if (!copies) {
      train.refer(v.iov_base, v.iov_len);
      if (parameters_.crc) crc.update(bytes_of(v));
      continue;
    }
    if (parameters_.crc) {
      copy_with_crc(to, bytes_of(v), crc);
    } else {
      std::memcpy(to, v.iov_base, v.iov_len);
    }
    to += v.iov_len;
  }
  if (parameters_.crc) wire::store_wdp_crc(header, crc.value());
}

}  // namespace weft::wdp
