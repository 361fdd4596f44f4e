// A UD queue pair with its program, and what must hold of both: what the target ud_receiver is made
// of.
#pragma once

#include <list>

#include "fuzz/rdmap/area.h"
#include "tests/support/host.h"
#include "wdp/ud_queue.h"

namespace weft::fuzz {

// A datagram that was just said to the port.
struct UdSaid {
  std::vector<std::byte> bytes;
  wdp::UdReception how;
  bool to_group = false;
};

class UdMember final : public wdp::UdConsumer {
 public:
  static constexpr QKey kKey{0x1111};

  // `said` is kept.
  UdMember(Qpn qpn, const wdp::Endpoint& peer, const UdSaid& said, bool blocks_own = false)
      : qpn_(qpn),
        to_{.path = {.to = peer}, .qpn = Qpn{0x123456}, .q_key = QKey{1}},
        said_(said),
        blocks_own_(blocks_own) {}

  wdp::UdQueue& queue() { return queue_; }
  void post_receive(size_t size);
  // `bits`: 1 or 2 without a region, 4 with an immediate.
  void post_send(uint8_t bits, size_t size);
  void deregister(uint8_t receive) { host_.regions.erase(Stag{kReceiveKeys + receive}); }
  void deregister_all() { host_.regions.clear(); }
  void hold(bool on);
  // A train that finds no room at the socket.
  void fill();
  // The kernel has it, or else the next one.
  void send();
  void own_memory_lost();
  // As ibv_modify_qp from SQE to RTS.
  void resume();
  // Of the receives, on the way to the end.
  void flush();

  void check();

  // --- how it stands
  bool failed() const { return failed_; }
  bool train_waits() const { return !train_.empty(); }
  uint64_t receives() const { return posted_ - done_; }
  uint64_t requests() const { return posted_sends_ - done_sends_; }
  // Of the datagrams that came here: each is in one of these.
  uint64_t counted() const {
    return queue_.counters().messages_received + queue_.counters().drops.total();
  }

  // wdp::UdConsumer
  work::Memory& memory() override { return host_.memory(); }
  work::SendQueue& send_queue() override { return host_.send_queue(); }
  const wdp::UdDestination& destination(const work::SendWqe&) override { return to_; }
  bool take_receive(work::Receive& out) override { return host_.take_receive(out); }
  void give_back(work::TakenReceive r) override { host_.give_back(r); }
  void receive_done(const work::Receive& r, work::Status s, const wdp::UdArrival& a) override;
  void send_done(const work::SendWqe& w, work::Status) override {
    FUZZ_CHECK(w.wr_id == done_sends_++);
  }
  void send_failed() override {
    FUZZ_CHECK(!failed_);
    failed_ = true;
  }

 private:
  static constexpr uint32_t kReceiveKeys = 0x8000;
  static constexpr uint32_t kRequestKeys = 0x4000;

  const Qpn qpn_;
  const wdp::UdDestination to_;
  const UdSaid& said_;
  const bool blocks_own_;  // what it sends to its groups
  test::Host host_;
  wdp::UdQueue queue_{*this, {.own_qpn = qpn_, .q_key = kKey, .blocks_own_multicast = blocks_own_}};
  std::list<Area> rooms_;    // of receives
  std::list<Area> sources_;  // of Sends
  wdp::Train train_;
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  uint64_t posted_sends_ = 0;
  uint64_t done_sends_ = 0;
  bool held_ = false;
  bool failed_ = false;
};

}  // namespace weft::fuzz
