// What the tests of rdmap::SendPath share.
#pragma once

#include <gtest/gtest.h>

#include "rdmap/send_path.h"
#include "tests/support/append.h"
#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::rdmap {

using test::Buffer;
using test::Frame;
using test::names;
using test::pattern_bytes;
using wire::Opcode;

// Send queue, send path, and all that it said.
class SendPathTest : public ::testing::Test {
 protected:
  SendPathTest() { configure(true); }

  void configure(bool extension, uint16_t ord = 4, uint32_t capacity = 256, bool llp = false) {
    host = std::make_unique<test::Host>(capacity);
    config = {.mpa = {.extension = extension, .ird = 4, .ord = ord}, .llp_completion = llp};
    path = std::make_unique<SendPath>(*host, config, 3);
    posted = 0;
    said.clear();
  }

  work::SendWqe& post(work::SendWqe w, Buffer& memory) {
    w.wr_id = ++posted;
    return host->post(w, {test::segment(*host, memory)});
  }
  work::SendWqe& post_local(work::Operation op, bool signaled) {
    return host->post({.wr_id = ++posted, .operation = op, .signaled = signaled});
  }

  // Everything that may go out now.
  std::vector<Frame> say() {
    Buffer bytes;
    while (path->ready()) {
      mpa::TxBatch batch;
      while (path->ready() && path->write_fpdu(writer, batch)) {
      }
      if (batch.empty()) break;
      test::append(bytes, batch.pieces());
    }
    std::vector<Frame> frames = test::parse_stream(bytes, crc);
    said.insert(said.end(), frames.begin(), frames.end());
    return frames;
  }
  // The peer covers all that was said.
  void cover() { path->covered(path->messages()); }
  std::vector<uint64_t> completed() const {
    std::vector<uint64_t> ids;
    for (const auto& d : host->sent) {
      EXPECT_EQ(d.status, work::Status::success);
      ids.push_back(d.wr_id);
    }
    return ids;
  }
  size_t asked() const {
    size_t n = 0;
    for (const Frame& f : said) n += f.control.ack_wanted;
    return n;
  }

  std::unique_ptr<test::Host> host;
  StreamConfig config;
  std::unique_ptr<SendPath> path;
  mpa::FpduWriter writer;
  bool crc = true;  // as the writer is configured
  uint64_t posted = 0;
  std::vector<Frame> said;
  Buffer small = pattern_bytes(100, 1);
};

using Ids = std::vector<uint64_t>;

}  // namespace weft::rdmap
