// What people are told of a packet that is none of its stream's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "stream/packet.h"

namespace weft::stream {

struct InvalidPacket {
  std::string reason;
  nlohmann::json fields;  // the numbers of its header, by their names
  std::string header;     // its first bytes, in hexadecimal
};

// Why these bytes are no packet of the shape. Any bytes may come.
InvalidPacket invalid_packet(const Shape& shape, ConstPacket packet);

// Numbers by their names.
nlohmann::json as_json(const std::vector<std::pair<std::string, uint64_t>>& numbers);

}  // namespace weft::stream
