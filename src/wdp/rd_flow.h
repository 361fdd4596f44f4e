// The requests of an RD queue pair to one queue pair of a peer's, in order, and what the peer has
// to be told of that order (spec/wdp-rd 6).
//
//   waiting ─ begin ─► sent ─ acknowledged, answered ─► over
//      ▲                │
//      └─── refused ────┘
//
// The last one that was begun may be partial: segments of it are yet to be sent. A message that
// says F opens the flow: the first one, that behind a refusal, and each with nothing unanswered
// before it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "wdp/rd_request.h"

namespace weft::wdp {

class RdFlow {
 public:
  // --- requests in
  void add(uint64_t request) { waiting_.push_back(request); }
  // Nothing is asked for, and nothing comes.
  bool idle() const { return waiting_.empty() && sent_.empty() && abandoned_.empty(); }
  bool any_waits() const { return !waiting_.empty(); }
  // The oldest that waits; only when any does.
  uint64_t next() const { return waiting_.front(); }
  uint64_t take_next();

  // --- the message that is sent
  // Of next(), in segments of `stride` bytes. False: as many Reads and atomics are unanswered as
  // may be.
  bool begin(uint16_t stride, bool has_response);
  bool partial() const { return partial_; }
  bool has_more() const { return partial_ || any_waits(); }
  // Only when partial: the request, and its next segment. Whose it is the caller knows.
  uint64_t current() const { return sent_.back().request; }
  RdSegment segment() const;
  // The segment was sent, with this header.
  void said(const wire::WdpData& header);
  // Has the peer a part of it, so that it is to hear if there is no more?
  bool peer_has_part() const { return partial_ && offset_ > 0; }
  // It heard so; or it has heard nothing, and will not.
  void end_message();
  void drop_message() { partial_ = false; }

  // --- what the peer says of what was sent
  // Where the request with this number is. Nothing: none, or one of which the peer has heard
  // nothing.
  std::optional<size_t> find(Msn msn) const;
  bool is_partial(size_t at) const { return partial_ && at + 1 == sent_.size(); }
  uint64_t request(size_t at) const { return sent_[at].request; }
  // It is over.
  uint64_t take(size_t at);
  uint64_t take_current() { return take(sent_.size() - 1); }
  // One after the other, those up to `msn` whose acknowledgement is all that they wait for.
  std::optional<uint64_t> take_acknowledged(Msn msn);
  // All from there on are to be sent again: the peer has dropped them. Throws std::bad_alloc; then
  // it is to be called again.
  void refuse(size_t at);
  // How often it has refused the first one since it took something. True: not too often.
  bool may_try_again(uint8_t most);
  void taken() { refusals_ = 0; }
  // The peer knows nothing of the flow, as it says of this message.
  void unknown_at(Msn msn);

  // --- answers of Reads and atomics
  bool any_unanswered() const { return reads_ > 0; }
  // A segment of the answer to `msn`. False: it has no beginning.
  bool take_response(Msn msn, bool first);
  void end_response() { response_.reset(); }
  // Nobody waits for the rest of this answer, which still comes.
  void abandon(Msn msn);
  // It is over. False: it is none of these.
  bool forget_abandoned(Msn msn);

  // --- the order as a whole
  // The peer drops what it is sent until a message says F.
  bool refused() const { return refused_; }
  // It heard F from a message of nothing.
  void opened() { refused_ = false; }
  // Nothing is unanswered: the next message opens.
  void open_next() { opens_ = true; }
  // All that was sent waits again: the peer has taken none of it. Throws std::bad_alloc; then some
  // of it does.
  void begin_again();
  // Nothing that was sent counts. Requests stay where they are.
  void reset();
  // The oldest of all.
  std::optional<uint64_t> take_any();

 private:
  struct Sent {
    Msn msn;  // none before its first segment is sent
    bool has_response = false;
    uint64_t request = 0;
  };

  std::deque<uint64_t> waiting_;
  std::deque<Sent> sent_;
  bool partial_ = false;  // the last of `sent_` is not sent whole
  uint32_t offset_ = 0;   // of its next segment
  uint16_t stride_ = 0;
  bool opens_ = true;            // the next message says F
  bool opening_ = false;         // that which is under way does
  Msn opened_;                   // the last that did
  bool refused_ = false;         // until then the peer drops what it says
  uint32_t refusals_ = 0;        // of the first, one after the other
  uint32_t reads_ = 0;           // whose answers are yet to come, whole
  std::vector<Msn> abandoned_;   // of these
  std::optional<Msn> response_;  // that is coming: of this Read or atomic
};

}  // namespace weft::wdp
