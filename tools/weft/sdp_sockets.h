// What `weft stat` prints of the connections of processes that libweft-sdp.so is in.
#pragma once

#include <sys/types.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sdp/stat/layout.h"

namespace weft::tools {

struct SdpTraffic {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t credits = 0;
};

struct SdpConnection {
  sdp::Transport transport = sdp::Transport::sdp;
  bool server = false;
  bool relayed = false;
  sdp::Fallback fallback = sdp::Fallback::none;
  std::string own;
  std::string peer;
  SdpTraffic traffic;
};

struct SdpProcess {
  pid_t pid = 0;
  std::string program;
  uint64_t connected = 0;  // by SDP, since its beginning
  uint64_t accepted = 0;
  std::array<uint64_t, sdp::kFallbacks> fallbacks{};
  SdpTraffic ended;
  std::vector<SdpConnection> connections;
};

// Of a file as sdp/stat has it. Nothing where it is none of `owner`, or of another version.
std::optional<SdpProcess> read_sdp_file(int file, uint32_t owner);
// Nothing where the process shows none.
std::optional<SdpProcess> read_sdp_process(pid_t pid);

std::string sdp_as_text(std::span<const SdpProcess> processes);
nlohmann::json sdp_as_json(std::span<const SdpProcess> processes);
std::string sdp_as_prometheus(std::span<const SdpProcess> processes);

}  // namespace weft::tools
