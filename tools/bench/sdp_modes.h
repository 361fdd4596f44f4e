// The ways in which `weft bench sdp` moves bytes between sockets: a line of the table each.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace weft::bench {

struct SdpMode {
  const char* name;  // in the names of cases
  bool preloaded;    // libweft-sdp.so stands in the place of libc's functions
  bool same_host;    // the adapter goes through memory that both sides share, where it can
  bool relayed;      // the library's thread moves the bytes, as for a descriptor of two processes
  // Set besides, for the library: pairs that end with a null pointer.
  std::array<const char*, 4> environment{};
};

// The first one is what the others are compared with.
std::span<const SdpMode> sdp_modes();
// Nullptr where none has this name.
const SdpMode* find_sdp_mode(std::string_view name);

}  // namespace weft::bench
