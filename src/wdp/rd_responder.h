// What an RD queue pair does for its peers (spec/wdp-rd 6): receives for their messages, their
// Writes, Reads and atomics, and an answer to each.
//
//   segments, in the order of their flow ─► Inbound ─► placed ─ last ─► completion, ACK
//                                             │  └─ no receive ─► RNR, and then READY
//                                             └─ Read, atomic ─► responses ─ segments ─► channel
//
// Above 400 lines with its source: each kind of request is a function, all of one flow's state.
#pragma once

#include <deque>
#include <map>

#include "base/intrusive_list.h"
#include "wdp/counters.h"
#include "wdp/rd_channel.h"
#include "wdp/rd_consumer.h"
#include "wdp/rd_limits.h"
#include "wire/rdmap_messages.h"

namespace weft::wdp {

// Engine holder only.
class RdResponder {
 public:
  // `client`: who hears of room in channels.
  RdResponder(RdConsumer& consumer, Qpn own_qpn, QKey q_key, ClientId client)
      : consumer_(consumer), own_qpn_(own_qpn), q_key_(q_key), client_(client) {}
  RdResponder(const RdResponder&) = delete;
  RdResponder& operator=(const RdResponder&) = delete;

  // A segment of a request.
  void take(RdChannel& channel, const RdArrival& arrival, Bytes payload);
  // Something was posted: are there receives again?
  void posted();
  void channel_ended(const RdChannel& channel);

  // Something is to be said of Reads and atomics.
  bool ready(Time now) const { return (!blocked_ && !answering_.empty()) || now >= tick_at_; }
  // Hands what the channels take to them.
  void send(Time now);
  // When it is to look again for messages that do not go on.
  Time deadline() const { return tick_at_; }
  // A channel has room.
  void resume() { blocked_ = false; }

  void set_q_key(QKey key) { q_key_ = key; }
  // Takes nothing more: peers hear that of messages that have begun. The receives of these go back.
  // Where there is no memory to say so, their channels end. Nothing is thrown, and nobody
  // may call back.
  void leave();
  // Messages that found no receive.
  uint64_t refused() const { return refused_; }
  const DropCounts& drops() const { return drops_; }
  size_t flows() const { return flows_.size(); }

 private:
  using Code = wire::WdpResponse::Code;
  struct Response {
    Msn request;
    bool atomic = false;
    uint64_t original = 0;
    Stag stag;
    TaggedOffset to;
    uint32_t length = 0;
    uint32_t offset = 0;
    Msn msn;              // once the first segment is said
    uint16_t stride = 0;  // the same
  };
  // What all segments of a message have to say alike.
  struct Shape {
    wire::Opcode opcode{};
    uint32_t mlen = 0;
    uint16_t stride = 0;
    bool immediate = false;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  static Shape shape_of(const wire::WdpData& d) {
    return {d.opcode, d.mlen, d.stride, d.flags.immediate};
  }
  enum class Doing : uint8_t { nothing, skipping, placing };
  // From one queue pair of a peer's.
  struct Inbound : ListHook<struct UntoldTag>, ListHook<struct AnsweringTag> {
    RdChannel* channel = nullptr;
    uint8_t sidx = 0;
    PathRoom room;
    Doing doing = Doing::nothing;
    Msn msn;  // of the message
    Shape shape;
    work::TakenReceive receive;
    bool closed = true;     // until a message has F: what came before was another life's
    bool refusing = false;  // RNR was said
    bool entered = false;   // the channel is to ask whether the peer is there
    Time heard;             // last
    uint32_t silence = 0;   // ticks in which nothing came of a message that has a receive
    std::deque<Response> responses;
  };
  // The message is not taken; or it is not answered here.
  using Fault = std::optional<Code>;

  Inbound& flow_of(RdChannel& channel, uint8_t sidx);
  void begin(Inbound& flow, const wire::WdpData& d, Bytes payload);
  Fault accept(Inbound& flow, const wire::WdpData& d, Bytes payload);
  Fault accept_send(Inbound& flow, const wire::WdpData& d);
  Fault accept_write(Inbound& flow, const wire::WdpData& d);
  Fault accept_read(Inbound& flow, const wire::WdpData& d, Bytes payload);
  Fault accept_atomic(Inbound& flow, const wire::WdpData& d, Bytes payload);
  Fault place_segment(Inbound& flow, const wire::WdpData& d, Bytes payload);
  void deliver(Inbound& flow, const RdArrival& arrival);
  bool next_receive(Inbound& flow);
  void give_back(Inbound& flow);
  void tick(Time now);
  void fail(Inbound& flow, Code code);
  void say(const Inbound& flow, Code code, Msn msn, uint8_t delay = 0);
  bool put_response(Inbound& flow);
  void cancel(Inbound& flow);
  void end_response(Inbound& flow);
  void settle(Inbound& flow);
  void say_last_words(Inbound& flow);

  RdConsumer& consumer_;
  const Qpn own_qpn_;
  QKey q_key_;
  const ClientId client_;
  std::map<std::pair<const RdChannel*, uint8_t>, Inbound> flows_;
  IntrusiveList<Inbound, struct UntoldTag> untold_;        // hear READY when there are receives
  IntrusiveList<Inbound, struct AnsweringTag> answering_;  // have responses to send
  bool blocked_ = false;                                   // until a channel has room
  Time tick_at_ = Time::never();
  uint64_t refused_ = 0;
  DropCounts drops_;
};

}  // namespace weft::wdp
