#include "trace/frame_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hex.h"
#include "wire/fpdu.h"
#include "wire/mpa_start.h"

namespace weft::trace {
namespace {

using test::Buffer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Buffer fpdu(size_t ulpdu, uint64_t seed) {
  Buffer b = test::pattern(wire::fpdu_size(ulpdu), seed);
  store_be(b.data(), static_cast<uint16_t>(ulpdu));
  return b;
}

Buffer start_up(uint16_t private_data, bool markers = false,
                wire::MpaStart::Kind kind = wire::MpaStart::Kind::request) {
  Buffer b = test::pattern(wire::MpaStart::kSize + private_data, 99);
  wire::MpaStart{.kind = kind, .markers = markers, .private_data_length = private_data}.encode(
      b.data());
  return b;
}

// A frame as the cutter gave it out.
struct Cut {
  Buffer kept;
  size_t size;
  friend bool operator==(const Cut&, const Cut&) = default;
};
std::ostream& operator<<(std::ostream& o, const Cut& c) {
  return o << c.size << " bytes, kept " << test::to_hex(c.kept);
}
Cut cut_of(const Buffer& frame, size_t keep) {
  return {
      .kept = {frame.begin(), frame.begin() + static_cast<ptrdiff_t>(std::min(keep, frame.size()))},
      .size = frame.size()};
}

// Feeds `stream` in calls of `call` bytes, each in pieces of `piece` bytes.
std::vector<Cut> feed(FrameCutter& cutter, Buffer stream, size_t call, size_t piece) {
  std::vector<Cut> cuts;
  for (size_t at = 0; at < stream.size(); at += call) {
    const size_t n = std::min(call, stream.size() - at);
    std::vector<IoVec> pieces;
    for (size_t i = 0; i < n; i += piece)
      pieces.push_back({stream.data() + at + i, std::min(piece, n - i)});
    pieces.insert(pieces.begin() + 1, IoVec{nullptr, 0});  // empty pieces are nothing
    // As after a call that moved a part of what it was given.
    Buffer more(7);
    pieces.push_back({more.data(), more.size()});
    for (FrameCutter::Input input{pieces, n}; cutter.take(input); cutter.next()) {
      cuts.push_back({{cutter.kept().begin(), cutter.kept().end()}, cutter.size()});
    }
  }
  return cuts;
}

TEST(FrameCutter, AnyCuttingOfTheBytesGivesTheSameFrames) {
  const Buffer frames[] = {start_up(68), fpdu(14, 1), fpdu(0, 2), fpdu(1000, 3), fpdu(43, 4)};
  Buffer stream;
  for (const Buffer& f : frames) stream.insert(stream.end(), f.begin(), f.end());
  for (const size_t keep : {1U, 19U, 64U, 2000U}) {
    for (const size_t call : {1U, 2U, 3U, 19U, 20U, 21U, 100U, 5000U}) {
      for (const size_t piece : {1U, 5U, 4096U}) {
        FrameCutter cutter{keep, true};
        EXPECT_THAT(
            feed(cutter, stream, call, piece),
            ElementsAre(cut_of(frames[0], keep), cut_of(frames[1], keep), cut_of(frames[2], keep),
                        cut_of(frames[3], keep), cut_of(frames[4], keep)))
            << "keep " << keep << " call " << call << " piece " << piece;
        EXPECT_EQ(cutter.size(), 0U);
      }
    }
  }
}

TEST(FrameCutter, AReplyIsAStartUpFrameToo) {
  const Buffer reply = start_up(4, false, wire::MpaStart::Kind::reply);
  FrameCutter cutter{64, true};
  EXPECT_THAT(feed(cutter, test::join({reply, fpdu(50, 1)}), 11, 11),
              ElementsAre(cut_of(reply, 64), cut_of(fpdu(50, 1), 64)));
  EXPECT_FALSE(cutter.asks_for_markers());
}

TEST(FrameCutter, WithoutAStartUpTheFirstFrameIsAnFpdu) {
  FrameCutter cutter{8, false};
  EXPECT_THAT(feed(cutter, fpdu(100, 1), 9, 9), ElementsAre(cut_of(fpdu(100, 1), 8)));
}

TEST(FrameCutter, TheLargestFpdu) {
  FrameCutter cutter{16, false};
  EXPECT_THAT(feed(cutter, fpdu(65535, 1), 4096, 1000), ElementsAre(cut_of(fpdu(65535, 1), 16)));
}

TEST(FrameCutter, AnUnfinishedFrameTellsWhatIsThere) {
  FrameCutter cutter{16, false};
  Buffer half = fpdu(100, 1);
  half.resize(50);
  EXPECT_THAT(feed(cutter, half, 7, 7), IsEmpty());
  EXPECT_EQ(cutter.size(), 50U);
  EXPECT_EQ(test::to_hex(cutter.kept()), test::to_hex(Bytes{half}.first(16)));
}

TEST(FrameCutter, WhatIsNoMpaIsCutByCalls) {
  Buffer request = test::from_text("GET / HTTP/1.1\r\nHost: weft\r\n\r\n");
  FrameCutter cutter{4, true};
  const auto cuts = feed(cutter, request, request.size(), 6);
  EXPECT_THAT(cuts, ElementsAre(Cut{test::from_text("GET "), request.size()}));
  // Where the call ends within what would tell, the next one decides.
  FrameCutter late{4, true};
  EXPECT_THAT(feed(late, request, 16, 16),
              ElementsAre(Cut{test::from_text("GET "), request.size()}));
  // And from then on each call stands for itself.
  const Buffer more = test::pattern(25, 1);
  EXPECT_THAT(feed(late, more, 20, 20),
              ElementsAre(Cut{{more.begin(), more.begin() + 4}, 20},
                          Cut{{more.begin() + 20, more.begin() + 24}, 5}));
}

// RFC 5044 section 4.3: markers stand within FPDUs and count in no length.
TEST(FrameCutter, TellsWhenMarkersAreAskedFor) {
  FrameCutter asking{64, true};
  feed(asking, start_up(0, true), 20, 20);
  EXPECT_TRUE(asking.asks_for_markers());
  FrameCutter asked{4, true};
  feed(asked, start_up(8), 28, 28);
  asked.give_up();
  const Buffer marked = fpdu(100, 1);
  EXPECT_THAT(feed(asked, marked, 60, 60),
              ElementsAre(Cut{{marked.begin(), marked.begin() + 4}, 60},
                          Cut{{marked.begin() + 60, marked.begin() + 64}, marked.size() - 60}));
}

}  // namespace
}  // namespace weft::trace
