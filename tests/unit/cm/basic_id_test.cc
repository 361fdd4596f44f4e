// What all ids have in common: addresses, options, and the order of steps.

#include "cm/basic_id.h"

#include "tests/unit/cm/ids.h"
#include "tests/unit/cm/one_pair.h"

namespace weft::cm {
namespace {

port::Address ipv4(uint32_t address, uint16_t port = 0) {
  return port::Address::from_gid(Gid::from_ipv4(address), port);
}
constexpr uint32_t kLoopback = 0x7f000001;

port::Address ipv6_loopback(uint16_t port) {
  Gid one{};
  one.raw[15] = 1;
  return port::Address::from_gid(one, port);
}

class BasicIdTest : public IdsTest {
 protected:
  ~BasicIdTest() override {
    for (Id* id : ids_) id->destroy();
  }
  Id& fresh(PortSpace space = PortSpace::tcp) {
    Id& id = make(space);
    ids_.push_back(&id);
    return id;
  }
  bool nothing_came() {
    Event* e = nullptr;
    return channel->next(e) == EAGAIN;
  }

 private:
  std::vector<Id*> ids_;
};

TEST_F(BasicIdTest, BindingTakesAPortAndAnAddress) {
  Id& id = fresh(PortSpace::udp);
  EXPECT_FALSE(id.addresses().source.valid());
  ASSERT_EQ(id.bind(ipv4(kLoopback)), 0);
  EXPECT_EQ(id.addresses().source_gid, Gid::from_ipv4(kLoopback));
  EXPECT_NE(id.addresses().source.port(), 0) << "the system's choice";
  EXPECT_TRUE(id.on_device());
  EXPECT_EQ(id.bind(ipv4(kLoopback)), EINVAL) << "it is bound";
}

TEST_F(BasicIdTest, AWildcardIsOnNoDevice) {
  Id& id = fresh();
  ASSERT_EQ(id.bind(port::Address::any(AF_INET, 0)), 0);
  EXPECT_FALSE(id.on_device());
}

TEST_F(BasicIdTest, TheWayToAPeerGivesTheSource) {
  Id& id = fresh();
  ASSERT_EQ(id.resolve_address({}, ipv4(kLoopback, 7174)), 0);
  EXPECT_EQ(await(EventKind::addr_resolved)->id, &id);
  const Addresses a = id.addresses();
  EXPECT_EQ(a.destination.port(), 7174);
  EXPECT_EQ(a.destination_gid, Gid::from_ipv4(kLoopback));
  EXPECT_EQ(a.source_gid, Gid::from_ipv4(kLoopback));
  EXPECT_NE(a.source.port(), 0);
  EXPECT_EQ(id.resolve_address({}, ipv4(kLoopback, 7174)), EINVAL) << "it is resolved";
}

// A program that names the wildcard as its peer means this host.
TEST_F(BasicIdTest, TheWildcardAsAPeerIsLoopback) {
  Id& id = fresh();
  ASSERT_EQ(id.resolve_address({}, port::Address::any(AF_INET, 7174)), 0);
  await(EventKind::addr_resolved);
  EXPECT_EQ(id.addresses().destination.to_string(), ipv4(kLoopback, 7174).to_string());
}

TEST_F(BasicIdTest, OneFamilyOnBothSides) {
  Id& id = fresh();
  EXPECT_EQ(id.resolve_address(ipv4(kLoopback), ipv6_loopback(7174)), EINVAL);
  EXPECT_TRUE(nothing_came());
  ASSERT_EQ(id.bind(ipv4(kLoopback)), 0) << "nothing has begun";
  EXPECT_EQ(id.resolve_address({}, ipv6_loopback(7174)), EINVAL) << "bound to the other family";
}

// Of 192.0.2.0/24, which no host has (RFC 5737).
TEST_F(BasicIdTest, ASourceThatIsNotOfThisHostIsRefused) {
  EXPECT_EQ(fresh().resolve_address(ipv4(0xc0000201), ipv4(kLoopback, 7174)), EADDRNOTAVAIL);
  EXPECT_EQ(fresh().bind(ipv4(0xc0000201, 7174)), EADDRNOTAVAIL);
}

// A broadcast address has no connections: the kernel gives no way to it.
TEST_F(BasicIdTest, WhereThereIsNoWayTheProgramIsTold) {
  Id& id = fresh();
  ASSERT_EQ(id.resolve_address({}, ipv4(0xffffffff, 7174)), 0);
  const TakenEvent told = await(EventKind::addr_error);
  EXPECT_EQ(told->id, &id);
  EXPECT_LT(told->status, 0) << "a negative errno";
}

TEST_F(BasicIdTest, RouteAfterAddress) {
  Id& id = fresh();
  EXPECT_EQ(id.resolve_route(), EINVAL);
  resolve(id, ipv4(kLoopback, 7174));
  EXPECT_EQ(id.listen(1), EINVAL) << "it has a peer";
}

TEST_F(BasicIdTest, OptionsThatBindingNeeds) {
  using Name = IdOption::Name;
  Id& id = fresh();
  EXPECT_EQ(id.set_option({Name::one_family, 1}), 0);
  EXPECT_EQ(id.set_option({Name::reuse_address, 0}), 0);
  EXPECT_EQ(id.set_option({Name::type_of_service, 0x28}), 0);
  ASSERT_EQ(id.bind(ipv4(kLoopback)), 0);
  EXPECT_EQ(id.set_option({Name::one_family, 1}), EINVAL) << "too late";
  EXPECT_EQ(id.set_option({Name::reuse_address, 0}), EINVAL) << "it is shared by now";
  EXPECT_EQ(id.set_option({Name::reuse_address, 1}), 0);
  EXPECT_EQ(id.set_option({Name::ack_timeout, 20}), 0) << "at any time";
}

// What a listener was told is true of those who come to it.
TEST_F(BasicIdTest, ARequestHasItsListenersAddressAndOptions) {
  Id& server = fresh();
  ASSERT_EQ(server.set_option({IdOption::Name::ack_timeout, 20}), 0);
  const port::Address at = listen(server);
  Id& client = fresh();
  resolve(client, at);
  ASSERT_EQ(client.connect(nullptr, {}), 0);
  Id* child = nullptr;
  {
    const TakenEvent request = await(EventKind::connect_request);
    EXPECT_EQ(request->listener, &server);
    child = request->id;
  }
  EXPECT_EQ(child->addresses().source.to_string(), at.to_string());
  EXPECT_EQ(child->addresses().destination.to_string(), client.addresses().source.to_string());
  EXPECT_EQ(child->owner(), nullptr);
  verbs::Context device{**adapter(), one_address()};
  child->set_device(device);
  verbs::QpAttributes a;
  uint32_t mask = 0;
  ASSERT_EQ(child->queue_pair_attributes(verbs::QpState::rts, verbs::QpType::rc, a, mask), 0);
  EXPECT_EQ(a.timeout, 20);
  child->destroy();
}

TEST_F(BasicIdTest, TooMuchPrivateDataIsRefused) {
  Id& id = fresh();
  resolve(id, ipv4(kLoopback, 7174));
  ConnectionParameters p;
  p.private_data.resize(4096);
  EXPECT_EQ(id.connect(nullptr, p), EINVAL);
  EXPECT_TRUE(nothing_came());
}

TEST_F(BasicIdTest, OneThatHasEndedIsSilentWhenItsEventsAreTaken) {
  Id& id = fresh();
  EXPECT_FALSE(id.silent());
  // Nobody listens there: a port that was bound, and is not any more.
  uint16_t port = 0;
  {
    Id& bound = make(PortSpace::tcp);
    ASSERT_EQ(bound.bind(ipv4(kLoopback)), 0);
    port = bound.addresses().source.port();
    bound.destroy();
  }
  resolve(id, ipv4(kLoopback, port));
  ASSERT_EQ(id.connect(nullptr, {}), 0);
  pollfd p{.fd = channel->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 20'000), 1);
  EXPECT_FALSE(id.silent()) << "its end is not told yet";
  EXPECT_NE(await(EventKind::rejected)->status, 0);
  EXPECT_TRUE(id.silent());
}

}  // namespace
}  // namespace weft::cm
