// Queue pairs of one process, connected by hand. What programs see of them is in tests/verbs.

#include "verbs/queue_pair.h"

#include "tests/unit/verbs/fixture.h"
#include "verbs/send_posting.h"

namespace weft::verbs {
namespace {

const Gid kHere = Gid::from_ipv4(0x7f000001);

device::Device one_address() {
  device::Device d;
  d.gids.push_back({.gid = kHere, .interface = "lo"});
  return d;
}

class QueuePairTest : public VerbsTest {
 protected:
  QueuePairTest()
      : here(adapter(), one_address()), domain(here), cq(here, 4096, nullptr, nullptr, false) {}

  std::unique_ptr<QueuePair> make() {
    QpInit init{
        .context = &here,
        .pd = &domain,
        .send_cq = &cq,
        .recv_cq = &cq,
        .type = QpType::rc,
        .limits = {.max_send_wr = 64, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
    auto qp = QueuePair::create(init);
    EXPECT_TRUE(qp.ok());
    return std::move(*qp);
  }
  static void to_rts(QueuePair& qp) {
    using namespace qp_mask;
    constexpr uint32_t kRights = access::kRemoteRead | access::kRemoteWrite | access::kRemoteAtomic;
    QpAttributes a{.access = kRights, .port = device::kPort};
    a.state = QpState::init;
    ASSERT_TRUE(qp.modify(a, kState | kPkeyIndex | kPort | kAccess).ok());
    a.state = QpState::rtr;
    a.path_mtu = 3;
    a.av = {.global = true, .dgid = kHere, .port = device::kPort};
    constexpr uint32_t kRtr =
        kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer;
    ASSERT_TRUE(qp.modify(a, kRtr).ok());
    a.state = QpState::rts;
    constexpr uint32_t kRts = kState | kTimeout | kRetryCnt | kRnrRetry | kSqPsn | kMaxQpRdAtomic;
    ASSERT_TRUE(qp.modify(a, kRts).ok());
  }
  // To itself is enough for requests that send nothing.
  static void connect(QueuePair& qp) {
    auto tcp = port::TcpStream::to_itself(kHere);
    ASSERT_TRUE(tcp.ok());
    auto h = qp.engine().hold();
    qp.transport().stream_adopter()->adopt(
        h.token(), {.tcp = std::move(*tcp),
                    .config = {.mpa = {.extension = true, .ird = 1, .ord = 1}, .initiator = true},
                    .early = {}});
  }

  Context here;
  ProtectionDomain domain;
  CompletionQueue cq;
};

TEST_F(QueuePairTest, IsFoundByItsNumber) {
  auto qp = make();
  const Qpn number = qp->number();
  engine::Engine& engine = qp->engine();
  EXPECT_EQ(adapter().engine_of(number), &engine);
  {
    auto h = engine.hold();
    EXPECT_EQ(adapter().find(h.token(), number), qp.get());
    EXPECT_EQ(adapter().find(h.token(), make_qpn(port_of(number), 255)), nullptr);
  }
  qp.reset();
  auto h = engine.hold();
  EXPECT_EQ(adapter().find(h.token(), number), nullptr);
}

// A number that is set aside belongs to nobody yet: who asks for it meets no half-made queue pair.
TEST_F(QueuePairTest, AReservedNumberIsNobodys) {
  engine::Engine& engine = adapter().engine(0);
  const auto number = adapter().reserve_number(engine);
  ASSERT_TRUE(number.ok());
  auto h = engine.hold();
  EXPECT_EQ(adapter().find(h.token(), *number), nullptr);
  adapter().release_number(h.token(), *number, false);
}

// Posting frees what earlier binds have left behind.
TEST_F(QueuePairTest, ManyBindsLeaveLittleBehind) {
  Buffer memory(4096);
  auto region = adapter().memory().add(domain, memory.data(), memory.size(),
                                       reinterpret_cast<uintptr_t>(memory.data()),
                                       access::kLocalWrite | access::kMwBind);
  ASSERT_TRUE(region.ok());
  const auto window = adapter().memory().reserve_window();
  ASSERT_TRUE(window.ok());
  auto qp = make();
  to_rts(*qp);
  connect(*qp);
  Stag stag = window->stag;
  for (int i = 0; i < 3000; ++i) {
    const Stag fresh = MemoryTable::next_key(stag);
    SendPosting posting{*qp};
    ASSERT_TRUE(posting
                    .add_bind({.window = window->id,
                               .old_stag = stag,
                               .fresh_stag = fresh,
                               .lkey = (*region)->stag,
                               .address = reinterpret_cast<uintptr_t>(memory.data()),
                               .length = 100,
                               .access = access::kRemoteRead,
                               .type_2 = true},
                              static_cast<uint64_t>(i), true, false)
                    .ok());
    posting.commit();
    const auto done = poll(cq, 1);
    ASSERT_EQ(done.size(), 1U);
    ASSERT_EQ(done[0].status, Status::success);
    stag = fresh;
  }
  EXPECT_LT(adapter().memory().retired(), 1000U);
  qp.reset();
  adapter().memory().release_window(stag);
  EXPECT_TRUE(adapter().memory().remove(*region).ok());
}

}  // namespace
}  // namespace weft::verbs
