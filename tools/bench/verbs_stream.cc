// A stream of Writes, Reads or Sends from or to one queue pair that loses nothing, with a number of
// requests in flight.
#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "bench/verbs_endpoint.h"
#include "bench/work.h"
#include "kit/clock.h"

namespace weft::bench {
namespace {

constexpr uint32_t kReceives = 256;   // posted ahead by the target of Sends
constexpr uint32_t kRepost = 32;      // receives of one ibv_post_recv
constexpr uint32_t kLastMessage = 1;  // immediate data of the last Send of a phase

EndpointNeeds needs_of(const Order& order) {
  const bool receives = order.spec.operation == Operation::send && order.role == Role::target;
  return {.service = order.spec.service,
          .wait = order.spec.wait,
          .send_requests = order.spec.depth,
          .receives = receives ? kReceives : 1,
          .message = order.spec.size,
          .slots = slots_of(order.spec)};
}

class VerbsStream final : public Work {
 public:
  explicit VerbsStream(const Order& order);
  void connect(const Channel& peer) override;
  void clear() override { endpoint_.sink().clear(); }
  Done initiate(const Phase& phase) override;
  void serve(const Phase& phase) override;
  bool intact(uint64_t first, uint64_t count) const override {
    return !takes_data_ || endpoint_.sink().holds(first, count);
  }

 private:
  void prepare_requests();
  void post(uint64_t posted, bool signaled, bool last);
  void post_receives(uint32_t count);

  const Spec spec_;
  const bool initiator_;
  const bool takes_data_;
  VerbsEndpoint endpoint_;
  Cursor cursor_;  // place of the next request or receive that is posted
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> segments_;
  uint64_t local_ = 0;  // where the regions of the requests begin
  uint64_t remote_ = 0;
};

VerbsStream::VerbsStream(const Order& order)
    : spec_(order.spec),
      initiator_(order.role == Role::initiator),
      takes_data_(initiator_ == (order.spec.operation == Operation::read)),
      endpoint_(order.library, needs_of(order)),
      cursor_(endpoint_.source()),
      requests_(spec_.list),
      segments_(spec_.list) {
  if (!takes_data_) endpoint_.source().fill();
}

void VerbsStream::connect(const Channel& peer) {
  endpoint_.add_queue_pairs(peer, 1);
  if (initiator_) prepare_requests();
  if (spec_.operation == Operation::send && !initiator_) {
    for (uint32_t i = 0; i < kReceives; i += kRepost) post_receives(kRepost);
  }
  // No Send before there are receives.
  peer.send("ready");
  (void)peer.receive();
}

// All that stays the same from post to post.
void VerbsStream::prepare_requests() {
  const bool read = spec_.operation == Operation::read;
  const ibv_sge place =
      read ? endpoint_.sink_at(0, spec_.size) : endpoint_.source_at(0, spec_.size);
  local_ = place.addr;
  remote_ = read ? endpoint_.remote_source() : endpoint_.remote_sink();
  for (uint32_t i = 0; i < spec_.list; ++i) {
    segments_[i] = place;
    ibv_send_wr& wr = requests_[i];
    wr.next = i + 1 < spec_.list ? &requests_[i + 1] : nullptr;
    wr.sg_list = &segments_[i];
    wr.num_sge = 1;
    wr.imm_data = htonl(kLastMessage);
    if (spec_.operation == Operation::send) {
      wr.opcode = IBV_WR_SEND;
      if (spec_.service == Service::ud) endpoint_.address(wr);
    } else {
      wr.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
      wr.wr.rdma.rkey = read ? endpoint_.remote_source_key() : endpoint_.remote_sink_key();
    }
  }
}

void VerbsStream::post(uint64_t posted, bool signaled, bool last) {
  const bool send = spec_.operation == Operation::send;
  for (uint32_t i = 0; i < spec_.list; ++i) {
    requests_[i].wr_id = posted + i;
    segments_[i].addr = local_ + cursor_.offset();
    if (!send) requests_[i].wr.rdma.remote_addr = remote_ + cursor_.offset();
    cursor_.advance();
  }
  ibv_send_wr& final_one = requests_.back();
  final_one.send_flags = signaled ? unsigned{IBV_SEND_SIGNALED} : 0U;
  if (send) final_one.opcode = last ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  endpoint_.post_send(requests_.data());
}

Done VerbsStream::initiate(const Phase& phase) {
  const uint64_t signal_every = std::max(spec_.list, spec_.depth / 4);
  const int64_t start = kit::now_ns();
  const int64_t end = start + phase.duration_ns;
  uint64_t posted = 0;
  uint64_t completed = 0;
  bool time_over = false;
  bool last = false;
  while (!last || completed < posted) {
    while (!last && posted - completed + spec_.list <= spec_.depth) {
      last = phase.warm_up ? posted + spec_.list >= phase.messages : time_over;
      const bool signaled = last || (posted + spec_.list) % signal_every == 0;
      post(posted, signaled, last);
      posted += spec_.list;
    }
    completed = endpoint_.completions().back().wr_id + 1;
    time_over = kit::now_ns() >= end;
  }
  return {.messages = posted, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
}

void VerbsStream::post_receives(uint32_t count) {
  std::array<ibv_recv_wr, kRepost> list{};
  std::array<ibv_sge, size_t{2} * kRepost> places{};
  ibv_sge* place = places.data();
  for (uint32_t i = 0; i < count; ++i) {
    list[i].next = i + 1 < count ? &list[i + 1] : nullptr;
    list[i].sg_list = place;
    if (spec_.service == Service::ud) *place++ = endpoint_.header_place();
    *place++ = endpoint_.sink_at(cursor_.offset(), spec_.size);
    list[i].num_sge = static_cast<int>(place - list[i].sg_list);
    cursor_.advance();
  }
  endpoint_.post_receive(list.data());
}

// Towards Writes and Reads the target's program does nothing: its adapter does.
void VerbsStream::serve(const Phase&) {
  if (spec_.operation != Operation::send) return;
  for (bool last = false; !last;) {
    const auto done = endpoint_.completions();
    for (const ibv_wc& wc : done) last |= (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
    post_receives(static_cast<uint32_t>(done.size()));
  }
}

}  // namespace

std::unique_ptr<Work> make_verbs_stream(const Order& order) {
  return std::make_unique<VerbsStream>(order);
}

}  // namespace weft::bench
