// The protocol of a connection on its queue pair. Both halves post here what they send, it is
// counted here, and it breaks here for both: with the queue pair, or by an error of its own, of
// which the first counts. A protocol that is broken says nothing more.
#pragma once

#include <optional>
#include <utility>

#include "sdp/core/connection.h"
#include "sdp/rdma/queue_pair.h"
#include "sdp/stat/shown.h"

namespace weft::sdp {

class Link {
 public:
  // With its header: the payload is whole, so that a send of 64 KB is two messages, and not a third
  // one of what the headers left over.
  static constexpr uint32_t kMessage = (32 << 10) + Bsdh::kSize;

  // Completions come to `member`.
  explicit Link(const Completions::Member& member) : queue_pair_(member) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  QueuePair& queue_pair() { return queue_pair_; }
  const QueuePair& queue_pair() const { return queue_pair_; }
  // Both sides are known to each other.
  void open(const Connection::Limits& limits) { connection_.emplace(limits); }
  bool is_open() const { return connection_.has_value(); }
  // Only when open.
  Connection& connection() { return *connection_; }
  const Connection& connection() const { return *connection_; }

  // From now on `weft stat` shows it.
  void show(const ShownConnection& connection) { shown_ = Shown{connection}; }
  void relayed() { shown_.relayed(); }
  Traffic& traffic() { return shown_.traffic(); }

  // A message. There has to be a place in the send queue. False: the queue pair is down.
  bool send(const Connection::Message& message);
  // Data, `payload` bytes behind the header, which is written here; `key` is of the memory.
  bool send_data(std::byte* header, uint32_t payload, uint32_t key, uint8_t flags);
  // All that the protocol has to say by itself, as far as there are places.
  void send_controls();

  // errno, or 0: ECONNRESET, or EPIPE where the peer had sent its end.
  int error() const { return error_; }
  bool broken() const { return queue_pair_.down() || error_ != 0; }
  void fail(int error);
  // Ends at once; what was not sent or read is lost.
  void abort();
  // The error, once; then 0.
  int take_error() { return std::exchange(untold_, 0); }
  // As if nobody had taken it.
  void leave_error() { untold_ = error_; }
  int untold_error() const { return untold_; }

 private:
  void count_message();

  QueuePair queue_pair_;
  std::optional<Connection> connection_;
  Shown shown_;
  int error_ = 0;
  int untold_ = 0;
};

}  // namespace weft::sdp
