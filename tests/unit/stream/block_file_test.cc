#include "stream/block_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "kit/failure.h"

namespace weft::stream {
namespace {

constexpr uint64_t kStep = 4096 + 8192;

weft_stream_ring shape_of(uint32_t packets) {
  weft_stream_ring shape{};
  shape.packets_per_block = packets;
  shape.packet_bytes = 32;
  shape.slot_bytes = 48;
  shape.block_bytes = 8192;
  return shape;
}

class BlockFileTest : public testing::Test {
 protected:
  ~BlockFileTest() override { (void)std::remove(path_.c_str()); }

  void write(const std::string& bytes) {
    std::ofstream{path_, std::ios::binary | std::ios::app} << bytes;
  }
  void write_block(uint32_t packets = 8, uint32_t stream = 0, uint64_t number = 0) {
    weft_stream_block header{};
    header.magic = WEFT_STREAM_MAGIC;
    header.stream = stream;
    header.number = number;
    header.packets = packets;
    header.packet_bytes = 32;
    header.slot_bytes = 48;
    header.block_bytes = 8192;
    write(std::string(reinterpret_cast<const char*>(&header), sizeof header));
    write(std::string(8192, 'x'));
  }
  void cut(uint64_t size) { std::filesystem::resize_file(path_, size); }
  uint64_t end() const { return end_of_blocks(path_, shape_of(8)); }
  std::string why() const {
    try {
      return "it ends at " + std::to_string(end());
    } catch (const kit::Failure& failure) {
      return failure.what();
    }
  }

  const std::string path_ = testing::TempDir() + "weft-block-file-" + std::to_string(::getpid());
};

TEST_F(BlockFileTest, AnEmptyFileEndsAtItsBegin) {
  write("");
  EXPECT_EQ(end(), 0U);
}

TEST_F(BlockFileTest, EndsBehindTheLastBlock) {
  write_block();
  write_block();
  EXPECT_EQ(end(), 2 * kStep);
}

TEST_F(BlockFileTest, ZeroesBehindTheLastBlockAreNotOfIt) {
  write_block();
  cut(5 * kStep + 4096);
  EXPECT_EQ(end(), kStep);
}

TEST_F(BlockFileTest, BlocksThatWereNotWrittenAreBeforeTheEnd) {
  write(std::string(kStep, '\0'));
  write_block();
  write(std::string(2 * kStep, '\0'));
  write_block();
  cut(7 * kStep);
  EXPECT_EQ(end(), 5 * kStep);
}

TEST_F(BlockFileTest, ABlockThatIsNotWholeIsBehindTheEnd) {
  write_block();
  write_block();
  cut(2 * kStep - 1);
  EXPECT_EQ(end(), kStep);
  cut(kStep + 100);  // in its header
  EXPECT_EQ(end(), kStep);
  cut(kStep - 1);
  EXPECT_EQ(end(), 0U);
}

TEST_F(BlockFileTest, RoomAloneIsNoBlock) {
  write(std::string(3 * kStep + 1, '\0'));
  EXPECT_EQ(end(), 0U);
}

TEST_F(BlockFileTest, EachStreamEndsBehindItsLastBlock) {
  for (const auto& [stream, number] : {std::pair{2, 9}, {0, 4}, {1, 6}, {0, 5}}) {
    write_block(8, static_cast<uint32_t>(stream), static_cast<uint64_t>(number));
  }
  write(std::string(kStep, '\0'));
  write_block(8, 7, 1);  // of a stream that this receiver does not have
  weft_stream_ring shape = shape_of(8);
  shape.streams = 3;
  shape.blocks = 4;
  const std::map<uint32_t, uint64_t> expected{{0, 48}, {1, 56}, {2, 80}};
  EXPECT_EQ(ends_of_streams(path_, shape, end()), expected);
  EXPECT_EQ(ends_of_streams(path_, shape, kStep), (std::map<uint32_t, uint64_t>{{2, 80}}));
  shape.blocks = 1;
  EXPECT_EQ(ends_of_streams(path_, shape, end()), (std::map<uint32_t, uint64_t>{{0, 48}}));
  EXPECT_TRUE(ends_of_streams(path_, shape, 0).empty());
}

TEST_F(BlockFileTest, RefusesWhatIsNoBlock) {
  write("an hour of sky");
  EXPECT_EQ(why(), path_ +
                       " holds something else, and not blocks of 8 packets of 32 bytes: "
                       "--overwrite starts it anew, or name another file");
}

TEST_F(BlockFileTest, RefusesWhatHasZeroesWhereHeadersWouldBe) {
  write(std::string(6000, '\0') + "sky" + std::string(kStep, '\0'));
  EXPECT_NE(why().find("something else"), std::string::npos) << why();
}

TEST_F(BlockFileTest, RefusesWhatBeginsWithBlocksAndGoesOnOtherwise) {
  write_block();
  write("and more");
  EXPECT_NE(why().find("something else"), std::string::npos) << why();
}

TEST_F(BlockFileTest, RefusesBlocksOfAnotherShape) {
  write_block(16);
  EXPECT_EQ(why(), path_ +
                       " holds blocks of 16 packets of 32 bytes, and not blocks of 8 packets "
                       "of 32 bytes: --overwrite starts it anew, or name another file");
}

}  // namespace
}  // namespace weft::stream
