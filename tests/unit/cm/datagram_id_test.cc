// Ids of RDMA_PS_UDP that ask each other for a queue pair; the answer needs one. What a program
// does with the answer is asked in tests/abi.

#include "cm/datagram_id.h"

#include "tests/unit/cm/ids.h"
#include "tests/unit/cm/one_pair.h"

namespace weft::cm {
namespace {

class DatagramIdTest : public IdsTest {
 protected:
  DatagramIdTest() : pair_(verbs::QpType::ud) { pair_.to_init(); }
  Id& asked(Id& client, const port::Address& to) {
    resolve(client, to);
    client.set_device(pair_.here);
    EXPECT_EQ(client.connect(nullptr, {.private_data = bytes_of("who?")}), 0);
    const TakenEvent request = await(EventKind::connect_request);
    EXPECT_EQ(request->parameters.private_data, bytes_of("who?"));
    request->id->set_device(pair_.here);
    return *request->id;
  }

  OnePair pair_;
};

TEST_F(DatagramIdTest, TheOneWhoAsksLearnsNumberAndKey) {
  Id& server = make(PortSpace::udp);
  Id& client = make(PortSpace::udp);
  Id& child = asked(client, listen(server));
  ASSERT_EQ(child.accept(&pair_.qp(), {.private_data = bytes_of("I")}), 0);
  {
    const TakenEvent told = await(EventKind::established);
    EXPECT_EQ(told->id, &client);
    ASSERT_TRUE(told->datagram);
    EXPECT_EQ(told->datagram->qpn, pair_.qp().number());
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
  ASSERT_EQ(child.accept(&pair_.qp(), {}), 0);
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
  EXPECT_EQ(id.accept(&pair_.qp(), {}), EINVAL);
  EXPECT_EQ(id.reject({}), EINVAL);
  id.destroy();
}

}  // namespace
}  // namespace weft::cm
