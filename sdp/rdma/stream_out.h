// The stream that a connection sends: bytes are copied to its buffers and go as messages, or the
// peer reads them where they lie (Read ZCopy), or they are written to memory that its program waits
// with (Write ZCopy, spec/sdp 7). What is in the buffers goes before what is not, and the end
// behind all.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "sdp/rdma/link.h"
#include "sdp/rdma/send_buffers.h"

namespace weft::sdp {

class StreamOut {
 public:
  explicit StreamOut(Link& link) : link_(link) {}

  // False with errno.
  bool allocate(ibv_pd* pd) { return buffers_.allocate(pd, Link::kMessage); }
  // Of a message, by the peer's receives.
  void limit_message(uint32_t most) { buffers_.limit_payload(most - Bsdh::kSize); }
  // How many bytes may wait, 0: as many as fit.
  void limit_bytes(uint32_t most) { buffers_.limit_bytes(most == 0 ? UINT32_MAX : most); }

  // No room: nothing can be taken now.
  MutableBytes room() { return writable() ? buffers_.room() : MutableBytes{}; }
  void filled(uint32_t bytes) { buffers_.filled(bytes); }
  // What was filled last ends with an urgent byte.
  void mark_urgent() { buffers_.mark_urgent(); }
  bool writable() const { return !link_.broken() && !ending_; }
  // Whether anything waits to be sent, and how many bytes.
  bool waiting() const { return buffers_.waiting(); }
  uint32_t unsent() const { return buffers_.waiting_bytes(); }
  uint32_t unacknowledged() const { return buffers_.bytes(); }
  void end_sending() { ending_ = true; }
  bool ending() const { return ending_; }

  // What may go of all that.
  void send();
  // A message has completed.
  void completed() { buffers_.completed(); }

  // Read ZCopy: `bytes` at `from` are read by the peer where they lie, and stay as they are until
  // there is an outcome, or the connection broke. False: they have to be copied.
  bool may_advertise() const;
  bool advertise(const std::byte* from, uint32_t bytes, uint32_t rkey);
  bool advertising() const { return link_.connection().advertising(); }
  // Of what is advertised: how much the peer says that it has read.
  uint32_t advertised_and_read() const { return link_.connection().advertised_and_read(); }
  void cancel_advertising();
  // How many of the bytes the peer has read, once. The rest is to be copied.
  std::optional<uint32_t> take_outcome();

  // Write ZCopy: the peer's program waits with a buffer of its own. Bytes at `from` go there; the
  // memory is the adapter's while writing(). How many; 0: none.
  bool may_write() const;
  uint32_t write(const std::byte* from, uint32_t bytes, uint32_t lkey);
  bool writing() const { return link_.queue_pair().writes() > 0 && !link_.broken(); }
  // Whether the peer may offer buffers at all.
  bool pipelined() const { return link_.connection().send_mode() == Mode::pipelined; }

  // Whether completions have to be taken though the user waits for nothing. Not when broken.
  bool busy() const;
  // All that it was given is with the peer, its end too if it has one; or it broke.
  bool has_sent_all() const;
  // The same, and it has an end.
  bool has_said_all() const;

 private:
  void send_message();

  Link& link_;
  SendBuffers buffers_;
  bool ending_ = false;
};

}  // namespace weft::sdp
