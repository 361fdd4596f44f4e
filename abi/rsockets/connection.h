// A connection that stands: both directions of the stream, and the messages that keep them going
// (spec/rsockets 4 and 5).
#pragma once

#include <cstdint>
#include <optional>

#include "abi/rsockets/endpoint.h"
#include "abi/rsockets/iov_cursor.h"
#include "abi/rsockets/receive_window.h"
#include "abi/rsockets/send_window.h"

namespace weft::rsockets {

// One user at a time. Nothing here waits.
class Connection {
 public:
  explicit Connection(const Sizes& sizes);

  // Makes the queue pair for `id`, which has its device. 0, or an errno value.
  int open(rdma_cm_id* id);
  ConnectData data() const { return endpoint_.connect_data(); }
  // The peer has told of itself. Whatever came before is looked at from now on.
  void begin(const ConnectData& peer);

  // Takes what has come, and tells the peer of its new credits. Whether anything came.
  bool progress();

  // Bytes that send() takes now. 0 also where nothing can be sent any more: ended().
  uint32_t sendable() const { return ended_ ? 0 : send_.sendable(); }
  // Sends `n` of them. Where that fails the connection has ended.
  void send(IovCursor& from, uint32_t n);

  uint32_t available() const { return receive_.available(); }
  // As many bytes as are there and fit. With `peek` they stay.
  uint32_t read(IovCursor& to, bool peek);
  // No more bytes than available() will ever come.
  bool at_end() const { return ended_ || peer_is_silent_; }

  // Tells the peer that this side sends no more, or that it is gone. False when that has to wait
  // for progress().
  bool say_shutdown();
  bool say_disconnect();
  // Whether all that was sent has left this side.
  bool all_sent() const {
    return ended_ || (control_ == 0 && send_.all_completed(endpoint_.message_slots()));
  }

  // The peer has said that it is gone, or the connection broke: then error() is not 0.
  bool ended() const { return ended_; }
  int error() const { return error_; }

  // Memory of the peer's that it has mapped for writes; and of this side's, for the peer: its entry
  // `slot`. False as with say_...().
  std::optional<MappedTarget> find_mapped(uint64_t offset) const;
  uint32_t peer_slots() const { return peer_slots_; }
  bool say_mapped(uint32_t slot, const MappedTarget& entry);
  // Bytes that write_mapped() takes now.
  uint32_t mapped_writable() const { return ended_ ? 0 : send_.writable(); }
  void write_mapped(IovCursor& from, uint32_t n, uint64_t address, uint32_t key);

  Endpoint& endpoint() { return endpoint_; }

 private:
  bool say(Message control);
  bool may_say() const { return !ended_ && control_ < Endpoint::kControlMessages; }
  void take(Message message);
  void take_sent(const Endpoint::Completion& completion);
  void tell_news();
  void end();
  void fail(int error);
  void fill(const SendWindow::Piece& piece, IovCursor& from);

  Sizes sizes_;
  Endpoint endpoint_;
  ReceiveWindow receive_{0, 0};
  SendWindow send_{0, 0};
  uint32_t control_ = 0;      // control messages under way
  Target peer_list_;          // where the peer is told of halves
  uint32_t next_entry_ = 1;   // of that list
  uint32_t next_target_ = 1;  // of this side's own list
  uint32_t peer_slots_ = 0;
  bool peer_is_silent_ = false;  // sends no more
  bool is_silent_ = false;       // nor does this side
  bool said_disconnect_ = false;
  bool ended_ = false;
  int error_ = 0;
};

}  // namespace weft::rsockets
