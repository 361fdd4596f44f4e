// ULPDUs built by hand and streams of FPDUs taken apart, for tests that speak to a stream byte by
// byte. Deliberately independent of what src/rdmap does to build its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/fpdu.h"
#include "wire/ddp_header.h"
#include "wire/rdmap_messages.h"
#include "wire/terminate.h"

namespace weft::test {

// --- building

struct Tagged {
  wire::Opcode op = wire::Opcode::write;
  Stag stag;
  uint64_t to = 0;
  bool last = true;
  bool ack_wanted = false;
};
inline Buffer tagged(const Tagged& h, Bytes payload = {}) {
  Buffer b(wire::TaggedHeader::kSize + payload.size());
  wire::TaggedHeader{
      .control = {.tagged = true, .last = h.last, .ack_wanted = h.ack_wanted, .opcode = h.op},
      .stag = h.stag,
      .to = TaggedOffset{h.to}}
      .encode(b.data());
  std::copy(payload.begin(), payload.end(), b.begin() + wire::TaggedHeader::kSize);
  return b;
}

struct Untagged {
  wire::Opcode op = wire::Opcode::send;
  uint32_t qn = 0;
  uint32_t msn = 1;
  uint32_t mo = 0;
  bool last = true;
  uint32_t word = 0;  // Invalidate STag or immediate
  bool ack_wanted = false;
};
inline Buffer untagged(const Untagged& h, Bytes payload = {}) {
  Buffer b(wire::UntaggedHeader::kSize + payload.size());
  wire::UntaggedHeader{.control = {.last = h.last, .ack_wanted = h.ack_wanted, .opcode = h.op},
                       .ulp_word = h.word,
                       .qn = QueueNumber{h.qn},
                       .msn = Msn{h.msn},
                       .mo = MessageOffset{h.mo}}
      .encode(b.data());
  std::copy(payload.begin(), payload.end(), b.begin() + wire::UntaggedHeader::kSize);
  return b;
}

template <class Message>
Buffer encoded(const Message& m) {
  Buffer b(Message::kSize);
  m.encode(b.data());
  return b;
}
inline Buffer read_request(uint32_t msn, const wire::ReadRequest& r) {
  return untagged({.op = wire::Opcode::read_request, .qn = 1, .msn = msn}, encoded(r));
}
inline Buffer atomic_request(uint32_t msn, const wire::AtomicRequest& r) {
  return untagged({.op = wire::Opcode::atomic_request, .qn = 1, .msn = msn}, encoded(r));
}
inline Buffer immediate(uint32_t msn, uint32_t value) {
  return untagged({.op = wire::Opcode::immediate, .msn = msn}, encoded(wire::Immediate{value}));
}
inline Buffer delivered(uint64_t run, uint32_t stag = 0) {
  return tagged({.op = wire::Opcode::delivered, .stag = Stag{stag}, .to = run});
}
inline Buffer terminate(const wire::Terminate& t) {
  Buffer b(wire::Terminate::kMaxSize);
  b.resize(t.encode(b.data()));
  return untagged({.op = wire::Opcode::terminate, .qn = 2}, b);
}

// --- taking apart

struct Frame {
  Buffer ulpdu;  // empty: an FPDU without a segment
  wire::Control control;
  Stag stag;  // tagged
  uint64_t to = 0;
  uint32_t word = 0;  // untagged
  uint32_t qn = 0;
  uint32_t msn = 0;
  uint32_t mo = 0;
  Buffer payload;

  wire::Opcode op() const { return control.opcode; }
};

inline Frame parse_ulpdu(Bytes u) {
  Frame f{.ulpdu = {u.begin(), u.end()}};
  if (u.empty()) return f;
  f.control = wire::Control::parse(u.data());
  const size_t size = wire::ddp_header_size(f.control.tagged);
  if (u.size() < size) {
    ADD_FAILURE() << "a ULPDU of " << u.size() << " bytes";
    return f;
  }
  if (f.control.tagged) {
    const auto h = wire::TaggedHeader::parse(u.data());
    f.stag = h.stag;
    f.to = h.to.value();
  } else {
    const auto h = wire::UntaggedHeader::parse(u.data());
    f.word = h.ulp_word;
    f.qn = h.qn.value();
    f.msn = h.msn.value();
    f.mo = h.mo.value();
  }
  f.payload.assign(u.begin() + static_cast<ptrdiff_t>(size), u.end());
  return f;
}

// Whole FPDUs without markers. What is wrong with one is a test failure: `crc` says what the CRC
// field must hold.
inline std::vector<Frame> parse_stream(Bytes stream, bool crc = true) {
  std::vector<Frame> frames;
  while (!stream.empty()) {
    const size_t size = stream.size() < 2 ? 0 : wire::fpdu_size(load_be<uint16_t>(stream.data()));
    if (size == 0 || size > stream.size()) {
      ADD_FAILURE() << stream.size() << " bytes at the end are no FPDU";
      break;
    }
    const SplitFpdu parts = split_fpdu(stream.first(size));
    EXPECT_EQ(parts.crc_field, crc ? parts.crc : 0U);
    for (const std::byte b : parts.pad) EXPECT_EQ(b, std::byte{0}) << "pad is sent as zero";
    frames.push_back(parse_ulpdu(parts.ulpdu));
    stream = stream.subspan(size);
  }
  return frames;
}

// "Send, Read Request": for messages and for comparing what was said as a whole.
inline std::string names(const std::vector<Frame>& frames) {
  std::string text;
  for (const Frame& f : frames) {
    if (!text.empty()) text += ", ";
    text += f.ulpdu.empty() ? "empty FPDU" : wire::to_string(f.op());
  }
  return text;
}

}  // namespace weft::test
