// The protocol core of a UD queue pair (spec/wdp-ud 5.2): a message is a datagram, a datagram takes
// a receive, nobody is remembered and nothing is answered.
#pragma once

#include <memory>
#include <optional>

#include "wdp/counters.h"
#include "wdp/train_source.h"
#include "wdp/ud_consumer.h"
#include "wire/wdp_ud.h"

namespace weft::wdp {

struct UdParameters {
  Qpn own_qpn;
  QKey q_key;
  bool crc = false;  // of what is sent; what comes with one is checked in any case
};

// What the kernel tells of a datagram besides its bytes.
struct UdReception {
  Endpoint from;
  Gid to;  // the address it was sent to
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;  // 64 where it is not known
  bool from_own_address = false;
};

struct UdCounters {
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  DropCounts drops;
};

class UdQueue final : public TrainSource {
 public:
  UdQueue(UdConsumer& consumer, const UdParameters& parameters)
      : consumer_(consumer),
        queue_(consumer.send_queue()),
        parameters_(parameters),
        next_(queue_.head()),
        llp_took_(next_) {}
  UdQueue(const UdQueue&) = delete;
  UdQueue& operator=(const UdQueue&) = delete;

  // A datagram of class 2 whose QN is this queue pair's, or that came to a group it is attached to.
  // `ud` is parsed from `datagram`.
  void received(const wire::WdpUd& ud, Bytes datagram, const UdReception& how);

  // --- trains out. A train has datagrams that go the same way and are of a size.
  bool ready(Time now) override;
  void fill(Train& train, Time now) override;
  bool urgent(Time) const override { return false; }
  void llp_took_all(Time now) override;
  // It was one message to one of many peers.
  void path_carries(size_t) override {}
  void own_memory_lost(Time now) override;

  void hold(bool on) { held_ = on; }
  // After UdConsumer::send_failed(), when all was flushed: what is posted from now on is sent.
  void resume();
  bool idle() const { return queue_.head() == next_; }
  void set_q_key(QKey key) { parameters_.q_key = key; }
  QKey q_key() const { return parameters_.q_key; }
  // The receive that was taken for a message that did not fit.
  std::optional<work::Receive> abandon_receive();
  const UdCounters& counters() const { return counters_; }

 private:
  bool next_receive();
  bool may_send() const { return !poison_ && !held_ && next_ < queue_.tail(); }
  Result<Ok, wire::WdpDrop> accept(const wire::WdpUd& ud, Bytes datagram, const UdReception& how);
  bool write(work::SendWqe& w, Train& train);
  void poison(work::Status status);
  void complete();

  UdConsumer& consumer_;
  work::SendQueue& queue_;
  UdParameters parameters_;
  uint64_t next_;      // request to be sent next
  uint64_t llp_took_;  // requests before this index are with the kernel
  Msn msn_{1};
  bool held_ = false;
  std::optional<work::Status> poison_;
  bool failed_ = false;
  bool has_receive_ = false;  // taken, and not used yet
  std::unique_ptr<work::Receive> receive_;
  UdCounters counters_;
};

}  // namespace weft::wdp
