// The worked examples of wire.md part V that belong to iWARP over TCP: frames that Linux siw sent
// or accepted (K), or that were computed (C). Hexadecimal text for from_hex(); FPDUs are whole,
// from ULPDU_Length to the CRC field.
#pragma once

#include <string>

#include "tests/support/hex.h"

namespace weft::test {

// E1 (K), Request of siw: no CRC, IRD 1, ORD 1.
inline constexpr char kE1Request[] =
    "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65  10 02 00 04  00 01 00 01";
// E2 (K), Request with C and siw's Reply; the enhanced blocks of peer-to-peer set-up; a Request
// with M and its refusal; Rev 1 with private data and its Reply.
inline constexpr char kE2Request[] =
    "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65  50 02 00 04  00 01 00 01";
inline constexpr char kE2Reply[] =
    "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65  50 02 00 04  00 01 00 01";
inline constexpr char kE2BlockWriteOrRead[] = "80 01 c0 01";
inline constexpr char kE2BlockWrite[] = "80 01 80 01";
inline constexpr char kE2BlockRead[] = "80 01 40 01";
inline constexpr char kE2MarkerRequest[] =
    "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65  d0 02 00 04  00 01 00 01";
inline constexpr char kE2MarkerRefused[] =
    "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65  70 02 00 04  00 00 00 00";
inline constexpr char kE2Rev1Request[] =
    "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65  40 01 00 0a  68 65 6c 6c 6f 20 77 65 66 74";
inline constexpr char kE2Rev1Reply[] =
    "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65  40 01 00 00";

// E3 (K), Send of 16 bytes, MSN 1.
inline constexpr char kE3Send[] =
    "00 22 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00"
    "00 00 7f 00 00 00 10 00 11 22 33 44 00 00 00 40   46 3f 3f e1";

// E4 (K), Read Request of siw.
inline constexpr char kE4ReadRequest[] =
    "00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00"
    "81 5b 10 00 00 00 7f 1c f4 00 0e 00 00 00 00 40 11 22 33 44 00 00 7f 00 00 00 10 00"
    "1b 8c d5 5e";

// The 64 bytes that E5 and E6 carry.
inline std::string rping_payload() {
  std::string text = "rdma-ping-0: ";
  for (size_t i = 0; text.size() < 63; ++i) text += static_cast<char>('A' + i % 26);
  text += '\0';
  return text;
}
// E5 (K), Read Response; E6 (K), RDMA Write of siw.
inline Buffer e5_read_response() {
  return join({from_hex("00 4e c1 42 81 5b 10 00 00 00 7f 1c f4 00 0e 00"),
               from_text(rping_payload()), from_hex("d8 c4 78 58")});
}
inline Buffer e6_write() {
  return join({from_hex("00 4e c1 40 55 66 77 88 00 00 7f 00 00 00 80 00"),
               from_text(rping_payload()), from_hex("b8 46 40 d3")});
}

// E7 (K), Write of siw with three pad bytes that are not zero.
inline constexpr char kE7Write[] =
    "00 2b c1 40 55 66 77 88 00 00 7f 00 00 00 80 00 72 64 6d 61 2d 70 69 6e 67 2d 30 3a 20 41 42 "
    "43"
    "44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 00 | 00 10 00 | ef ba 89 50";

// E8, Terminates: siw (K) for a Send without a buffer, weft (C) for the same, siw (K) for a bad
// CRC, an unknown opcode and a Read of a bad STag.
inline constexpr char kE8SiwNoBuffer[] =
    "00 2a 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00  21 02 03 00  00 40"
    "41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00   12 21 5c 5d";
inline constexpr char kE8WeftNoBuffer[] =
    "00 2a 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00  12 02 c0 00  00 22"
    "41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00   ce e4 e3 e8";
inline constexpr char kE8SiwBadCrc[] =
    "00 16 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00  02 02 00 00   75 d3 67 ed";
inline constexpr char kE8SiwOpcode8[] =
    "00 16 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00  20 06 00 00   65 40 fb 1b";
inline constexpr char kE8SiwBadReadStag[] =
    "00 46 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00  10 00 07 00  00 00"
    "41 41 00 00 00 00 00 00 00 01 00 00 00 40 00 00 00 00"
    "00 00 01 11 00 00 00 00 00 00 00 00 00 00 00 40 de ad be 00 00 00 00 00 00 00 10 00"
    "83 51 ea 27";

// E9 (C), Write of 8 bytes and its Immediate Data 0x01020304.
inline constexpr char kE9Write[] =
    "00 16 c1 40 55 66 77 00 00 00 00 00 00 00 10 00 77 65 66 74 64 61 74 61   8d 53 ec a5";
inline constexpr char kE9Immediate[] =
    "00 1a 41 48 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 01 02 03 04 00 00 00 00"
    "d0 3e 4a 82";

// E10 (C), Atomic CmpSwap and its response.
inline constexpr char kE10AtomicRequest[] =
    "00 46 41 4a 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 02 00 00 00 77 55 66 77 "
    "00"
    "00 00 00 00 00 00 20 00 00 00 00 00 00 00 11 11 ff ff ff ff ff ff ff ff 00 00 00 00 00 00 22 "
    "22"
    "ff ff ff ff ff ff ff ff   45 09 4c c6";
inline constexpr char kE10AtomicResponse[] =
    "00 1e 41 4b 00 00 00 00 00 00 00 03 00 00 00 01 00 00 00 00 00 00 00 77 00 00 00 00 00 00 22 "
    "22"
    "82 1e 36 67";

}  // namespace weft::test
