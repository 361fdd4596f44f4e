#include "rdmap/blame.h"

#include <gtest/gtest.h>

#include "tests/support/frames.h"
#include "tests/support/host.h"
#include "wire/rdmap_messages.h"

namespace weft::rdmap {
namespace {

using test::Buffer;
using wire::Layer;
using wire::TermError;
namespace term = wire::term;

// spec/errors 4
TEST(StatusOf, EveryClassOfError) {
  EXPECT_EQ(status_of(term::kProtectionInvalidStag), work::Status::remote_access);
  EXPECT_EQ(status_of(term::kProtectionCannotInvalidate), work::Status::remote_access);
  EXPECT_EQ(status_of(term::kTaggedInvalidStag), work::Status::remote_access);
  EXPECT_EQ(status_of(term::kTaggedBounds), work::Status::remote_access);
  EXPECT_EQ(status_of(term::kTaggedToWrap), work::Status::remote_access);
  EXPECT_EQ(status_of(term::kUntaggedNoBuffer), work::Status::rnr_retry_exceeded);
  EXPECT_EQ(status_of(term::kUntaggedTooLong), work::Status::remote_invalid_request);
  EXPECT_EQ(status_of(term::kOperationUnexpectedOpcode), work::Status::remote_operation);
  EXPECT_EQ(status_of(term::kOperationCatastrophicStream), work::Status::remote_operation);
  EXPECT_EQ(status_of(term::kOperationCannotInvalidate), work::Status::remote_operation);
  EXPECT_EQ(status_of(term::kLocalCatastrophic), work::Status::general);
  EXPECT_EQ(status_of(term::kUntaggedMsnRange), work::Status::fatal);
  EXPECT_EQ(status_of(term::kDdpCatastrophic), work::Status::fatal);
  EXPECT_EQ(status_of(term::kMpaCrc), work::Status::fatal);
}

// Two reads (MSN 1 and 2) between two writes; all of them are out, none is complete.
class Blame : public ::testing::Test {
 protected:
  Blame() {
    for (const work::Operation op : {work::Operation::write, work::Operation::read,
                                     work::Operation::read, work::Operation::write}) {
      host_.post({.wr_id = ++posted_, .operation = op, .signaled = true, .remote_stag = Stag{7}},
                 {test::segment(host_, memory_)});
    }
    while (path_.ready()) EXPECT_TRUE(path_.write_fpdu(writer_, batch_));
  }
  // Terminate about the segment of which the header is `header`.
  static wire::Terminate about(const Buffer& header,
                               TermError error = term::kProtectionInvalidStag) {
    wire::Terminate t{.error = error, .ddp_header_size = static_cast<uint8_t>(header.size())};
    std::copy(header.begin(), header.end(), t.ddp_header.begin());
    return t;
  }
  std::vector<work::Status> blamed(const Buffer& header,
                                   TermError error = term::kProtectionInvalidStag) {
    return blamed(about(header, error));
  }
  // What the flush behind it says.
  std::vector<work::Status> blamed(const wire::Terminate& t) {
    apply_blame(t, false, path_);
    host_.flush();
    std::vector<work::Status> all;
    for (const auto& done : host_.sent) all.push_back(done.status);
    return all;
  }
  // The MSN is the first one's.
  wire::Terminate about_the_sink_of_the_second(wire::Terminate::Layout layout) {
    wire::Terminate t =
        about(test::untagged({.op = wire::Opcode::read_request, .qn = 1, .msn = 1}));
    t.layout = layout;
    t.rdmap_header_size = wire::ReadRequest::kSize;
    wire::ReadRequest{.sink_stag = path_.reads().find(Msn{2})->sink, .size = 1}.encode(
        t.rdmap_header.data());
    return t;
  }
  static constexpr auto kFlushed = work::Status::flushed;

