// What the conformance tests share: a stream with something to protect, and the exact bytes of a
// Terminate.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/script_peer.h"

namespace weft::conformance {

using test::Buffer;
using test::pattern_bytes;
using test::tagged;
using test::untagged;
using wire::Opcode;
using work::Access;
namespace term = wire::term;

// What of the offending segment a Terminate quotes (spec/errors 1.1).
enum class Quoted : uint8_t { nothing, ddp, ddp_and_rdmap };

// A stream with memory of every kind, and one receive of 64 bytes.
struct Peer : test::ScriptPeer {
  explicit Peer(bool extension = true, uint16_t ird = 4, bool crc = true)
      : ScriptPeer(config(extension, ird, crc)),
        open_(pattern_bytes(4096, 1)),
        inbox_(pattern_bytes(64, 2)),
        before_(open_) {
    open = host.add_region(open_);
    read_only = host.add_region(open_, static_cast<uint8_t>(Access::remote_read));
    write_only = host.add_region(open_, static_cast<uint8_t>(Access::remote_write));
    foreign = host.add_region(open_);
    host.regions[foreign].foreign = true;
    to = test::address_of(open_).value();
    host.post_receive(1, {test::segment(host, inbox_)});
  }
  static rdmap::StreamConfig config(bool extension, uint16_t ird, bool crc) {
    rdmap::StreamConfig c = test::script_config(extension);
    c.mpa.ird = ird;
    c.mpa.crc = crc;
    return c;
  }
  bool memory_untouched() const { return open_ == before_; }
  const Buffer& memory() const { return open_; }
  const Buffer& inbox() const { return inbox_; }

  Stag open;  // all rights
  Stag read_only;
  Stag write_only;
  Stag foreign;  // of another protection domain
  static constexpr Stag kUnknown{0x00bad000};
  uint64_t to = 0;  // address of all of them
  static constexpr uint32_t kSize = 4096;

 private:
  Buffer open_;
  Buffer inbox_;
  Buffer before_;
};

// spec/errors 1.1, written out: the ULPDU of a Terminate about `offender`.
inline Buffer terminate_ulpdu(wire::TermError e, Quoted quoted, const Buffer& offender) {
  Buffer u = test::from_hex("41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00");
  const auto byte = [](unsigned v) { return static_cast<std::byte>(v); };
  u.push_back(byte(static_cast<unsigned>(e.layer) << 4 | e.etype));
  u.push_back(byte(e.code));
  u.push_back(byte(quoted == Quoted::nothing ? 0x00 : quoted == Quoted::ddp ? 0xc0 : 0xe0));
  u.push_back(byte(0));
  if (quoted == Quoted::nothing) return u;
  u.push_back(byte(offender.size() >> 8));
  u.push_back(byte(offender.size() & 0xff));
  const size_t ddp = (std::to_integer<unsigned>(offender[0]) & 0x80) != 0 ? 14 : 18;
  u.insert(u.end(), offender.begin(), offender.begin() + static_cast<ptrdiff_t>(ddp));
  if (quoted == Quoted::ddp_and_rdmap) {
    u.insert(u.end(), offender.begin() + static_cast<ptrdiff_t>(ddp), offender.end());
  }
  return u;
}

inline uint64_t sum(std::span<const stats::Cell> family) {
  uint64_t n = 0;
  for (const stats::Cell& c : family) n += c.value();
  return n;
}

// The one Terminate, and the one reason for it, are counted (spec/errors 3).
inline void expect_counted(const test::ScriptPeer& p, wire::TermError e) {
  const stats::EngineCounters& c = p.engine_counters.counters;
  EXPECT_EQ(c.terminate_sent[wire::index_of(e)].value(), 1U);
  EXPECT_EQ(sum(c.terminate_sent), 1U);
  EXPECT_EQ(sum(c.refused), 1U);
  EXPECT_EQ(c.refused[static_cast<size_t>(wire::Refusal::other)].value(), 0U);
  const auto last = stats::LastTerminate::unpack(p.qp_counters.last_terminate);
  EXPECT_FALSE(last.received);
  EXPECT_EQ(last.error, e);
}

// The stream has ended over `offender` and says so in exactly these bytes. Between wefts a
// Delivered comes first (spec/rdmap 4).
inline void expect_terminate(test::ScriptPeer& p, wire::TermError e, Quoted quoted,
                             const Buffer& offender) {
  ASSERT_TRUE(p.host.end) << "the stream goes on";
  EXPECT_EQ(p.host.end->error.to_string(), e.to_string());
  auto frames = p.says();
  if (p.stream.parameters().extension) {
    ASSERT_FALSE(frames.empty());
    EXPECT_EQ(frames.front().op(), Opcode::delivered);
    frames.erase(frames.begin());
  }
  ASSERT_EQ(test::names(frames), "Terminate");
  EXPECT_EQ(test::to_hex(frames[0].ulpdu), test::to_hex(terminate_ulpdu(e, quoted, offender)));
  expect_counted(p, e);
}

}  // namespace weft::conformance
