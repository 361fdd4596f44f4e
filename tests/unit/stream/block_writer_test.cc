#include "stream/output/block_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <future>
#include <vector>

#include "kit/failure.h"

namespace weft::stream {
namespace {

// A shell, or a program before, may leave a pipe that nobody waits at.
TEST(WriteAll, WaitsForRoomInAPipeThatDoesNotBlock) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const port::Fd reader{ends[0]};
  port::Fd writer{ends[1]};
  ASSERT_EQ(::fcntl(writer.get(), F_SETFL, O_NONBLOCK), 0);
  std::vector<std::byte> sent(1 << 20);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);

  auto written = std::async(std::launch::async, [&] {
    std::array<iovec, 2> pieces{piece(sent.data(), 1000),
                                piece(sent.data() + 1000, sent.size() - 1000)};
    try {
      write_all(writer.get(), pieces, -1);
    } catch (const kit::Failure& failure) {
      ADD_FAILURE() << failure.what();
    }
    writer.reset();
  });
  std::vector<std::byte> got(sent.size() + 1);
  size_t at = 0;
  for (ssize_t n = 1; n > 0; at += static_cast<size_t>(n)) {
    n = ::read(reader.get(), got.data() + at, got.size() - at);
    ASSERT_GE(n, 0);
  }
  written.get();
  got.resize(at);
  EXPECT_TRUE(got == sent) << at << " bytes";
}

TEST(WriteAll, SaysThatNobodyReads) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const port::Fd writer{ends[1]};
  ::close(ends[0]);
  const auto ignored = ::signal(SIGPIPE, SIG_IGN);
  std::array<iovec, 1> pieces{piece("abc", 3)};
  EXPECT_THROW(write_all(writer.get(), pieces, -1), kit::Failure);
  ::signal(SIGPIPE, ignored);
}

}  // namespace
}  // namespace weft::stream
