// How much a receive path takes: what waits for a receive, and the length of one message.

#include "tests/unit/rdmap/receive_path_fixture.h"

namespace weft::rdmap {
namespace {

// Towards a plain peer the rest stays in the socket when 4 MiB wait; between wefts the credit keeps
// the sender from it.
TEST_F(ReceivePathTest, FullAt4MiBOfAPlainPeer) {
  for (const bool extension : {false, true}) {
    configure(extension);
    const Buffer piece(60'000);
    uint32_t msn = 0;
    while (uint64_t{msn} * piece.size() < (4U << 20)) {
      EXPECT_FALSE(parts->path.full());
      ASSERT_FALSE(send(++msn, piece));
    }
    EXPECT_EQ(parts->path.full(), !extension);
  }
}

TEST_F(ReceivePathTest, AWeftThatOverdrawsItsCreditIsCutOff) {
  const Buffer piece(60'000);
  std::optional<wire::TermError> error;
  uint32_t msn = 0;
  while (!error && msn < 1000) error = send(++msn, piece);
  EXPECT_EQ(error, term::kUntaggedNoBuffer);
  EXPECT_LE(uint64_t{msn} * piece.size(), (8U << 20) + 2 * piece.size()) << "memory is bounded";
}

TEST_F(ReceivePathTest, OneMessageMayBeLargerThanTheCredit) {
  const Buffer piece(65'000);
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_FALSE(send(1, piece, i * 65'000, false)) << i;
  }
}

TEST_F(ReceivePathTest, MessagesWithoutBytesAreBoundedToo) {
  std::optional<wire::TermError> error;
  uint32_t msn = 0;
  while (!error && msn < 200'000) error = send(++msn, {});
  EXPECT_EQ(error, term::kUntaggedNoBuffer);
}

TEST_F(ReceivePathTest, AWriteEndsBefore4GiB) {
  Buffer memory(65'000);
  const Stag stag = host.add_region(memory);
  const Buffer u =
      tagged({.stag = stag, .to = test::address_of(memory).value(), .last = false}, memory);
  uint64_t sum = 0;
  std::optional<wire::TermError> error;
  while (!error && sum < (uint64_t{5} << 30)) {
    // Straight to the path: 4 GiB of copies would take long.
    auto& r = parts->segments;
    if (auto v = r.begin(Bytes{u}.first(14), u.size()); !v.ok()) {
      error = v.error();
    } else {
      ASSERT_TRUE(r.deliver().ok());
      sum += memory.size();
    }
  }
  EXPECT_EQ(error, term::kTaggedBounds);
  EXPECT_LE(sum, UINT32_MAX);
}

}  // namespace
}  // namespace weft::rdmap
