// Numbers of a peer's JSON documents. nlohmann's own conversions take -1, and 65537 for a number of
// 16 bits.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace weft::kit {

// Each throws Failure, which names `key`, where a value is missing, no whole number, or above
// `most`.
uint64_t number_from(const nlohmann::json& value, const char* key, uint64_t most);
uint64_t number_at(const nlohmann::json& document, const char* key, uint64_t most);
// The same; `otherwise` where it is missing.
uint64_t number_or(const nlohmann::json& document, const char* key, uint64_t most,
                   uint64_t otherwise);
// An array of such.
std::vector<uint64_t> numbers_at(const nlohmann::json& document, const char* key, uint64_t most);

// As large as T can hold.
template <std::unsigned_integral T>
T number_at(const nlohmann::json& document, const char* key) {
  return static_cast<T>(number_at(document, key, std::numeric_limits<T>::max()));
}

}  // namespace weft::kit
