// What the tests of rdmap::ReceivePath share.
#pragma once

#include <gtest/gtest.h>

#include "rdmap/receive_path.h"
#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::rdmap {

using test::Buffer;
using test::pattern_bytes;
using test::segment;
using test::tagged;
using test::untagged;
using wire::Opcode;
namespace term = wire::term;

// A receive path behind a DDP receiver, fed with ULPDUs. Frames and Terminates are the business of
// tests/conformance.
class ReceivePathTest : public ::testing::Test {
 protected:
  ReceivePathTest() { configure(true); }
  void configure(bool extension, uint16_t ird = 4) {
    config = {.mpa = {.extension = extension, .ird = ird, .ord = 4}};
    parts = std::make_unique<Parts>(host, config);
  }

  // Begin, place, deliver; what went wrong, if anything did.
  std::optional<wire::TermError> hears(const Buffer& ulpdu) {
    auto& r = parts->segments;
    const size_t header = std::min(r.header_size(ulpdu[0]), ulpdu.size());
    if (auto v = r.begin(Bytes{ulpdu}.first(header), ulpdu.size()); !v.ok()) return v.error();
    Bytes payload = Bytes{ulpdu}.subspan(header);
    // In two pieces, as a large one may come.
    for (size_t at = 0; at < payload.size();) {
      const size_t n = at == 0 ? (payload.size() + 1) / 2 : payload.size() - at;
      PieceList places;
      if (auto v = r.where(at, n, places); !v.ok()) return v.error();
      EXPECT_EQ(places.bytes(), n);
      size_t done = at;
      for (const IoVec& p : places.pieces()) {
        std::memcpy(p.iov_base, payload.data() + done, p.iov_len);
        done += p.iov_len;
      }
      at += n;
    }
    if (auto v = r.deliver(); !v.ok()) return v.error();
    return {};
  }
  std::optional<wire::TermError> send(uint32_t msn, const Buffer& data, uint32_t mo = 0,
                                      bool last = true, bool aw = false) {
    return hears(untagged({.msn = msn, .mo = mo, .last = last, .ack_wanted = aw}, data));
  }
  uint64_t run() const { return parts->delivery.run(); }

  struct Parts {
    Parts(test::Host& host, const StreamConfig& config)
        : inbound(config.mpa.ird),
          send_path(host, config, 1),
          path(host, config, send_path, inbound, delivery) {}
    InboundReads inbound;
    Delivery delivery;
    SendPath send_path;
    ReceivePath path;
    ddp::SegmentReceiver segments{path};
  };
  test::Host host;
  StreamConfig config;
  std::unique_ptr<Parts> parts;
};

}  // namespace weft::rdmap
