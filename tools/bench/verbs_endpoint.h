// One side's device, memory and queue pairs, brought up in InfiniBand's way: the two sides tell
// each other GID, queue pair number and memory, and move their queue pairs to RTS by ibv_modify_qp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/channel.h"
#include "bench/note.h"
#include "bench/region.h"
#include "bench/spec.h"
#include "kit/queue_pair.h"

namespace weft::bench {

struct EndpointNeeds {
  Service service = Service::rc;
  Wait wait = Wait::event;
  uint32_t send_requests = 64;
  uint32_t receives = 1;
  uint32_t inline_bytes = 0;
  uint64_t message = 64;     // bytes; sizes the two regions
  uint64_t slots = 0;        // of each region; 0: as many as it likes
  uint32_t queue_pairs = 1;  // that work at the same time
  bool notes = false;        // whether short messages are received, too
  // The other side stands for so many, at addresses of the loopback that follow its own. 0: one.
  uint32_t peers = 0;
};

class VerbsEndpoint {
 public:
  static constexpr size_t kNotes = 4;

  VerbsEndpoint(const std::string& library, const EndpointNeeds& needs);
  VerbsEndpoint(const VerbsEndpoint&) = delete;
  VerbsEndpoint& operator=(const VerbsEndpoint&) = delete;
  ~VerbsEndpoint();

  // Makes `count` more queue pairs and connects each with one of the peer's, in order; both sides
  // call it alike. When it returns both sides are in RTS.
  void add_queue_pairs(const Channel& peer, uint32_t count);
  // Destroys all of them.
  void drop_queue_pairs();
  ibv_qp* qp(size_t i = 0) const { return qps_[i]; }

  Region& source() { return source_; }
  Region& sink() { return sink_; }
  const Region& sink() const { return sink_; }
  ibv_sge source_at(uint64_t offset, uint64_t length) const;
  ibv_sge sink_at(uint64_t offset, uint64_t length) const;
  // Where the 40 bytes before a UD message go.
  ibv_sge header_place() const;
  // Where a short message is received, and what came there; i is less than kNotes.
  ibv_sge note_place(size_t i) const;
  const Note& note(size_t i) const { return notes_[i]; }
  // The peer's, for RDMA.
  uint64_t remote_source() const { return remote_source_; }
  uint32_t remote_source_key() const { return remote_source_key_; }
  uint64_t remote_sink() const { return remote_sink_; }
  uint32_t remote_sink_key() const { return remote_sink_key_; }

  // `list` is one or more requests; throws kit::Failure when one is refused.
  void post_send(ibv_send_wr* list, size_t qp = 0);
  void post_receive(ibv_recv_wr* list);
  // Addresses a Send to the peer's queue pair, or to one of them; of UD alone. RD's requests are by
  // post_send().
  void address(ibv_send_wr& request, size_t peer = 0) const;
  // What has completed by now, if anything. A request may have failed only where `lost` is given:
  // it counts those that the retries did not save.
  std::span<const ibv_wc> completions_now(uint64_t* lost = nullptr);
  // Sleeps until something completes, `other_fd` turns readable or the time is over; the caller
  // looks. False: the completions are not why it woke up, or not alone. Takes Wait::event.
  bool sleep(int other_fd, int most_ms);
  // What has completed, at least one: looks all the time or sleeps on the completion channel, as
  // was asked for. Throws kit::Failure for a completion in error. Good until the next call.
  std::span<const ibv_wc> completions(uint64_t* lost = nullptr);

 private:
  static constexpr int kBatch = 32;

  ibv_qp* make_queue_pair();
  void create_queue_pair();
  void post_one_by_one(const ibv_send_wr* list);
  void connect(ibv_qp* qp, const kit::RawGid& peer_gid, uint32_t peer_qpn);
  int poll(uint64_t* lost = nullptr);
  void sleep();

  kit::VerbsLibrary verbs_;
  EndpointNeeds needs_;
  Region source_;
  Region sink_;
  ibv_context* context_;
  ibv_pd* pd_ = nullptr;
  ibv_mr* source_mr_ = nullptr;
  ibv_mr* sink_mr_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  std::vector<ibv_qp*> qps_;
  std::array<std::byte, 40> header_{};
  ibv_mr* header_mr_ = nullptr;
  std::array<Note, kNotes> notes_{};
  ibv_mr* notes_mr_ = nullptr;
  std::vector<ibv_ah*> ahs_;  // to each peer
  uint32_t peer_qpn_ = 0;
  std::array<ibv_wc, kBatch> wc_;
  bool armed_ = false;
  uint64_t remote_source_ = 0;
  uint32_t remote_source_key_ = 0;
  uint64_t remote_sink_ = 0;
  uint32_t remote_sink_key_ = 0;
};

}  // namespace weft::bench
