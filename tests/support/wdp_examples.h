// The worked examples of wire.md part V that belong to WDP. All were computed (C), none exchanged
// with a peer. Hexadecimal text for from_hex(); each is a whole UDP payload.
#pragma once

#include "tests/support/hex.h"

namespace weft::test {

// E11, UC Write with immediate: 19 bytes, stride 16, two datagrams.
inline constexpr char kE11First[] =
    "d1 1c 05 09 a1 b2 c3 d4 00 00 10 00 90 6e 97 f0 00 00 00 2a 00 00 00 00 00 00 00 13"
    "81 40 00 10 55 66 77 00 ca fe f0 0d 00 00 7f 00 00 00 10 00"
    "| 77 65 66 74 20 75 63 20 73 65 67 6d 65 6e 74 65";
inline constexpr char kE11Last[] =
    "d1 1c 05 09 a1 b2 c3 d4 00 00 10 01 ef 99 b6 66 00 00 00 2a 00 00 00 10 00 00 00 13"
    "c1 40 00 10 55 66 77 00 ca fe f0 0d 00 00 7f 00 00 00 10 10"
    "| 64 21 21";

// E12, UD Send with immediate, "hello".
inline constexpr char kE12Send[] =
    "d1 2c 07 02 11 11 11 11 00 9c 40 02 a6 8b 0f 69 00 c3 50 07 00 00 00 09 41 43 00 05"
    "ca fe f0 0d | 68 65 6c 6c 6f";

// E13, CTL REQ for UC with private data "pd", zero-padded to 256 bytes.
inline Buffer e13_request() {
  Buffer b = from_hex(
      "d1 08 00 09 00 00 00 00 01 00 01 00 61 83 40 0b a1 b2 c3 d4 00 c3 50 09 00 00 00 00"
      "5e ed 00 01 01 00 00 04 00 04 05 c0 00 00 10 00 00 00 00 1f 00 00 00 00 00 00 00 00"
      "00 02 00 00 00 00 00 00 70 64");
  b.resize(256);
  return b;
}

// E14, RDACK: CUM 0x1005, and 1006, 1008, 1009 held.
inline constexpr char kE14Ack[] =
    "d1 48 00 00 0b ad ca fe 00 00 10 05 26 64 88 38 00 00 12 34 00 00 10 09 00 00 00 01"
    "00 00 10 00 00 00 00 00 b0 00 00 00";

}  // namespace weft::test
