// A peer that waits for the program's answer: by an MPA Request (RC), on TCP or through a channel,
// or by a REQ of WDP (UC).
#pragma once

#include <optional>

#include "cm/channel_request.h"
#include "cm/datagram_listener.h"
#include "cm/passive_start.h"

namespace weft::cm {

// Who hears what becomes of it.
class PendingRequestHandler : public PassiveStartHandler, public ChannelRequestHandler {};

// Engine holder.
class PendingRequest {
 public:
  // Nobody waits.
  PendingRequest() = default;
  explicit PendingRequest(PassiveStart& start) : start_(&start) {}
  explicit PendingRequest(ChannelRequest& channel) : channel_(&channel) {}
  explicit PendingRequest(const DatagramCall& call) : call_(call) {}

  bool waits() const { return start_ != nullptr || channel_ != nullptr || call_; }
  // That of RC through a channel; else nullptr. Where it answers, nobody waits afterwards: gone().
  ChannelRequest* by_channel() const { return channel_; }
  bool by_datagram() const { return call_.has_value(); }
  // Bytes of private data that the answer may have, where the peer is the limit.
  std::optional<size_t> most_private_data() const {
    return start_ != nullptr ? std::optional{start_->most_private_data()} : std::nullopt;
  }

  // The peer has gone away, or has its answer.
  void gone() { *this = {}; }
  // Yes, over TCP. Nothing: the peer has gone away. Nobody waits afterwards. Where it throws, the
  // peer has heard nothing, and waits.
  std::optional<Started> accept(engine::Token& token, const mpa::Offer& limits, Bytes private_data,
                                const std::optional<wire::RdOffer>& rd) {
    auto started = start_->accept(token, limits, private_data, rd);
    start_ = nullptr;
    return started;
  }
  // By datagrams: the answer is the caller's from now on.
  DatagramCall take_call() { return *std::exchange(call_, {}); }
  // No, and counts why. Nobody waits afterwards.
  void reject(engine::Token& token, stats::CmRejection why, Bytes private_data) {
    if (!waits()) return;
    stats::count(token.runtime().counters().cm_rejected, why);
    if (start_ != nullptr) std::exchange(start_, nullptr)->reject(token, private_data);
    if (channel_ != nullptr) std::exchange(channel_, nullptr)->reject(token, private_data);
    if (call_) take_call().reject(token, wire::RejReason::application, private_data);
  }

 private:
  PassiveStart* start_ = nullptr;
  ChannelRequest* channel_ = nullptr;
  std::optional<DatagramCall> call_;
};

}  // namespace weft::cm
