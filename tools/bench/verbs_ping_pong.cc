// One message back and forth, by Send or by Write with immediate.
#include <arpa/inet.h>

#include <array>

#include "bench/verbs_endpoint.h"
#include "bench/work.h"
#include "kit/clock.h"

namespace weft::bench {
namespace {

constexpr uint32_t kReceives = 32;     // posted ahead
constexpr uint32_t kSends = 64;        // room of the send queue
constexpr uint64_t kSignalEvery = 16;  // so that the send queue is emptied in time
constexpr uint32_t kLastMessage = 1;   // immediate data

EndpointNeeds needs_of(const Order& order) {
  return {.service = order.spec.service,
          .wait = order.spec.wait,
          .send_requests = kSends,
          .receives = kReceives,
          .inline_bytes = static_cast<uint32_t>(order.spec.size),
          .message = order.spec.size};
}

class VerbsPingPong final : public Work {
 public:
  explicit VerbsPingPong(const Order& order);
  void connect(const Channel& peer) override;
  void clear() override { endpoint_.sink().clear(); }
  Done initiate(const Phase& phase) override;
  void serve(const Phase& phase) override;
  bool intact(uint64_t first, uint64_t count) const override {
    return endpoint_.sink().holds(first, count);
  }

 private:
  void post_send(bool last);
  void post_receive();
  // Sleeps or looks until the next message is here. True when it is the last one.
  bool await_message();

  const Spec spec_;
  VerbsEndpoint endpoint_;
  Cursor sent_;
  Cursor receives_;       // posted
  uint32_t arrived_ = 0;  // and not yet asked for by await_message()
  bool last_arrived_ = false;
};

VerbsPingPong::VerbsPingPong(const Order& order)
    : spec_(order.spec),
      endpoint_(order.library, needs_of(order)),
      sent_(endpoint_.source()),
      receives_(endpoint_.sink()) {
  endpoint_.source().fill();
}

void VerbsPingPong::connect(const Channel& peer) {
  endpoint_.add_queue_pairs(peer, 1);
  for (uint32_t i = 0; i < kReceives; ++i) post_receive();
  peer.send("ready");
  (void)peer.receive();
}

void VerbsPingPong::post_receive() {
  std::array<ibv_sge, 2> places{endpoint_.sink_at(receives_.offset(), spec_.size)};
  ibv_recv_wr wr{};
  wr.sg_list = places.data();
  if (spec_.operation == Operation::send_ping_pong) wr.num_sge = 1;
  if (spec_.service == Service::ud) {
    places = {endpoint_.header_place(), places[0]};
    wr.num_sge = 2;
  }
  receives_.advance();
  endpoint_.post_receive(&wr);
}

void VerbsPingPong::post_send(bool last) {
  ibv_sge place = endpoint_.source_at(sent_.offset(), spec_.size);
  ibv_send_wr wr{};
  wr.sg_list = &place;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_INLINE;
  if (sent_.sequence() % kSignalEvery == 0) wr.send_flags |= IBV_SEND_SIGNALED;
  wr.imm_data = htonl(last ? kLastMessage : 0);
  if (spec_.operation == Operation::write_ping_pong) {
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.wr.rdma.remote_addr = endpoint_.remote_sink() + sent_.offset();
    wr.wr.rdma.rkey = endpoint_.remote_sink_key();
  } else {
    wr.opcode = last ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    if (spec_.service == Service::ud) endpoint_.address(wr);
  }
  sent_.advance();
  endpoint_.post_send(&wr);
}

bool VerbsPingPong::await_message() {
  while (arrived_ == 0) {
    for (const ibv_wc& wc : endpoint_.completions()) {
      if ((wc.opcode & IBV_WC_RECV) == 0) continue;
      ++arrived_;
      last_arrived_ = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 && ntohl(wc.imm_data) == kLastMessage;
    }
  }
  --arrived_;
  return last_arrived_;
}

Done VerbsPingPong::initiate(const Phase& phase) {
  const auto there = [this](bool last) {
    post_send(last);
    (void)await_message();
  };
  return ping_pong(phase, there, [this] { post_receive(); });
}

// The answer goes out first: a receive is there for the next message anyhow.
void VerbsPingPong::serve(const Phase&) {
  for (bool last = false; !last;) {
    last = await_message();
    post_send(last);
    post_receive();
  }
}

}  // namespace

std::unique_ptr<Work> make_verbs_ping_pong(const Order& order) {
  return std::make_unique<VerbsPingPong>(order);
}

}  // namespace weft::bench
