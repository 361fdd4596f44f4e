#include "kit/json_numbers.h"

#include "kit/failure.h"

namespace weft::kit {
namespace {

const nlohmann::json& value_at(const nlohmann::json& document, const char* key) {
  const auto at = document.find(key);
  if (at == document.end()) throw Failure("a number is missing");
  return *at;
}

}  // namespace

uint64_t number_from(const nlohmann::json& value, uint64_t most) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > most) {
    throw Failure("a number is out of range");
  }
  return value.get<uint64_t>();
}

uint64_t number_at(const nlohmann::json& document, const char* key, uint64_t most) {
  return number_from(value_at(document, key), most);
}

uint64_t number_or(const nlohmann::json& document, const char* key, uint64_t most,
                   uint64_t otherwise) {
  return document.contains(key) ? number_at(document, key, most) : otherwise;
}

std::vector<uint64_t> numbers_at(const nlohmann::json& document, const char* key, uint64_t most) {
  const nlohmann::json& values = value_at(document, key);
  if (!values.is_array()) throw Failure("numbers are no array");
  std::vector<uint64_t> numbers;
  for (const nlohmann::json& value : values) numbers.push_back(number_from(value, most));
  return numbers;
}

}  // namespace weft::kit
