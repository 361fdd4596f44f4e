// The chunk test over a queue pair: RDMA Writes, a Send behind them, a Send back.
#include <algorithm>
#include <array>

#include "bench/chunks.h"
#include "bench/verbs_endpoint.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

constexpr uint64_t kSignalEvery = 16;  // answers, so that the send queue is emptied in time
constexpr uint32_t kAnswers = 64;      // room of the target's send queue

EndpointNeeds needs_of(const Order& order) {
  // A chunk may be answered before the program has seen that its Send completed.
  const auto chunks = static_cast<uint32_t>(kChunkBuffers + 1);
  return {.wait = order.spec.wait,
          .send_requests = order.role == Role::initiator
                               ? chunks * requests_of_chunk(order.spec.size, order.spec.piece)
                               : kAnswers,
          .receives = VerbsEndpoint::kNotes,
          .inline_bytes = sizeof(Note),
          .message = order.spec.size,
          .slots = kChunkBuffers,
          .notes = true};
}

class VerbsChunks final : public Work {
 public:
  explicit VerbsChunks(const Order& order)
      : spec_(order.spec),
        initiator_(order.role == Role::initiator),
        endpoint_(order.library, needs_of(order)),
        proof_(endpoint_.sink()) {
    if (initiator_) endpoint_.source().fill();
  }

  void connect(const Channel& peer) override;
  void clear() override { endpoint_.sink().clear(); }
  Done initiate(const Phase& phase) override {
    return send_chunks(
        phase, next_, [this](uint64_t chunk, bool last) { fill(chunk, last); },
        [this](uint64_t chunk) { expect_chunk(await_note(), chunk); });
  }
  void serve(const Phase& phase) override {
    take_chunks(
        phase, next_, proof_, [this](uint64_t) { return await_note(); },
        [this](const Note& note) { post_note(note, note.chunk % kSignalEvery == 0); });
  }
  bool intact(uint64_t first, uint64_t count) const override {
    return initiator_ || proof_.intact(first, count);
  }

 private:
  void fill(uint64_t chunk, bool last);
  void post_note(const Note& note, bool signaled);
  void post_receive(size_t place);
  Note await_note();
  void look_at_completions();

  const Spec spec_;
  const bool initiator_;
  VerbsEndpoint endpoint_;
  ChunkProof proof_;
  uint64_t next_ = 0;
  uint64_t sent_ = 0;  // chunks whose Sends have completed, of the initiator
  // Notes that have come and that nobody has asked for yet: number `taken_` up to before `come_`,
  // each at its number modulo their places.
  std::array<Note, VerbsEndpoint::kNotes> notes_{};
  uint64_t come_ = 0;
  uint64_t taken_ = 0;
};

void VerbsChunks::connect(const Channel& peer) {
  endpoint_.add_queue_pairs(peer, 1);
  for (size_t i = 0; i < VerbsEndpoint::kNotes; ++i) post_receive(i);
  // No Send before there are receives.
  peer.send("ready");
  (void)peer.receive();
}

void VerbsChunks::post_receive(size_t place) {
  ibv_sge sge = endpoint_.note_place(place);
  ibv_recv_wr wr{};
  wr.wr_id = place;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  endpoint_.post_receive(&wr);
}

void VerbsChunks::post_note(const Note& note, bool signaled) {
  ibv_sge place{.addr = reinterpret_cast<uintptr_t>(&note), .length = sizeof note, .lkey = 0};
  ibv_send_wr wr{};
  wr.sg_list = &place;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_INLINE;
  if (signaled) wr.send_flags |= IBV_SEND_SIGNALED;
  endpoint_.post_send(&wr);
}

void VerbsChunks::fill(uint64_t chunk, bool last) {
  while (chunk - sent_ > kChunkBuffers) look_at_completions();
  const uint64_t buffer = chunk % kChunkBuffers * spec_.size;
  for (uint64_t at = 0; at < spec_.size; at += spec_.piece) {
    ibv_sge place = endpoint_.source_at(buffer + at, std::min(spec_.piece, spec_.size - at));
    ibv_send_wr wr{};
    wr.sg_list = &place;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = endpoint_.remote_sink() + buffer + at;
    wr.wr.rdma.rkey = endpoint_.remote_sink_key();
    endpoint_.post_send(&wr);
  }
  post_note({.chunk = chunk, .last = last ? 1U : 0U}, true);
}

// The receive is posted again at once: at most two chunks are without an answer, so there is always
// one for the next note.
void VerbsChunks::look_at_completions() {
  for (const ibv_wc& wc : endpoint_.completions()) {
    if ((wc.opcode & IBV_WC_RECV) == 0) {
      ++sent_;
      continue;
    }
    if (wc.byte_len != sizeof(Note)) throw kit::Failure{"a Send has not the length of a note"};
    notes_[come_++ % notes_.size()] = endpoint_.note(wc.wr_id);
    post_receive(wc.wr_id);
  }
}

Note VerbsChunks::await_note() {
  while (taken_ == come_) look_at_completions();
  return notes_[taken_++ % notes_.size()];
}

}  // namespace

std::unique_ptr<Work> make_verbs_chunks(const Order& order) {
  return std::make_unique<VerbsChunks>(order);
}

}  // namespace weft::bench