  uint64_t posted_ = 0;
  test::Host host_;
  Buffer memory_ = Buffer(64);
  StreamConfig config_{.mpa = {.extension = true, .ird = 4, .ord = 4}};
  SendPath path_{host_, config_, 3};
  mpa::FpduWriter writer_;
  mpa::TxBatch batch_;
};

TEST_F(Blame, AReadByItsMsn) {
  const auto header = test::untagged({.op = wire::Opcode::read_request, .qn = 1, .msn = 2});
  EXPECT_EQ(blamed(header),
            (std::vector{kFlushed, kFlushed, work::Status::remote_access, kFlushed}));
}

// siw puts the read's size where the MSN belongs (spec/errors 1.2), and that may be another read's
// MSN.
TEST_F(Blame, TheOldestReadWhateverMsnSiwSays) {
  const auto header = test::untagged({.op = wire::Opcode::read_request, .qn = 1, .msn = 2});
  wire::Terminate t = about(header);
  t.layout = wire::Terminate::Layout::siw;
  EXPECT_EQ(blamed(t), (std::vector{kFlushed, work::Status::remote_access, kFlushed, kFlushed}));
}

// A sink belongs to one read, whatever the MSN and the layout are.
TEST_F(Blame, AReadByItsSink) {
  EXPECT_EQ(blamed(about_the_sink_of_the_second(wire::Terminate::Layout::rfc)),
            (std::vector{kFlushed, kFlushed, work::Status::remote_access, kFlushed}));
}
TEST_F(Blame, AReadByTheSinkThatSiwQuotes) {
  EXPECT_EQ(blamed(about_the_sink_of_the_second(wire::Terminate::Layout::siw)),
            (std::vector{kFlushed, kFlushed, work::Status::remote_access, kFlushed}));
}

TEST_F(Blame, TheOldestReadWhereTheMsnIsNobodys) {
  const auto header = test::untagged({.op = wire::Opcode::read_request, .qn = 1, .msn = 64});
  EXPECT_EQ(blamed(header),
            (std::vector{kFlushed, work::Status::remote_access, kFlushed, kFlushed}));
}

TEST_F(Blame, TheOldestRequestWhereNoReadIsNamed) {
  const auto header = test::tagged({.stag = Stag{7}});
  EXPECT_EQ(blamed(header),
            (std::vector{work::Status::remote_access, kFlushed, kFlushed, kFlushed}));
}

// A responder of InfiniBand calls an atomic's misaligned address an invalid request.
TEST_F(Blame, AnAtomicThatCannotBe) {
  host_.post({.wr_id = ++posted_,
              .operation = work::Operation::fetch_add,
              .signaled = true,
              .remote_stag = Stag{7},
              .remote_to = TaggedOffset{4}},
             {test::segment(host_, memory_)});
  while (path_.ready()) EXPECT_TRUE(path_.write_fpdu(writer_, batch_));
  const auto header = test::untagged({.op = wire::Opcode::atomic_request, .qn = 1, .msn = 3});
  EXPECT_EQ(
      blamed(header, term::kOperationCatastrophicStream),
      (std::vector{kFlushed, kFlushed, kFlushed, kFlushed, work::Status::remote_invalid_request}));
}

TEST_F(Blame, TheOldestRequestWithoutAnyHeader) {
  EXPECT_EQ(blamed({}, term::kMpaCrc),
            (std::vector{work::Status::fatal, kFlushed, kFlushed, kFlushed}));
}

TEST_F(Blame, TheFirstOneThatIsNotCovered) {
  path_.covered(1);
  ASSERT_EQ(host_.sent.size(), 1U);
  const auto header = test::tagged({.stag = Stag{7}});
  EXPECT_EQ(blamed(header),
            (std::vector{work::Status::success, work::Status::remote_access, kFlushed, kFlushed}));
}

TEST(BlameOfNothing, AnEmptyQueueTakesIt) {
  test::Host host;
  const StreamConfig config{.mpa = {.ord = 1}};
  SendPath path{host, config, 3};
  apply_blame({.error = term::kMpaCrc}, false, path);
  host.flush();
  EXPECT_TRUE(host.sent.empty());
}

// The RTR read belongs to no request.
TEST(BlameOfNothing, TheRtrReadIsNobodysFault) {
  test::Host host;
  Buffer memory(8);
  const StreamConfig config{.mpa = {.rtr = mpa::Rtr::read, .ord = 1}};
  SendPath path{host, config, 3};
  mpa::FpduWriter writer;
  mpa::TxBatch batch;
  path.write_rtr_read(writer, batch);
  host.post({.wr_id = 1, .operation = work::Operation::send}, {test::segment(host, memory)});
  const auto header = test::untagged({.op = wire::Opcode::read_request, .qn = 1, .msn = 1});
  wire::Terminate t{.error = term::kProtectionInvalidStag, .ddp_header_size = 18};
  std::copy(header.begin(), header.end(), t.ddp_header.begin());
  apply_blame(t, false, path);
  host.flush();
  ASSERT_EQ(host.sent.size(), 1U);
  EXPECT_EQ(host.sent[0].status, work::Status::remote_access) << "the oldest request then";
}

}  // namespace
}  // namespace weft::rdmap
