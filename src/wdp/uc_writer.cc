#include "wdp/uc_writer.h"

#include "base/guarded.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {
namespace {

Bytes bytes_of(const IoVec& v) {
  return {static_cast<const std::byte*>(v.iov_base), v.iov_len};
}

}  // namespace

bool UcWriter::write(Train& train, wire::WdpData d, std::span<const IoVec> payload) {
  constexpr size_t kHeader = wire::WdpData::kSize;
  const size_t size = total(payload);
  d.wdp_class = wire::WdpClass::uc;
  d.flags.crc = parameters_.crc;
  d.didx = parameters_.peer_index();
  d.sidx = parameters_.own_index();
  d.token = parameters_.peer_token;
  d.psn = next_psn_;

  const bool copies = parameters_.crc || size < Train::kCopyBelow;
  const size_t staged = kHeader + (copies ? size : 0);
  std::byte* const header = train.stage(staged);
  d.encode(header);
  if (!copies) {
    for (const IoVec& v : payload) train.refer(v.iov_base, v.iov_len);
  } else if (!copy(payload, header)) {
    train.unstage(staged);
    return false;
  }
  train.begin(kHeader + size, parameters_.path);
  next_psn_ = next(next_psn_);
  ++written_;
  return true;
}

// Behind the header, and what both of them sum up to into it.
bool UcWriter::copy(std::span<const IoVec> payload, std::byte* header) const {
  constexpr size_t kHeader = wire::WdpData::kSize;
  std::byte* to = header + kHeader;
  Crc32c crc;
  if (parameters_.crc) crc = wire::wdp_crc_of_header({header, kHeader});
  for (const IoVec& v : payload) {
    const bool there = parameters_.crc ? copy_with_crc(to, bytes_of(v), crc)
                                       : copy_guarded(to, v.iov_base, v.iov_len);
    if (!there) return false;
    to += v.iov_len;
  }
  if (parameters_.crc) wire::store_wdp_crc(header, crc.value());
  return true;
}

}  // namespace weft::wdp
