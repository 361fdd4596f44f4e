// A bare TCP socket at a listener of librdmacm: start-up frames that are cut, wrong or random, and
// bytes that are no stream behind a good one. The program sees requests that are whole, and nothing
// else; the next connection is as good as the first (spec/mpa 2.1, 2.5, spec/errors 4).

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "tests/abi/cm_counts.h"
#include "tests/abi/cm_fixture.h"
#include "tests/support/counted.h"

namespace weft::test {
namespace {

using Bytes = std::vector<uint8_t>;

// spec/mpa 2.1, 2.2: revision 2, CRC, enhanced block with IRD 4 and ORD 4, then `data`.
Bytes request(const Bytes& data) {
  Bytes b{'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e'};
  const auto n = static_cast<uint8_t>(4 + data.size());
  for (const uint8_t v : {uint8_t{0x50}, uint8_t{2}, uint8_t{0}, n}) b.push_back(v);
  for (const uint8_t v : {0, 4, 0, 4}) b.push_back(v);
  b.insert(b.end(), data.begin(), data.end());
  return b;
}

class Raw {
 public:
  Raw() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Raw(uint16_t port) : Raw() { calls(port); }
  ~Raw() { close(fd_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  void calls(uint16_t port) const {
    sockaddr_in at = loopback(port);
    EXPECT_EQ(connect(fd_, any_of(at), sizeof at), 0) << strerror(errno);
  }
  void says(const Bytes& bytes) const {
    // What the other side does not want any more is lost.
    (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void fin() const { shutdown(fd_, SHUT_WR); }
  // Up to `n` bytes; `ended`: the connection is over. Five seconds of silence end it, too.
  Bytes hears(size_t n, bool* ended = nullptr) const {
    Bytes all;
    if (ended != nullptr) *ended = false;
    while (all.size() < n) {
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, 5000) != 1) break;
      uint8_t some[4096];
      const ssize_t got = recv(fd_, some, std::min(sizeof some, n - all.size()), 0);
      if (got <= 0) {
        if (ended != nullptr) *ended = true;
        break;
      }
      all.insert(all.end(), some, some + got);
    }
    return all;
  }
  void expect_end() const {
    bool ended = false;
    hears(1 << 20, &ended);
    EXPECT_TRUE(ended) << "not closed";
  }

 private:
  int fd_;
};

class CmHostile : public CmTest {
 protected:
  void SetUp() override {
    connect_pair();  // what stays open is open from here on
    if (HasFatalFailure()) return;
    see_ports();
    server.reset();
    client.reset();
    before = descriptors();
    threads = entries("/proc/self/task");
  }
  void TearDown() override {
    EXPECT_TRUE(quiet_for(passive.get(), 20)) << "an event that nobody caused";
    listener.reset();
    connect_pair();
    if (HasFatalFailure()) return;
    exchange(client.get(), server.get(), 3);
    see_ports();
    server.reset();
    client.reset();
    for (int i = 0; i < 500 && descriptors() > before; ++i) usleep(10'000);
    EXPECT_LE(descriptors(), before);
    EXPECT_EQ(entries("/proc/self/task"), threads);
  }
  // Without those of the ports that queue pairs' numbers are from.
  static size_t descriptors() { return entries("/proc/self/fd") - 2 * ports().size(); }
  static Ports& ports() {
    static Ports seen;
    return seen;
  }
  void see_ports() {
    ports().see(client->qp);
    ports().see(server->qp);
  }
  uint16_t port() const { return port_of(listener); }

  size_t before = 0;
  size_t threads = 0;
};

TEST_F(CmHostile, RequestsCutAtEveryByte) {
  const Bytes good = request(bytes(20, 1));
  for (size_t n = 0; n < good.size(); ++n) {
    const Raw raw(port());
    raw.says({good.begin(), good.begin() + static_cast<ptrdiff_t>(n)});
    raw.fin();
    raw.expect_end();
  }
}

TEST_F(CmHostile, RequestsThatAreWrong) {
  const Bytes good = request(bytes(20, 1));
  const auto with = [&](size_t at, uint8_t value) {
    Bytes b = good;
    b[at] = value;
    return b;
  };
  Bytes glued = good;
  glued.insert(glued.end(), {0, 14, 0xc1, 0x40});
  Bytes no_block = with(19, 3);
  no_block.resize(23);
  for (const Bytes& b : {with(3, '_'), with(15, 'E'), with(17, 0), with(17, 3), with(18, 2),
                         with(18, 0xff), no_block, glued}) {
    const Raw raw(port());
    raw.says(b);
    bool ended = false;
    EXPECT_TRUE(raw.hears(1, &ended).empty()) << "closed without a Reply";
    EXPECT_TRUE(ended);
  }
}

TEST_F(CmHostile, RandomBytes) {
  std::mt19937 random{5};
  for (int i = 0; i < 60; ++i) {
    Bytes b(1 + random() % 2000);
    std::generate(b.begin(), b.end(), [&] { return static_cast<uint8_t>(random()); });
    const Raw raw(port());
    raw.says(b);
    raw.fin();
    raw.expect_end();
  }
}

// The program looks at nothing: callers wait with it, and then in the kernel's queue.
TEST_F(CmHostile, MoreRequestsThanTheProgramLooksAt) {
  constexpr size_t kMost = 1024;
  if (raise_descriptor_limit() < 3 * kMost) GTEST_SKIP() << "too few descriptors";
  const Counted pauses("accept_paused");
  std::vector<std::unique_ptr<Raw>> callers;
  const auto call = [&] {
    callers.push_back(std::make_unique<Raw>(port()));
    callers.back()->says(request(bytes(20, 1)));
  };
  for (size_t i = 0; i < kMost; ++i) call();
  pauses.expect({{"backlog", 1}});
  call();
  for (size_t i = 0; i <= kMost; ++i) {
    const OwnedEvent asked = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(asked, nullptr) << i;
    ASSERT_OK(rdma_reject(asked->id, nullptr, 0));
    const OwnedId gone{asked->id};
  }
  pauses.expect({{"backlog", 1}});
}

// Somebody calls while the process has no descriptor left: he waits, and the connection that there
// is goes on.
TEST_F(CmHostile, AConnectionLivesThroughTheWantOfDescriptors) {
  connect_pair();
  see_ports();
  const Counted pauses("accept_paused");
  const Raw caller;
  // What is closed later leaves a number free: sockets of the connection before this one linger.
  size_t open = descriptors();
  for (int i = 0, quiet = 0; i < 1000 && quiet < 150; ++i) {
    usleep(10'000);
    quiet = std::exchange(open, descriptors()) == open ? quiet + 1 : 0;
  }
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const int next = dup(STDERR_FILENO);  // the lowest number that is free
  close(next);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  caller.calls(port());
  caller.says(request(bytes(20, 1)));
  EXPECT_TRUE(quiet_for(passive.get(), 200));
  for (unsigned i = 0; i < 3; ++i) {
    exchange(client.get(), server.get(), i);
    exchange(server.get(), client.get(), i);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  const OwnedEvent asked = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(asked, nullptr);
  EXPECT_GE(pauses.grown()["no_descriptor"], 1U);
  const OwnedId gone{asked->id};
  server.reset();
  client.reset();
}

// A good Request, then bytes that are no FPDU: the program learns that the peer is gone.
TEST_F(CmHostile, BytesThatAreNoStream) {
  std::mt19937 random{6};
  for (const size_t n : {0U, 1U, 3U, 20U, 500U, 70'000U}) {
    SCOPED_TRACE(n);
    const Raw raw(port());
    raw.says(request(bytes(20, 1)));
    const OwnedEvent asked = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(asked, nullptr);
    Bytes told = private_data(*asked);
    told.resize(20);
    EXPECT_EQ(told, bytes(20, 1));
    server.reset(asked->id);
    ASSERT_OK(create_qp(server.get()));
    ports().see(server->qp);
    ASSERT_OK(rdma_accept(server.get(), nullptr));
    ASSERT_EQ(raw.hears(24).size(), 24U) << "the Reply";
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    Bytes b(n);
    std::generate(b.begin(), b.end(), [&] { return static_cast<uint8_t>(random()); });
    raw.says(b);
    raw.fin();
    expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    raw.expect_end();
    server.reset();
  }
}

}  // namespace
}  // namespace weft::test
