// Ids of rdma_cm in one process, and what they tell.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "cm/service.h"

namespace weft::cm {

inline std::vector<std::byte> bytes_of(const char* text) {
  const auto* p = reinterpret_cast<const std::byte*>(text);
  return {p, p + std::strlen(text)};
}

struct Acknowledge {
  void operator()(Event* e) const { service().acknowledge(e); }
};
using TakenEvent = std::unique_ptr<Event, Acknowledge>;

class IdsTest : public testing::Test {
 protected:
  static std::shared_ptr<Channel> make_channel() {
    std::shared_ptr<Channel> c;
    EXPECT_EQ(service().create_channel(c), 0);
    EXPECT_EQ(::fcntl(c->fd(), F_SETFL, O_NONBLOCK), 0);
    return c;
  }
  Id& make(PortSpace space) {
    Id* id = nullptr;
    EXPECT_EQ(service().create_id(*channel, space, id), 0);
    return *id;
  }
  // The next event, which has to be of this kind.
  TakenEvent await(EventKind kind, Channel& from) {
    Event* e = nullptr;
    int error = EAGAIN;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (error == EAGAIN && std::chrono::steady_clock::now() < end) {
      error = from.next(e);
      if (error == EAGAIN) ::usleep(200);
    }
    EXPECT_EQ(error, 0);
    if (error != 0) return {};
    EXPECT_EQ(static_cast<int>(e->kind), static_cast<int>(kind));
    return TakenEvent{e};
  }
  TakenEvent await(EventKind kind) { return await(kind, *channel); }
  // At a port of the system's choice.
  port::Address listen(Id& id) {
    EXPECT_EQ(id.bind(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0)), 0);
    EXPECT_EQ(id.listen(4), 0);
    return id.addresses().source;
  }
  void resolve(Id& id, const port::Address& to) {
    EXPECT_EQ(id.resolve_address({}, to), 0);
    EXPECT_EQ(await(EventKind::addr_resolved)->id, &id);
    EXPECT_EQ(id.resolve_route(), 0);
    EXPECT_EQ(await(EventKind::route_resolved)->id, &id);
  }

  std::shared_ptr<Channel> channel = make_channel();
};

}  // namespace weft::cm
