// The queue pair of a connection, and the rdma_cm identifier that it belongs to. Its requests are
// posted here. Each has a place in the send queue until it completes, so that the queue never has
// more than it has room for, and the completion says what it is of.
//
// A queue pair that refuses a request, or completes one with an error, is down for good.
#pragma once

#include <cstdint>

#include "sdp/rdma/completions.h"
#include "sdp/rdma/resources.h"

namespace weft::sdp {

class QueuePair {
 public:
  static constexpr uint32_t kReceives = 32;
  static constexpr uint32_t kSends = 128;
  static constexpr uint32_t kInline = 64;

  // What a completion is of.
  enum class Work : uint8_t { receive, data, control, read, write, broken = Completions::kBroken };
  // Registered memory of this side's, and what the peer has told of its own.
  struct Local {
    const std::byte* at = nullptr;
    uint32_t length = 0;
    uint32_t key = 0;
  };
  struct Remote {
    uint64_t to = 0;
    uint32_t stag = 0;
  };

  // Completions come to `member`.
  explicit QueuePair(const Completions::Member& member) : member_(member) {}

  // `id` is this one's from then on, until destroy_id().
  void own(rdma_cm_id* id) { id_ = id; }
  rdma_cm_id* id() const { return id_; }
  // False with errno.
  bool create(ibv_pd* pd, ibv_cq* queue);
  // No request completes behind it. The identifier stays.
  void destroy();
  void destroy_id();
  // Memory of the program's, for the adapter. Nothing without an identifier, or if the adapter
  // refuses it.
  Verbs<ibv_mr> lend(const std::byte* memory, size_t bytes, int access) const;
  // Nothing without an identifier.
  ibv_pd* pd() const { return id_ != nullptr ? id_->pd : nullptr; }

  // `number` comes back with the message. False: the queue pair is not there, or refuses it.
  bool post_receive(const Local& buffer, uint8_t number);
  // False: it was refused. There has to be a place.
  bool send(const Local& message);
  // The bytes, kInline at most, are copied: the caller may have them back at once.
  bool send_inline(const std::byte* message, uint32_t length);
  bool read(const Local& to, const Remote& from);
  bool write(const Local& from, const Remote& to);

  // How many more requests the send queue takes.
  uint32_t places() const { return kSends - posted_; }
  bool has_place() const { return posted_ < kSends; }
  bool all_completed() const { return posted_ == 0; }
  // RDMA Writes that have not completed.
  uint32_t writes() const { return writes_; }
  void completed(Work work, bool ok);

  bool down() const { return down_; }
  void set_down() { down_ = true; }

 private:
  bool exists() const { return id_ != nullptr && id_->qp != nullptr; }
  bool post(Work work, ibv_wr_opcode opcode, const Local& local, const Remote& remote,
            unsigned flags = 0);

  const Completions::Member& member_;
  rdma_cm_id* id_ = nullptr;
  uint32_t posted_ = 0;  // to the send queue, and not completed
  uint32_t writes_ = 0;  // of these
  bool down_ = false;
};

}  // namespace weft::sdp
