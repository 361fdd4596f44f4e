// One stream, and a peer that is written out in the test: what it hears is built by hand
// (frames.h), what it says is taken apart. Time stands still unless the test moves it.
//
//   ScriptPeer p;
//   p.hears(tagged({.stag = stag, .to = 4096}, payload));
//   EXPECT_EQ(names(p.says()), "Terminate");
#pragma once

#include "rdmap/stream.h"
#include "tests/support/append.h"
#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::test {

// An Initiator's stream is open from the start; a Responder's waits for the first FPDU.
inline rdmap::StreamConfig script_config(bool extension = true) {
  return {.mpa = {.extension = extension, .ird = 4, .ord = 4}, .initiator = true};
}

class ScriptPeer {
 public:
  explicit ScriptPeer(const rdmap::StreamConfig& config = script_config(),
                      uint32_t send_capacity = 256)
      : host(send_capacity), stream(host, counted(config), 5, now), crc_(config.mpa.crc) {}

  Host host;
  Time now = Time::from_ns(1'000'000'000);
  stats::QpBlock qp_counters;
  stats::EngineBlock engine_counters;
  rdmap::Stream stream;

  // The FPDU of a ULPDU, or several at once, in one piece.
  void hears(Bytes ulpdu) { hears_bytes(make_fpdu(ulpdu)); }
  void hears(std::initializer_list<Buffer> ulpdus) {
    Buffer all;
    for (const Buffer& u : ulpdus) {
      const Buffer frame = make_fpdu(u);
      all.insert(all.end(), frame.begin(), frame.end());
    }
    hears_bytes(all);
  }
  void hears_bytes(Bytes bytes) {
    if (stream.wants_bytes()) stream.received(bytes, now);
  }

  // What the stream has to say by now; the kernel takes it all.
  std::vector<Frame> says() { return parse_stream(says_bytes(), crc_); }
  Buffer says_bytes() {
    Buffer all;
    mpa::TxBatch batch;
    while (stream.output() != rdmap::Stream::Output::none) {
      stream.fill(batch, now);
      if (batch.empty()) break;
      append(all, batch.pieces());
      batch.clear();
      stream.llp_took_all(now);
    }
    return all;
  }

  // Time passes; deadlines on the way are kept.
  void later(Duration d) {
    const Time end = now + d;
    for (int turns = 0; stream.deadline() <= end; ++turns) {
      if (turns == 1000) {
        ADD_FAILURE() << "a deadline that is never kept";
        break;
      }
      now = std::max(now, stream.deadline());
      stream.tick(now);
    }
    now = end;
  }

  void post_receive(uint64_t wr_id, const std::vector<work::LocalSegment>& segments) {
    host.post_receive(wr_id, segments);
    stream.receives_posted(now);
  }

 private:
  rdmap::StreamConfig counted(rdmap::StreamConfig config) {
    config.counters = {&qp_counters, &engine_counters};
    return config;
  }

  const bool crc_;
};

}  // namespace weft::test
