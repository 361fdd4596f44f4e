// The events of `weft stream` as sentences, for people. Programs read them with --json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weft::stream {

// The sentence for an event, {"event": NAME, ...}. An unknown one becomes its name and its values.
// Pure.
std::string sentence_of(const nlohmann::json& event);

// "stream 3", "streams 0 to 3", "streams 0, 2 and 5". Pure.
std::string streams_text(const std::vector<uint32_t>& streams);

}  // namespace weft::stream
