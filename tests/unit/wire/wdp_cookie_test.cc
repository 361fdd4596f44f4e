#include "wire/wdp_cookie.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::to_hex;

CookieSecret counting_secret() {
  CookieSecret s{};
  for (size_t i = 0; i < s.size(); ++i) s[i] = static_cast<std::byte>(i);
  return s;
}
CookieSubject subject() {
  CookieSubject s;
  s.address = Gid::from_ipv4(0xc0000201);
  s.port = 0x9c40;
  s.token = SessionToken{0x01020304};
  s.xid = Xid{0x11121314};
  return s;
}

TEST(SipHash, VectorsOfItsAuthors) {
  // Key 00 01 .. 0f, messages 00 01 .. of each length; the one of 15 bytes is worked out in
  // appendix A of the paper "SipHash: a fast short-input PRF".
  struct Row {
    size_t length;
    uint64_t hash;
  };
  const Row rows[] = {{0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd}, {2, 0x0d6c8009d9a94f5a},
                      {7, 0xab0200f58b01d137},  {8, 0x93f5f5799a932462}, {15, 0xa129ca6149be45e5},
                      {26, 0x17d835b85bbb15f3}, {63, 0x958a324ceb064572}};
  for (const Row& r : rows) {
    Buffer message(r.length);
    for (size_t i = 0; i < r.length; ++i) message[i] = static_cast<std::byte>(i);
    EXPECT_EQ(siphash24(counting_secret(), message), r.hash) << r.length;
  }
}

TEST(WdpCookie, SubjectIsAddressPortTokenAndXid) {
  // spec/wdp 4.4: SipHash(secret .., src IP, port, token, XID).
  Buffer b(CookieSubject::kSize + 1, std::byte{0xee});
  subject().encode(b.data());
  EXPECT_EQ(to_hex(b),
            "00 00 00 00 00 00 00 00 00 00 ff ff c0 00 02 01 9c 40 01 02 03 04 11 12 13 14 ee");
}

TEST(WdpCookie, IsTheHashOfTheSubject) {
  Buffer b(CookieSubject::kSize);
  subject().encode(b.data());
  EXPECT_EQ(make_cookie(counting_secret(), subject()).value(), siphash24(counting_secret(), b));
  EXPECT_EQ(make_cookie(counting_secret(), subject()), make_cookie(counting_secret(), subject()));
}

TEST(WdpCookie, EachThingItIsForMakesAnother) {
  std::set<uint64_t> cookies;
  const auto add = [&](const CookieSecret& secret, const CookieSubject& s) {
    cookies.insert(make_cookie(secret, s).value());
  };
  add(counting_secret(), subject());
  CookieSecret other = counting_secret();
  other[15] ^= std::byte{1};
  add(other, subject());
  CookieSubject s = subject();
  s.address = Gid::from_ipv4(0xc0000202);
  add(counting_secret(), s);
  s = subject();
  s.port ^= 1;
  add(counting_secret(), s);
  s = subject();
  s.token = SessionToken{0x01020305};
  add(counting_secret(), s);
  s = subject();
  s.xid = Xid{0x11121315};
  add(counting_secret(), s);
  EXPECT_EQ(cookies.size(), 6U);
}

}  // namespace
}  // namespace weft::wire
