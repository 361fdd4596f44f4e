// The stream that a connection receives: messages come to receive buffers, which are posted again
// when their bytes were taken. What the peer advertises behind them is read to the user's memory,
// or staged in this side's own (Read ZCopy, spec/sdp 6), and it may write to a buffer that it was
// offered (Write ZCopy, 7). Each byte has its place in one order, and so has the urgent mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sdp/rdma/link.h"
#include "sdp/rdma/receive_buffers.h"
#include "sdp/rdma/receive_queue.h"
#include "sdp/rdma/sink_reads.h"
#include "sdp/rdma/urgent_mark.h"

namespace weft::sdp {

class StreamIn {
 public:
  explicit StreamIn(Link& link) : link_(link) {}

  // Posts receives, for `bytes` as limit_bytes() has them. False with errno.
  bool allocate(ibv_pd* pd, uint32_t bytes);
  // How many bytes may wait for the program, 0: as many as fit. What is posted stays so.
  void limit_bytes(uint32_t bytes);
  uint16_t count_posted() const { return receives_.count_posted(); }

  // A message has come to receive buffer `buffer`. Of one that breaks the protocol: how.
  std::optional<Violation> on_message(uint8_t buffer, uint32_t bytes);
  // A Read has completed, or never will.
  void on_read();
  void give_up_read() { reads_.give_up(); }

  // What was received and not taken.
  ReceiveQueue& received() { return received_; }
  const ReceiveQueue& received() const { return received_; }
  void take(size_t bytes);
  // Where the urgent byte stands among it.
  UrgentMark& urgent() { return urgent_; }
  bool readable() const { return !received_.empty() || offered() > 0; }
  // The same without an urgent byte that a read leaves out: what poll(2) says.
  bool shows_data() const { return urgent_.readable(received_.bytes() + offered()) > 0; }
  // The user has shut both halves: data that still comes resets the connection, as with TCP.
  void refuse_data() { refuses_data_ = true; }
  // Ended: nothing more will come.
  bool ended() const;
  bool got_end() const { return link_.connection().got_end(); }
  bool at_end() const { return received_.empty() && ended(); }
  // The connection's error for who reads, once: behind the peer's end there is none.
  int take_error() { return got_end() ? 0 : link_.take_error(); }

  // Read ZCopy: bytes that the peer advertises, behind all that was received.
  uint32_t offered() const;
  // They are read to the user's memory, or staged: then they are received. One Read at a time; the
  // memory is the adapter's while reading(). How many bytes it will bring; 0 if there is none.
  uint32_t read(std::byte* to, uint32_t most, uint32_t lkey) { return read({to, most, lkey}); }
  uint32_t stage();
  bool reading() const { return reads_.under_way() && !link_.broken(); }
  // What the last Read has brought to the user's memory, once.
  uint32_t take_arrived() { return reads_.take_arrived(); }
  // Whether they are staged by themselves as they come, for a user who does not wait for that.
  void set_stages_by_itself(bool does) { stages_by_itself_ = does; }
  void stage_by_itself() {
    if (stages_by_itself_) (void)stage();
  }

  // Write ZCopy: the peer may write to `bytes` at `to`, which are its until there is an outcome, or
  // the connection broke. False: not now.
  static constexpr uint32_t kLeastOffer = Link::kMessage - Bsdh::kSize;
  bool may_offer() const;
  bool offer(std::byte* to, uint32_t bytes, uint32_t rkey);
  void cancel_offer();
  // How many bytes the peer has written, once.
  std::optional<uint32_t> take_written();
  // The peer is asked, once, for the mode in which buffers may be offered.
  void ask_for_offers();

 private:
  bool post_receives();
  void release(uint32_t buffer);
  uint32_t read(const SinkReads::Target& target);

  Link& link_;
  ReceiveBuffers receives_;
  ReceiveQueue received_;
  UrgentMark urgent_;
  SinkReads reads_;
  bool stages_by_itself_ = false;
  bool refuses_data_ = false;
};

}  // namespace weft::sdp
