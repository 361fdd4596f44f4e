// As api_scarcity_test.cc, of librdmacm's calls: each of them may be the first of a program.
#include <fcntl.h>

#include <thread>

#include "tests/abi/cm_fixture.h"
#include "tests/abi/in_child.h"
#include "tests/abi/scarcity.h"
#include "tests/support/sanitizer.h"

namespace weft::test {
namespace {

int try_endpoint(uint16_t port) {
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* info = nullptr;
  if (rdma_getaddrinfo("127.0.0.1", std::to_string(port).c_str(), &hints, &info) != 0) return 1;
  rdma_cm_id* id = nullptr;
  const int made = rdma_create_ep(&id, info, nullptr, nullptr);
  const int why = errno;
  rdma_freeaddrinfo(info);
  if (made == 0) rdma_destroy_ep(id);
  errno = why;
  return made;
}

TEST(CmNoThread, EachFirstCallSaysSo) {
#ifdef WEFT_TSAN
  GTEST_SKIP() << "ThreadSanitizer does not let a child of a program with threads start any";
#endif
  EXPECT_EQ(
      in_child([] {
        no_threads = true;
        rdma_cm_id* id = nullptr;
        errno = 0;
        CHECK_IN_CHILD(1, rdma_create_event_channel() == nullptr && errno == EAGAIN);
        CHECK_IN_CHILD(2, errno_of(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP)) == EAGAIN);
        CHECK_IN_CHILD(3, errno_of(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_UDP)) == EAGAIN);
        CHECK_IN_CHILD(4, errno_of(try_endpoint(9)) == EAGAIN);
        errno = 0;
        int count = -1;
        CHECK_IN_CHILD(5, rdma_get_devices(&count) == nullptr && errno == EAGAIN && count == 0);
        no_threads = false;
        CHECK_IN_CHILD(6, try_endpoint(9) == 0);
        return 0;
      }),
      0);
}

#ifndef WEFT_SANITIZER

TEST(CmNoMemory, TheListOfDevicesSaysSo) {
  EXPECT_EQ(in_child([] {
              for (long pieces = 0; pieces < 1000; ++pieces) {
                errno = 0;
                pieces_left = pieces;
                ibv_context** list = rdma_get_devices(nullptr);
                const int why = errno;
                pieces_left = -1;
                if (list != nullptr) {
                  rdma_free_devices(list);
                  return pieces == 0 ? 1 : 0;
                }
                CHECK_IN_CHILD(2, why == ENOMEM);
              }
              return 3;
            }),
            0);
}

// Two ids of one process connect, disconnect and go, as far as they get.
class Tour {
 public:
  void go() {
    channel_ = rdma_create_event_channel();
    if (channel_ == nullptr) return;
    (void)fcntl(channel_->fd, F_SETFL, O_NONBLOCK);
    for (rdma_cm_id** id : {&listener_, &client_}) {
      if (rdma_create_id(channel_, id, nullptr, RDMA_PS_TCP) != 0) *id = nullptr;
    }
    sockaddr_in at = loopback();
    if (listener_ != nullptr && rdma_bind_addr(listener_, any_of(at)) == 0 &&
        rdma_listen(listener_, 4) == 0 && client_ != nullptr) {
      at = loopback(ntohs(rdma_get_src_port(listener_)));
      if (rdma_resolve_addr(client_, nullptr, any_of(at), 1000) == 0) follow_events();
    }
    leave();
  }

 private:
  void follow_events() {
    // Nothing but the calls of this thread moves it, so it looks often enough.
    for (int looks = 0; looks < 3000 && !over_; ++looks) {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(channel_, &event) != 0) {
        if (looks % 50 == 49) std::this_thread::yield();
        continue;
      }
      rdma_cm_id* id = event->id;
      const rdma_cm_event_type kind = event->event;
      (void)rdma_ack_cm_event(event);
      take(kind, id);
    }
  }
  void take(rdma_cm_event_type kind, rdma_cm_id* id) {
    rdma_conn_param p = parameters();
    switch (kind) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        over_ = rdma_resolve_route(client_, 1000) != 0;
        break;
      case RDMA_CM_EVENT_ROUTE_RESOLVED:
        over_ = create_qp(client_) != 0 || rdma_connect(client_, &p) != 0;
        break;
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        server_ = id;
        over_ = create_qp(server_) != 0 || rdma_accept(server_, &p) != 0;
        break;
      case RDMA_CM_EVENT_ESTABLISHED:
        if (++established_ == 2) over_ = rdma_disconnect(client_) != 0;
        break;
      default:  // an error, or the end
        over_ = true;
    }
  }
  void leave() {
    for (rdma_cm_id* id : {server_, client_, listener_}) {
      if (id != nullptr) rdma_destroy_ep(id);
    }
    rdma_destroy_event_channel(channel_);
  }

  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  rdma_cm_id* client_ = nullptr;
  rdma_cm_id* server_ = nullptr;
  int established_ = 0;
  bool over_ = false;
};

// 0: memory lasted to the end; 1: it did not.
int tour_with(long pieces) {
  return in_child([=] {
    // What is said about it is no part of this.
    if (freopen("/dev/null", "w", stderr) == nullptr) return 2;
    if (freopen("/dev/null", "w", stdout) == nullptr) return 2;
    Tour tour;
    pieces_left = pieces;
    tour.go();
    const bool lasted = pieces_left > 0;
    pieces_left = -1;
    return lasted ? 0 : 1;
  });
}

TEST(CmScarceMemory, NoneFromSomePointOn) {
  int ended = 1;
  long pieces = 0;
  for (; ended == 1 && pieces < 5000; ++pieces) ended = tour_with(pieces);
  EXPECT_EQ(ended, 0) << "with " << pieces - 1 << " pieces of memory";
  EXPECT_GT(pieces, 50) << "the tour takes more";
}

#endif  // WEFT_SANITIZER

}  // namespace
}  // namespace weft::test
