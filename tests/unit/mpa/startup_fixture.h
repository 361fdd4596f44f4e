// What the tests of the MPA start-up share.
#pragma once

#include <gtest/gtest.h>

#include "mpa/startup.h"
#include "tests/support/hex.h"
#include "tests/support/spec_example.h"

namespace weft::mpa {

using test::Buffer;
using test::from_hex;
using test::from_text;
using test::pattern;
using test::to_hex;
using wire::MpaEnhanced;
using wire::MpaStart;
namespace term = wire::term;

// The bytes of a Request or Reply.
inline Buffer frame(const MpaStart& start, const MpaEnhanced* block, Bytes private_data = {}) {
  MpaStart s = start;
  s.enhanced = block != nullptr;
  s.private_data_length = static_cast<uint16_t>(private_data.size() + (block != nullptr ? 4 : 0));
  Buffer b(MpaStart::kSize + (block != nullptr ? 4 : 0));
  s.encode(b.data());
  if (block != nullptr) block->encode(b.data() + MpaStart::kSize);
  b.insert(b.end(), private_data.begin(), private_data.end());
  return b;
}

// The same, taken apart.
struct Parsed {
  MpaStart start;
  std::optional<MpaEnhanced> block;
  Buffer private_data;
};

inline Parsed parsed(MpaStart::Kind kind, Bytes bytes) {
  FrameReader reader(kind);
  auto f = reader.received(bytes);
  EXPECT_TRUE(f.ok() && f->has_value() && bytes.empty());
  if (!f.ok() || !f->has_value()) return {};
  return {(*f)->start, (*f)->enhanced, (*f)->private_data};
}

// What an Initiator asks for besides.
struct Wants {
  bool same_host = false;
  bool rd = false;
};

inline MpaStart start_of(const Offer& offer, Wants wants) {
  Initiator i(offer);
  return parsed(MpaStart::Kind::request, i.request({}, wants.same_host, wants.rd)).start;
}

// A Responder that has read this Request.
inline Responder asked(const Offer& offer, Wants wants) {
  Initiator i(offer);
  const Buffer request = i.request({}, wants.same_host, wants.rd);
  Responder r;
  Bytes b{request};
  EXPECT_TRUE(r.received(b).ok());
  return r;
}

// What an Initiator with this offer makes of a Reply.
inline Initiator::Outcome answered(const Offer& offer, Bytes reply) {
  Initiator initiator(offer);
  auto o = initiator.received(reply);
  EXPECT_TRUE(o.has_value());
  EXPECT_TRUE(reply.empty());
  return o ? std::move(*o) : Initiator::Outcome{};
}

inline Initiator::Outcome answered(const Offer& offer, const MpaStart& start,
                                   const MpaEnhanced* block = nullptr) {
  return answered(offer, frame(start, block));
}

// What a Responder with these limits makes of a Request.
struct Accepting {
  Responder::Request request;
  Responder::Reply reply;
  Parsed sent;
};

inline Accepting accepting(Bytes request, const Offer& limits, Bytes private_data = {}) {
  Responder responder;
  auto r = responder.received(request);
  EXPECT_TRUE(r.ok() && r->has_value());
  if (!r.ok() || !r->has_value()) return {};
  Accepting a{.request = **r, .reply = responder.accept(limits, private_data)};
  a.sent = parsed(MpaStart::Kind::reply, a.reply.bytes);
  return a;
}

}  // namespace weft::mpa
