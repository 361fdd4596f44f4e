#include "kit/json_numbers.h"

#include <string>

#include "kit/failure.h"

namespace weft::kit {
namespace {

const nlohmann::json& value_at(const nlohmann::json& document, const char* key) {
  const auto at = document.find(key);
  if (at == document.end()) throw Failure(std::string{"'"} + key + "' is missing");
  return *at;
}

// What was parsed is unsigned if it is not negative; what a program has made need not be.
bool is_number(const nlohmann::json& value, uint64_t most) {
  if (value.is_number_unsigned()) return value.get<uint64_t>() <= most;
  return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<uint64_t>() <= most;
}

}  // namespace

uint64_t number_from(const nlohmann::json& value, const char* key, uint64_t most) {
  if (!is_number(value, most)) {
    throw Failure(std::string{"'"} + key + "' is no number from 0 to " + std::to_string(most));
  }
  return value.get<uint64_t>();
}

uint64_t number_at(const nlohmann::json& document, const char* key, uint64_t most) {
  return number_from(value_at(document, key), key, most);
}

uint64_t number_or(const nlohmann::json& document, const char* key, uint64_t most,
                   uint64_t otherwise) {
  return document.contains(key) ? number_at(document, key, most) : otherwise;
}

std::vector<uint64_t> numbers_at(const nlohmann::json& document, const char* key, uint64_t most) {
  const nlohmann::json& values = value_at(document, key);
  if (!values.is_array()) throw Failure(std::string{"'"} + key + "' is no array");
  std::vector<uint64_t> numbers;
  for (const nlohmann::json& value : values) numbers.push_back(number_from(value, key, most));
  return numbers;
}

}  // namespace weft::kit
