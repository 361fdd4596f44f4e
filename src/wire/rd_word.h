// What messages of RC connections say that carry no bytes of the stream: the immediate data of
// those with F_IMM (spec/wdp-rd 7.2, 7.5).
#pragma once

#include <cstdint>

namespace weft::wire {

enum class RdStreamWord : uint32_t {
  taken = 1,    // bytes that were read
  end = 2,      // as FIN of TCP
  abort = 3,    // as RST
  window = 4,   // how far the peer may be ahead
  request = 5,  // the start of a connection: an RdOffer and an MPA Request
  reply = 6,    // an MPA Reply
  cancel = 7,   // of a Request that had this RdOffer
};

}  // namespace weft::wire
