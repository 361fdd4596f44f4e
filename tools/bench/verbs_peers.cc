// Small messages to many peers, one after the other: what the number of peers costs. The other side
// stands for all of them, at so many addresses of the host: a channel leads to an address and port.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "bench/rest.h"
#include "bench/verbs_endpoint.h"
#include "bench/work.h"
#include "kit/clock.h"
#include "measure/own_memory.h"

namespace weft::bench {
namespace {

constexpr uint32_t kReceives = 4096;  // of UD, posted ahead by the target
constexpr uint32_t kRepost = 32;      // receives of one ibv_post_recv

double sockets_of_this_process() {
  double n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat s {};
    if (::stat(entry.path().c_str(), &s) == 0 && S_ISSOCK(s.st_mode)) ++n;
  }
  return n;
}

EndpointNeeds needs_of(const Order& order) {
  const bool ud = order.spec.service == Service::ud;
  return {.service = order.spec.service,
          .wait = Wait::poll,
          // All peers have a share of UD's one queue.
          .send_requests = order.spec.depth * (ud ? 16 : 1),
          .receives = ud && order.role == Role::target ? kReceives : 1,
          .message = order.spec.size,
          .queue_pairs = ud ? 1 : order.spec.connections + 1,
          .peers = order.role == Role::initiator ? order.spec.connections + 1 : 0};
}

class VerbsPeers final : public Work {
 public:
  explicit VerbsPeers(const Order& order)
      : spec_(order.spec),
        initiator_(order.role == Role::initiator),
        needs_(needs_of(order)),
        endpoint_(order.library, needs_),
        under_way_(is_ud() ? 1 : spec_.connections + 1) {
    endpoint_.source().fill();
  }

  void connect(const Channel& peer) override;
  void clear() override { received_ = 0; }
  Done initiate(const Phase& phase) override;
  void serve(const Phase&) override { serve_until_told(); }
  bool intact(uint64_t, uint64_t) const override { return true; }
  std::map<std::string, double> extra() const override {
    auto all = extra_;
    if (is_ud() && !initiator_) all["received"] = static_cast<double>(received_);
    return all;
  }

 private:
  bool is_ud() const { return spec_.service == Service::ud; }
  void post_receives(uint32_t count);
  void take();
  void serve_until_told();
  void tell_each(uint32_t first, uint32_t count);
  void post(size_t peer);
  void post_next() { post(1 + posted_++ % spec_.connections); }
  void look();
  void finish() {
    while (std::any_of(under_way_.begin(), under_way_.end(), [](uint32_t n) { return n > 0; })) {
      look();
    }
  }

  const Spec spec_;
  const bool initiator_;
  const EndpointNeeds needs_;
  VerbsEndpoint endpoint_;
  const Channel* peer_ = nullptr;
  std::vector<uint32_t> under_way_;  // of each queue pair
  uint64_t posted_ = 0;
  uint64_t received_ = 0;
  std::map<std::string, double> extra_;
};

void VerbsPeers::connect(const Channel& peer) {
  peer_ = &peer;
  const double sockets = sockets_of_this_process();
  endpoint_.add_queue_pairs(peer, 1);
  if (is_ud() && !initiator_) {
    for (uint32_t i = 0; i < kReceives; i += kRepost) post_receives(kRepost);
  }
  // What the first peer brings with it belongs to the process, and not to those that count.
  tell_each(0, 1);
  const double user = measure::resident_bytes();
  const double kernel = measure::kernel_bytes();
  if (!is_ud()) endpoint_.add_queue_pairs(peer, spec_.connections);
  tell_each(1, spec_.connections);
  const auto count = static_cast<double>(spec_.connections);
  extra_["user_bytes_per_peer"] = (measure::resident_bytes() - user) / count;
  extra_["kernel_bytes_per_peer"] = (measure::kernel_bytes() - kernel) / count;
  extra_["sockets"] = sockets_of_this_process() - sockets;
}

// Each of these peers gets something, and rests then.
void VerbsPeers::tell_each(uint32_t first, uint32_t count) {
  peer_->send("ready");
  (void)peer_->receive();
  if (initiator_) {
    for (uint32_t i = first; i < first + count; ++i) post(i);
    finish();
    peer_->send("sent");
  } else {
    serve_until_told();
    (void)peer_->receive();
  }
  sleep_ns(kSettle);
}

void VerbsPeers::post(size_t peer) {
  const size_t qp = is_ud() ? 0 : peer;
  while (under_way_[qp] >= needs_.send_requests) look();
  ibv_sge place = endpoint_.source_at(0, spec_.size);
  ibv_send_wr wr{};
  wr.wr_id = qp;
  wr.sg_list = &place;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (is_ud()) {
    wr.opcode = IBV_WR_SEND;
    endpoint_.address(wr, peer);
  } else {
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = endpoint_.remote_sink();
    wr.wr.rdma.rkey = endpoint_.remote_sink_key();
  }
  endpoint_.post_send(&wr, qp);
  ++under_way_[qp];
}

void VerbsPeers::look() {
  for (const ibv_wc& wc : endpoint_.completions_now()) --under_way_[wc.wr_id];
}

Done VerbsPeers::initiate(const Phase& phase) {
  constexpr uint64_t kBetweenLooks = 64;
  const int64_t start = kit::now_ns();
  const int64_t end = start + phase.duration_ns;
  uint64_t messages = 0;
  while (phase.warm_up ? messages < phase.messages
                       : messages % kBetweenLooks != 0 || kit::now_ns() < end) {
    post_next();
    ++messages;
  }
  finish();
  return {.messages = messages, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
}

void VerbsPeers::post_receives(uint32_t count) {
  std::array<ibv_recv_wr, kRepost> list{};
  std::array<ibv_sge, size_t{2} * kRepost> places{};
  for (uint32_t i = 0; i < count; ++i) {
    places[2 * i] = endpoint_.header_place();
    places[2 * i + 1] = endpoint_.sink_at(0, spec_.size);
    list[i].next = i + 1 < count ? &list[i + 1] : nullptr;
    list[i].sg_list = &places[2 * i];
    list[i].num_sge = 2;
  }
  endpoint_.post_receive(list.data());
}

void VerbsPeers::take() {
  const auto done = endpoint_.completions_now();
  if (done.empty()) return;
  received_ += done.size();
  post_receives(static_cast<uint32_t>(done.size()));
}

// Until the initiator says that it has sent all; what plain UD has on the way then comes soon.
void VerbsPeers::serve_until_told() {
  constexpr int64_t kLastOnes = 50'000'000;
  const auto told = [&] {
    pollfd p{.fd = peer_->fd(), .events = POLLIN, .revents = 0};
    // Towards Writes the program does nothing.
    return ::poll(&p, 1, is_ud() ? 0 : -1) > 0;
  };
  while (!told()) {
    for (int i = 0; is_ud() && i < 64; ++i) take();
  }
  for (const int64_t end = kit::now_ns() + kLastOnes; is_ud() && kit::now_ns() < end;) take();
}

}  // namespace

std::unique_ptr<Work> make_verbs_peers(const Order& order) {
  return std::make_unique<VerbsPeers>(order);
}

}  // namespace weft::bench
