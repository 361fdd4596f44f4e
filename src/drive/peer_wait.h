// Until the first word of an Initiator whose connection has been accepted by rdma_cm (spec/wdp-rd
// 7.6): it may give up, or go, before it says one.
#pragma once

#include <atomic>
#include <memory>

#include "drive/datagram_driver.h"
#include "wdp/rd_stream.h"

namespace weft::drive {

// The Initiator has taken its Request back. Whoever hears that may be on another engine than the
// queue pair that has accepted.
using GivenUp = std::shared_ptr<std::atomic<bool>>;

// Engine holder only. Owned by the engine, from start() to stop().
class PeerWait final : public engine::EventHandler {
 public:
  // The references live until stop(). The stream hears that its peer is lost.
  static PeerWait& start(Token& token, wdp::RdStream& stream, DatagramDriver& driver,
                         GivenUp given_up);
  void stop(Token& token) { token.runtime().remove(token, *this); }

  void on_ready(Token&, bool, bool) override {}
  void on_deadline(Token& token) override;
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}

 private:
  PeerWait(wdp::RdStream& stream, DatagramDriver& driver, GivenUp given_up, Time until)
      : stream_(stream), driver_(driver), given_up_(std::move(given_up)), until_(until) {}

  wdp::RdStream& stream_;
  DatagramDriver& driver_;
  const GivenUp given_up_;
  const Time until_;
};

}  // namespace weft::drive
