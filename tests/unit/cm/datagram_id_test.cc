// Ids of RDMA_PS_UDP that ask each other for a queue pair; the answer needs one. What a program
// does with the answer is asked in tests/abi.

#include "cm/datagram_id.h"

#include "cm/core.h"
#include "tests/unit/cm/ids.h"
#include "verbs/context.h"

namespace weft::cm {
namespace {

constexpr Gid kHere = Gid::from_ipv4(0x7f000001);

device::Device one_address() {
  device::Device d;
  d.gids.push_back({.gid = kHere, .interface = "lo"});
  return d;
}

class DatagramIdTest : public IdsTest {
 protected:
  DatagramIdTest()
      : here_(**adapter(), one_address()), pd_(here_), cq_(here_, 16, nullptr, nullptr, false) {
    verbs::QpInit init{
        .context = &here_,
        .pd = &pd_,
        .send_cq = &cq_,
        .recv_cq = &cq_,
        .type = verbs::QpType::ud,
        .limits = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    auto qp = verbs::QueuePair::create(init);
    EXPECT_TRUE(qp.ok());
    qp_ = std::move(*qp);
    using namespace verbs::qp_mask;
    const verbs::QpAttributes a{
        .state = verbs::QpState::init, .qkey = kDefaultQKey.value(), .port = device::kPort};
    EXPECT_TRUE(qp_->modify(a, kState | kPkeyIndex | kPort | kQkey).ok());
  }
  Id& asked(Id& client, const port::Address& to) {
    resolve(client, to);
    client.set_device(here_);
    EXPECT_EQ(client.connect(nullptr, {.private_data = bytes_of("who?")}), 0);
    const TakenEvent request = await(EventKind::connect_request);
    EXPECT_EQ(request->parameters.private_data, bytes_of("who?"));
    request->id->set_device(here_);
    return *request->id;
  }

  verbs::Context here_;
  verbs::ProtectionDomain pd_;
  verbs::CompletionQueue cq_;
  std::unique_ptr<verbs::QueuePair> qp_;
};

TEST_F(DatagramIdTest, TheOneWhoAsksLearnsNumberAndKey) {
  Id& server = make(PortSpace::udp);
  Id& client = make(PortSpace::udp);
  Id& child = asked(client, listen(server));
  ASSERT_EQ(child.accept(qp_.get(), {.private_data = bytes_of("I")}), 0);
  {
    const TakenEvent told = await(EventKind::established);
    EXPECT_EQ(told->id, &client);
    ASSERT_TRUE(told->datagram);
    EXPECT_EQ(told->datagram->qpn, qp_->number());
    EXPECT_EQ(told->datagram->q_key, kDefaultQKey);
    EXPECT_EQ(told->parameters.private_data, bytes_of("I"));
  }
  child.destroy();
  client.destroy();
  server.destroy();
}

// As the kernel tells it.
TEST_F(DatagramIdTest, TheOneWhoIsRefusedHearsIt) {
  Id& server = make(PortSpace::udp);
  Id& client = make(PortSpace::udp);
  Id& child = asked(client, listen(server));
  ASSERT_EQ(child.reject(bytes_of("no")), 0);
  {
    const TakenEvent told = await(EventKind::unreachable);
    EXPECT_EQ(told->id, &client);
    EXPECT_EQ(told->parameters.private_data, bytes_of("no"));
  }
  child.destroy();
  client.destroy();
  server.destroy();
}

// Nobody waits for the answer any more; it finds nobody.
TEST_F(DatagramIdTest, AQuestionCanBeForgotten) {
  Id& server = make(PortSpace::udp);
  Id& client = make(PortSpace::udp);
  Id& child = asked(client, listen(server));
  client.destroy();
  ASSERT_EQ(child.accept(qp_.get(), {}), 0);
  for (int i = 0; i < 100; ++i) {
    (*adapter())->progress();
    Event* none = nullptr;
    ASSERT_EQ(channel->next(none), EAGAIN);
    ::usleep(1000);
  }
  child.destroy();
  server.destroy();
}

TEST_F(DatagramIdTest, StepsOutOfOrderAreRefused) {
  Id& id = make(PortSpace::udp);
  EXPECT_EQ(id.connect(nullptr, {}), EINVAL);
  EXPECT_EQ(id.establish(), EINVAL);
  EXPECT_EQ(id.accept(qp_.get(), {}), EINVAL);
  EXPECT_EQ(id.reject({}), EINVAL);
  id.destroy();
}

}  // namespace
}  // namespace weft::cm
