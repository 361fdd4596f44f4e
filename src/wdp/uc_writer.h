// Writes data datagrams of a session into trains: numbers them, and adds the CRC where it was
// agreed on.
#pragma once

#include <optional>
#include <span>

#include "wdp/train.h"
#include "wdp/uc_parameters.h"

namespace weft::wdp {

class UcWriter {
 public:
  explicit UcWriter(const UcParameters& parameters)
      : parameters_(parameters), next_psn_(parameters.first_psn) {}

  // spec/wdp-uc 2.1: MSN +1 per message. A Send or Write of ours begins, and is over.
  Msn begin_message() {
    inside_ = true;
    aside_.reset();
    return take_msn();
  }
  void end_message() { inside_ = false; }
  // For what is said about Reads, also in the middle of a long message of ours. There it all bears
  // one MSN, or the long message would fall out of the peer's window of 1024 (spec/wdp-uc 3.4)
  // before its end. Nobody puts Read Requests and Responses together by their MSN.
  Msn aside() {
    if (!inside_) return take_msn();
    if (!aside_) aside_ = take_msn();
    return *aside_;
  }
  bool fits(const Train& train, uint32_t payload) const {
    return train.takes(wire::WdpData::kSize + payload, parameters_.path);
  }
  // fits() said yes. Indices, token, PSN and F_CRC of `d` are filled in here. With CRC the payload
  // is copied, for its memory may change at any time: what was summed has to be what leaves. False,
  // with nothing written, where that memory is gone (base/guarded.h).
  [[nodiscard]] bool write(Train& train, wire::WdpData d, std::span<const IoVec> payload);

  Psn next_psn() const { return next_psn_; }
  // PSNs used so far.
  uint64_t written() const { return written_; }

 private:
  bool copy(std::span<const IoVec> payload, std::byte* header) const;
  Msn take_msn() {
    const Msn msn = next_msn_;
    next_msn_ = next(next_msn_);
    return msn;
  }

  const UcParameters& parameters_;
  Psn next_psn_;
  Msn next_msn_{1};
  bool inside_ = false;
  std::optional<Msn> aside_;
  uint64_t written_ = 0;
};

}  // namespace weft::wdp
