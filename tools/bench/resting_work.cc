// Connections that carry nothing: what they cost all the same.
#include "bench/rest.h"
#include "bench/verbs_endpoint.h"
#include "bench/work.h"
#include "kit/clock.h"
#include "measure/own_memory.h"

namespace weft::bench {
namespace {

// A queue pair that has worked and now rests.
class Idle final : public Work {
 public:
  explicit Idle(const Order& order) : traffic_(make_verbs_stream(as_writes(order))) {}
  void connect(const Channel& peer) override { traffic_->connect(peer); }
  void clear() override { sleep_ns(kSettle); }
  Done initiate(const Phase& phase) override {
    if (phase.warm_up) return traffic_->initiate(phase);
    const int64_t start = kit::now_ns();
    sleep_ns(phase.duration_ns);
    return {.messages = 0, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
  }
  void serve(const Phase& phase) override {
    if (phase.warm_up) traffic_->serve(phase);
  }
  bool intact(uint64_t, uint64_t) const override { return true; }

 private:
  static Order as_writes(Order order) {
    order.spec.operation = Operation::write;
    return order;
  }
  std::unique_ptr<Work> traffic_;
};

// Many queue pairs with the smallest queues, each connected and used once.
class Memory final : public Work {
 public:
  explicit Memory(const Order& order)
      : order_(order),
        endpoint_(
            order.library,
            {.wait = Wait::poll, .send_requests = 1, .receives = 1, .message = order.spec.size}) {
    endpoint_.source().fill();
    endpoint_.sink().clear();
  }

  void connect(const Channel& peer) override {
    // What the first queue pair brings with it belongs to the process.
    add(peer, 0, 1);
    const double user = measure::resident_bytes();
    const double kernel = measure::kernel_bytes();
    agree(peer);
    const uint32_t count = order_.spec.connections;
    add(peer, 1, count);
    extra_["kernel_bytes_per_qp"] = (measure::kernel_bytes() - kernel) / count;
    extra_["user_bytes_per_qp"] = (measure::resident_bytes() - user) / count;
    agree(peer);
  }
  Done initiate(const Phase&) override { return {}; }
  void serve(const Phase&) override {}
  bool intact(uint64_t, uint64_t) const override { return true; }
  std::map<std::string, double> extra() const override { return extra_; }

 private:
  static void agree(const Channel& peer) {
    peer.send("agreed");
    (void)peer.receive();
  }

  void add(const Channel& peer, size_t first, uint32_t count) {
    endpoint_.add_queue_pairs(peer, count);
    if (order_.role == Role::initiator) {
      for (size_t i = first; i < first + count; ++i) write_once(i);
    }
    agree(peer);
    sleep_ns(kSettle);
    agree(peer);
  }

  // Only when it completes the connection is surely there.
  void write_once(size_t qp) {
    ibv_sge place = endpoint_.source_at(0, order_.spec.size);
    ibv_send_wr wr{};
    wr.sg_list = &place;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = endpoint_.remote_sink();
    wr.wr.rdma.rkey = endpoint_.remote_sink_key();
    endpoint_.post_send(&wr, qp);
    (void)endpoint_.completions();
  }

  const Order order_;
  VerbsEndpoint endpoint_;
  std::map<std::string, double> extra_;
};

}  // namespace

std::unique_ptr<Work> make_idle(const Order& order) {
  return std::make_unique<Idle>(order);
}
std::unique_ptr<Work> make_memory(const Order& order) {
  return std::make_unique<Memory>(order);
}

}  // namespace weft::bench
