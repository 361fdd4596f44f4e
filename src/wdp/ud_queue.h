// The protocol core of a UD queue pair (spec/wdp-ud 5.2): a message is a datagram, a datagram takes
// a receive, nobody is remembered and nothing is answered. With option ud=reliable messages go by
// the channel to their peer where there is one (spec/wdp-rd 3).
#pragma once

#include <optional>

#include "wdp/counters.h"
#include "wdp/rd_client.h"
#include "wdp/train_source.h"
#include "wdp/ud_consumer.h"
#include "wire/wdp_ud.h"

namespace weft::wdp {

struct UdParameters {
  Qpn own_qpn;
  QKey q_key;
  bool crc = false;                   // of what is sent; what comes with one is checked in any case
  bool blocks_own_multicast = false;  // what it sends to its own groups does not come back
  // Its messages go by channels, if their peers have any, under its ClientId there. 0: none do.
  uint32_t client = 0;
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
  uint64_t messages_plain = 0;  // of those sent, though channels were wanted: the peer has none
  DropCounts drops;
};

struct RdArrival;

// Above 400 lines with its source: both ways take requests from one queue, in order.
class UdQueue final : public TrainSource, public RdClient {
 public:
  UdQueue(UdConsumer& consumer, const UdParameters& parameters)
      : consumer_(consumer),
        queue_(consumer.send_queue()),
        parameters_(parameters),
        next_(queue_.head()),
        seen_(next_),
        llp_took_(next_) {}
  UdQueue(const UdQueue&) = delete;
  UdQueue& operator=(const UdQueue&) = delete;

  // A datagram of class 2 whose QN is this queue pair's, or that came to a group it is attached to.
  // `ud` is parsed from `datagram`.
  void received(const wire::WdpUd& ud, Bytes datagram, const UdReception& how);
  // A message that a channel has brought. False: it is to come again when there is a receive.
  bool take(const RdArrival& arrival, Bytes payload);
  // RdClient
  void message_ended(uint64_t request, End end) override;
  void has_room() override;

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
  // Under another ClientId, for what was flushed may end yet.
  void resume(uint32_t client);
  bool idle() const { return queue_.head() == seen_; }
  void set_q_key(QKey key) { parameters_.q_key = key; }
  QKey q_key() const { return parameters_.q_key; }
  const UdCounters& counters() const { return counters_; }

 private:
  // What a datagram of either kind says.
  struct Message {
    Qpn source;
    bool solicited = false;
    bool multicast = false;
    bool reliable = false;
    bool has_immediate = false;
    uint32_t immediate = 0;
    Bytes payload;
  };
  // Of a request that was begun, in SendWqe::last_message.
  enum MessageState : uint64_t {
    plain,
    by_channel,
    returned,     // by one, and is to go as a datagram of its own
    undelivered,  // by one that had ended, and is to go by another one
  };

  bool next_receive();
  // In SQD, what was begun before is finished.
  uint64_t limit() const { return held_ ? seen_ : queue_.tail(); }
  bool goes_again(uint64_t request) const {
    const uint64_t state = queue_.at(request).last_message;
    return state == MessageState::returned || state == MessageState::undelivered;
  }
  bool may_send() const { return !poison_ && !blocked_ && (next_ < limit() || again_from_); }
  Result<Ok, wire::WdpDrop> accept(const wire::WdpUd& ud, Bytes datagram, const UdReception& how);
  Result<Ok, wire::WdpDrop> deliver(const Message& m, const UdReception& how);
  bool write(work::SendWqe& w, Train& train, Time now);
  bool write_plain(work::SendWqe& w, const UdDestination& to, const PieceList& pieces,
                   Train& train);
  bool hand_over(work::SendWqe& w, const UdDestination& to, const PieceList& pieces,
                 RdChannel& channel);
  bool skip(const Train& train);
  QKey key_of(const UdDestination& to) const;
  void poison(work::Status status);
  void complete();

  UdConsumer& consumer_;
  work::SendQueue& queue_;
  UdParameters parameters_;
  uint64_t next_;      // request to be sent next
  uint64_t seen_;      // requests before this index were begun once
  uint64_t llp_took_;  // requests before this index are with the kernel, or a channel
  std::optional<uint64_t> again_from_;  // the first that a channel has not delivered
  bool blocked_ = false;                // a channel has no room, or is yet to be found
  Msn msn_{1};
  bool held_ = false;
  std::optional<work::Status> poison_;
  bool failed_ = false;
  work::TakenReceive receive_;  // room for the next one, where messages come
  UdCounters counters_;
};

}  // namespace weft::wdp
