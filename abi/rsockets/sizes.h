// What a program may ask for before it connects, and what sockets have that it does not ask.
#pragma once

#include <cstdint>

namespace weft::rsockets {

struct Sizes {
  uint32_t send_buffer = 1 << 17;     // bytes
  uint32_t receive_buffer = 1 << 17;  // bytes; each half is granted by itself
  uint16_t send_queue = 384;          // work requests
  uint16_t receive_queue = 384;
  uint16_t inline_data = 64;  // bytes
  uint32_t mapped_slots = 0;  // for the peer's memory (riomap)
};

}  // namespace weft::rsockets
