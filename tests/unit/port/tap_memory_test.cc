// What passes while it is recorded, where there is no memory to record it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "port/capture.h"
#include "port/tcp_tap.h"
#include "port/udp_socket.h"
#include "tests/support/hex.h"
#include "tests/support/new_that_may_fail.h"
#include "tests/unit/port/capture_fixture.h"

namespace weft::port {
namespace {

using test::WantOfMemory;
using ::testing::HasSubstr;

class TapMemoryTest : public CaptureFixture {
 protected:
  // `record` makes `packets` packets; once for each number of allocations after which there is no
  // more memory, until they are enough.
  template <class F>
  void with_less_and_less(size_t packets, F&& record) {
    for (uint64_t n = 0;; ++n) {
      ASSERT_LT(n, 1000U);
      const std::string name = "t" + std::to_string(n) + ".pcapng";
      Capture capture{{.pattern = path(name), .keep = 64}};
      ::testing::internal::CaptureStderr();
      record(capture, n);
      const std::string said = ::testing::internal::GetCapturedStderr();
      if (read(name).packets.size() == packets) return;
      EXPECT_THAT(said, HasSubstr(name + " cannot be written: Cannot allocate memory"));
    }
  }
  // Does that go on without the memory?
  template <class F>
  static void without_memory_after(uint64_t n, F&& f) {
    WantOfMemory::after(n, WantOfMemory::kNever);
    EXPECT_TRUE(WantOfMemory::during(f)) << "memory for " << n;
    WantOfMemory::end();
  }
};

TEST_F(TapMemoryTest, AConnectionIsNotEndedByItsTrace) {
  const Address here = Address::from_gid(Gid::from_ipv4(0xc0000201), 4791);
  const Address there = Address::from_gid(Gid::from_ipv4(0xc0000202), 18515);
  test::Buffer bytes = test::pattern(100, 1);
  with_less_and_less(6, [&](Capture& capture, uint64_t n) {
    auto tap = std::make_unique<TcpTap>(capture);
    without_memory_after(n, [&] {
      tap->meet(5, here, there);
      const IoVec half{bytes.data(), 50};
      tap->moved(5, trace::Direction::out, {&half, 1}, 50);
      tap->moved(5, trace::Direction::in, {&half, 1}, 50);
      tap.reset();
    });
    EXPECT_TRUE(capture.claim({there.gid(), there.port()}, {here.gid(), here.port()}))
        << "it is not known any more";
  });
}

TEST_F(TapMemoryTest, DatagramsPass) {
  test::Buffer bytes = test::pattern(100, 1);
  with_less_and_less(4, [&](Capture& capture, uint64_t n) {
    Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    const Address any = Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0);
    ASSERT_EQ(::bind(fd.get(), any.get(), any.length), 0);
    UdpSocket socket{std::move(fd), 1 << 20};
    socket.record(capture);
    const Address to = socket.local();
    Segmentation segmentation;
    without_memory_after(n, [&] {
      for (int i = 0; i < 4; ++i) {
        const IoVec piece{bytes.data(), bytes.size()};
        EXPECT_EQ(socket.send({.to = &to, .pieces = {&piece, 1}}, segmentation).bytes, 100U);
        test::Buffer place;
        {
          const WantOfMemory::Spared spared;
          place.resize(1000);
        }
        EXPECT_EQ(socket.receive(place).bytes, 100U);
      }
    });
  });
}

}  // namespace
}  // namespace weft::port
