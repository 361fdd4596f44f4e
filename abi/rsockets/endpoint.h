// A connection's queue pair, its completion queue and its registered memory, and the requests that
// the protocol makes of them.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <optional>
#include <vector>

#include "abi/rsockets/send_window.h"
#include "abi/rsockets/sizes.h"
#include "abi/rsockets/verbs_objects.h"
#include "abi/rsockets/wire.h"

namespace weft::rsockets {

// One user at a time. Functions that can fail return 0 or an errno value.
class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  // Makes everything for `id`, which has its device, and posts all receives. `id` stays the
  // caller's, and outlives this.
  int open(rdma_cm_id* id, const Sizes& sizes);

  // What the peer is told of this side.
  ConnectData connect_data() const;

  std::byte* send_buffer() { return send_memory_.data(); }
  std::byte* receive_buffer() { return receive_memory_.data(); }
  // How many data messages fit the send queue, beside what control messages need.
  uint32_t message_slots() const { return (sizes_.send_queue - kControlRequests) / 2u; }
  // How many control messages may be under way.
  static constexpr uint32_t kControlMessages = 4;
  // How many messages the peer may send at a time. Control messages take no credit, and there are
  // receives for those under way and for those that the peer has already forgotten.
  uint16_t credits() const {
    return static_cast<uint16_t>(sizes_.receive_queue - 2 * kControlMessages);
  }
  const Sizes& sizes() const { return sizes_; }

  // Half of the receive buffer, from this offset on, as the peer is told of it.
  Target half(uint32_t offset) const;
  // What the peer wrote of its buffer into entry `index`; an empty one when it wrote nothing since
  // the last call.
  Target take_target(uint32_t index);
  // What the peer wrote about memory that it mapped, `index` below mapped_slots().
  MappedTarget mapped_target(uint32_t index) const;
  uint32_t mapped_slots() const { return sizes_.mapped_slots; }

  // Requests. Each is followed by a Send of the message, whose completion is kept.
  int write(const SendWindow::Piece& piece, Message message);
  int write_small(const void* bytes, uint32_t size, uint64_t address, uint32_t key,
                  Message message);
  int send(Message message);
  // Without a message; its own completion is kept.
  int write_mapped(const SendWindow::Piece& piece);

  struct Completion {
    bool failed = false;  // the connection has ended, or is to end
    std::optional<Message> received;
    bool is_sent = false;  // one of this side's has left:
    Message sent;          // with these bytes, if it was of data
    bool mapped = false;   // or those of a write_mapped()
  };
  // The next completion, if there is one. A message that was received has its receive posted anew.
  std::optional<Completion> poll();

  // The descriptor is readable when a completion has come since. 0, or an errno value.
  int arm();
  int event_fd() const { return channel_->fd; }
  // Waits for that, or for a signal; takes the event. Another thread may use the endpoint
  // meanwhile, and none may wait as well.
  int wait();
  // Takes events that are there.
  void drain_events();

  ibv_pd* pd() const { return id_->pd; }
  // Ends the connection. Whoever waits is told.
  void disconnect() { (void)rdma_disconnect(id_); }

 private:
  static constexpr uint16_t kControlRequests = 2 * kControlMessages;

  // A Write of a piece of the send buffer, which may begin anew in the middle.
  struct PieceWrite {
    PieceWrite(const Endpoint& from, const SendWindow::Piece& piece);
    PieceWrite(const PieceWrite&) = delete;
    PieceWrite& operator=(const PieceWrite&) = delete;
    ibv_sge parts[2];
    ibv_send_wr wr{};
  };

  int post_receive(uint32_t index);
  int post(ibv_send_wr& wr);
  // `write` goes in front of it, if there is one.
  int post_with_message(ibv_send_wr* write, Message message);

  rdma_cm_id* id_ = nullptr;
  Sizes sizes_;
  Verbs<ibv_comp_channel> channel_;
  Verbs<ibv_cq> cq_;
  unsigned events_ = 0;  // taken and not acknowledged
  std::vector<std::byte> send_memory_;
  std::vector<std::byte> receive_memory_;  // and the words of messages behind it
  std::vector<std::byte> lists_memory_;    // Targets, MappedTargets behind them
  Verbs<ibv_mr> send_mr_;
  Verbs<ibv_mr> receive_mr_;
  Verbs<ibv_mr> lists_mr_;
};

}  // namespace weft::rsockets
