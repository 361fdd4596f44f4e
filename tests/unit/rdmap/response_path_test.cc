#include "rdmap/response_path.h"

#include <gtest/gtest.h>

#include "tests/support/append.h"
#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::rdmap {
namespace {

using test::Buffer;
using test::Frame;
using test::pattern_bytes;
using Written = ResponsePath::Written;
using wire::Opcode;

class ResponsePathTest : public ::testing::Test {
 protected:
  // Of the whole of `source`, into a sink that the peer calls `sink`.
  void accept_read(Stag stag, const Buffer& source, Stag sink) {
    InboundRead read{
        .request = {.sink_stag = sink,
                    .sink_to = TaggedOffset{0x1000},
                    .size = static_cast<uint32_t>(source.size()),
                    .source_stag = stag,
                    .source_to = TaggedOffset{reinterpret_cast<uintptr_t>(source.data())}}};
    for (size_t i = 0; i < read.headers.size(); ++i)
      read.headers[i] = static_cast<std::byte>(i + 1);
    path.requests().push_back(read);
  }
  std::vector<Frame> said() {
    Buffer bytes;
    test::append(bytes, batch.pieces());
    return test::parse_stream(bytes);
  }

  test::Host host;
  StreamConfig config{.mpa = {.extension = true, .ird = 4, .ord = 4}};
  ResponsePath path{host, config};
  mpa::FpduWriter writer;
  mpa::TxBatch batch;
};

TEST_F(ResponsePathTest, AnswersInOrderAndCutsLongOnes) {
  Buffer longer = pattern_bytes(kBigPayload + 100, 1);
  Buffer shorter = pattern_bytes(10, 2);
  accept_read(host.add_region(longer), longer, Stag{7});
  path.requests().push_back(InboundRead{.atomic = true, .response = {.original = 99}});
  accept_read(host.add_region(shorter), shorter, Stag{8});

  EXPECT_EQ(path.write(writer, batch), Written::yes);
  EXPECT_TRUE(path.in_message()) << "nothing may come between its FPDUs";
  EXPECT_EQ(path.write(writer, batch), Written::yes);
  EXPECT_FALSE(path.in_message());
  EXPECT_EQ(path.write(writer, batch), Written::yes);
  EXPECT_EQ(path.write(writer, batch), Written::yes);
  EXPECT_TRUE(path.empty());

  const auto frames = said();
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0].control.opcode, Opcode::read_response);
  EXPECT_FALSE(frames[0].control.last);
  EXPECT_TRUE(frames[1].control.last);
  EXPECT_EQ(frames[2].control.opcode, Opcode::atomic_response);
  EXPECT_EQ(frames[3].control.opcode, Opcode::read_response);
  EXPECT_EQ(frames[3].payload, shorter);
  Buffer whole = frames[0].payload;
  whole.insert(whole.end(), frames[1].payload.begin(), frames[1].payload.end());
  EXPECT_EQ(whole, longer);
}

TEST_F(ResponsePathTest, AFullBatchIsNoRefusal) {
  Buffer page = pattern_bytes(4096, 3);
  const Stag stag = host.add_region(page);
  batch.stage(mpa::TxBatch::kStaging - 8);
  accept_read(stag, page, Stag{7});
  EXPECT_EQ(path.write(writer, batch), Written::no_room);
  EXPECT_FALSE(path.empty());
  batch.clear();
  EXPECT_EQ(path.write(writer, batch), Written::yes);
}

// RFC 5040 section 4.8: the Terminate quotes the request whose memory is not there any more.
TEST_F(ResponsePathTest, MemoryThatWentIsRefusedWithTheRequestsHeaders) {
  Buffer page = pattern_bytes(4096, 4);
  const Stag stag = host.add_region(page);
  accept_read(stag, page, Stag{7});
  host.regions.erase(stag);
  ASSERT_EQ(path.write(writer, batch), Written::refused);
  EXPECT_TRUE(batch.empty());
  const wire::Terminate t = path.refusal();
  EXPECT_EQ(t.error, wire::term::kProtectionInvalidStag);
  EXPECT_EQ(t.ddp_header_size, wire::UntaggedHeader::kSize);
  EXPECT_EQ(t.rdmap_header_size, wire::ReadRequest::kSize);
  EXPECT_EQ(t.ddp_header[0], std::byte{1});
  EXPECT_EQ(t.rdmap_header[0], static_cast<std::byte>(wire::UntaggedHeader::kSize + 1));
}

}  // namespace
}  // namespace weft::rdmap
