// As tests/verbs/uc/path_mtu_test.cc, of a connection that rdma_cm makes: either side sends
// messages that are larger than the path.
#include "tests/abi/cm_child.h"
#include "tests/abi/cm_datagram_fixture.h"
#include "tests/support/narrow_path.h"

namespace weft::test {
namespace {

constexpr size_t kMessage = 5000;
constexpr size_t kSlots = 8;

void must(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string(what) + ": " + strerror(errno));
}

OwnedEvent wait_for(rdma_event_channel* channel, rdma_cm_event_type kind) {
  OwnedEvent e = next_event(channel);
  must(e != nullptr && e->event == kind, rdma_event_str(kind));
  return e;
}

// Room for receives, and for one message that is sent at a time.
class Slots {
 public:
  explicit Slots(rdma_cm_id* id) : id_(id), memory_((kSlots + 1) * kMessage) {
    mr_ = rdma_reg_msgs(id, memory_.data(), memory_.size());
    must(mr_ != nullptr, "rdma_reg_msgs");
    for (size_t i = 0; i < kSlots; ++i) post(i);
  }
  uint8_t* out() { return memory_.data() + kSlots * kMessage; }
  const uint8_t* at(size_t i) const { return memory_.data() + i * kMessage; }
  void post(size_t i) {
    must(rdma_post_recv(id_, reinterpret_cast<void*>(i), memory_.data() + i * kMessage, kMessage,
                        mr_) == 0,
         "rdma_post_recv");
  }
  void send() {
    must(rdma_post_send(id_, nullptr, out(), kMessage, mr_, 0) == 0, "rdma_post_send");
    ibv_wc wc{};
    must(rdma_get_send_comp(id_, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "a Send");
  }

 private:
  rdma_cm_id* id_;
  std::vector<uint8_t> memory_;
  ibv_mr* mr_;
};

// Sends back what comes, for ever.
void echo(int ready) {
  const OwnedChannel channel{rdma_create_event_channel()};
  rdma_cm_id* listener = nullptr;
  must(rdma_create_id(channel.get(), &listener, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
  sockaddr_in any{};
  any.sin_family = AF_INET;
  must(rdma_bind_addr(listener, any_of(any)) == 0 && rdma_listen(listener, 1) == 0, "listen");
  tell_port(ready, listener);
  rdma_cm_id* id = wait_for(channel.get(), RDMA_CM_EVENT_CONNECT_REQUEST)->id;
  must(create_qp(id, IBV_QPT_UC) == 0, "rdma_create_qp");
  Slots slots(id);
  rdma_conn_param p = parameters();
  must(rdma_accept(id, &p) == 0, "rdma_accept");
  for (ibv_wc wc{}; rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS;) {
    std::memcpy(slots.out(), slots.at(wc.wr_id), kMessage);
    slots.post(wc.wr_id);
    slots.send();
  }
}

class NearSide {
 public:
  explicit NearSide(uint16_t port) {
    rdma_cm_id* id = nullptr;
    must(rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    id_.reset(id);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    must(inet_pton(AF_INET, NarrowPath::kFar, &to.sin_addr) == 1, "address");
    must(rdma_resolve_addr(id, nullptr, any_of(to), 2000) == 0, "rdma_resolve_addr");
    wait_for(channel_.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
    must(rdma_resolve_route(id, 2000) == 0, "rdma_resolve_route");
    wait_for(channel_.get(), RDMA_CM_EVENT_ROUTE_RESOLVED);
    must(create_qp(id, IBV_QPT_UC) == 0, "rdma_create_qp");
    slots_.emplace(id);
    rdma_conn_param p = parameters();
    must(rdma_connect(id, &p) == 0, "rdma_connect");
    wait_for(channel_.get(), RDMA_CM_EVENT_ESTABLISHED);
  }
  void send(unsigned number) {
    const auto all = message(number);
    std::copy(all.begin(), all.end(), slots_->out());
    slots_->send();
  }
  // The number of the next message that comes back, whole; nothing within the time.
  std::optional<unsigned> receive(int ms) {
    using std::chrono::steady_clock;
    const auto until = steady_clock::now() + std::chrono::milliseconds{ms};
    ibv_wc wc{};
    int n = 0;
    while ((n = ibv_poll_cq(id_->recv_cq, 1, &wc)) == 0 && steady_clock::now() < until) {
    }
    if (n == 0) return {};
    must(n == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == kMessage, "a receive");
    const uint8_t* p = slots_->at(wc.wr_id);
    const unsigned number = p[0] | static_cast<unsigned>(p[1]) << 8;
    must(std::equal(p, p + kMessage, message(number).begin()), "every byte");
    slots_->post(wc.wr_id);
    return number;
  }

 private:
  static std::vector<uint8_t> message(unsigned number) {
    auto all = bytes(kMessage, number);
    all[0] = static_cast<uint8_t>(number);
    all[1] = static_cast<uint8_t>(number >> 8);
    return all;
  }
  const OwnedChannel channel_{rdma_create_event_channel()};
  OwnedId id_;
  std::optional<Slots> slots_;
};

int talk() {
  const NarrowPath path(false);
  if (!path.made()) return kNotHere;
  must(path.enter_far(), "setns");
  const Child far([](int ready) {
    try {
      echo(ready);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "far: %s\n", e.what());
    }
  });
  must(path.enter_near(), "setns");
  NearSide near(far.await_port());
  unsigned number = 0;
  // Lost, on the way there or back, until both sides know what the path carries.
  for (; number < 400; ++number) {
    near.send(number);
    if (near.receive(50)) break;
  }
  must(number < 400, "a message comes back");
  for (const unsigned end = number + 20; ++number < end;) {
    near.send(number);
    std::optional<unsigned> back;
    do back = near.receive(10'000);
    while (back && *back < number);
    must(back == number, "each later one comes back");
  }
  must(path.towards_far().fails > 0 && path.towards_near().fails > 0, "it is narrow both ways");
  return 0;
}

TEST(CmPathMtu, BothSidesFindOutWhatThePathCarries) {
  const int result = run_apart(talk);
  if (result == kNotHere) GTEST_SKIP() << "no namespaces and routers can be made here";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace weft::test
