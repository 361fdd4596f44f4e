// A message without payload that a half connection waits to send.
#pragma once

#include <cstdint>

#include "sdp/wire/bsdh.h"
#include "sdp/wire/extended_headers.h"

namespace weft::sdp {

struct Owed {
  MessageId mid{};
  uint32_t length = 0;  // of RdmaRdCompl and RdmaWrCompl
  Mode mode{};          // of ModeChange, which is always about the receiver's receiving half
};

}  // namespace weft::sdp
