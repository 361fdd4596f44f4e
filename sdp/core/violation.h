// Why a peer cannot be talked to any longer.
#pragma once

#include <cstdint>

namespace weft::sdp {

enum class Violation : uint8_t {
  length,      // a message is shorter than its headers, or Len says otherwise
  identifier,  // no such message, or one that has no place here
  number,      // MSeq or MSeqAck
  mode,        // a change that is not allowed, or a message that its mode does not have
  advert,      // about a buffer that there is not, of more bytes than it has, or of no use
  after_end,   // data behind a DisConn
};
const char* text(Violation violation);

}  // namespace weft::sdp
