// Enumerations in a peer's JSON documents, each value by its word. nlohmann's own macro takes an
// unknown word for the first value.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "kit/failure.h"
#include "kit/json_text.h"

namespace weft::kit {

template <class E>
struct JsonWord {
  E value;
  const char* text;
};
// Clang before 17 makes no such guide for an aggregate by itself.
template <class E>
JsonWord(E, const char*) -> JsonWord<E>;

template <class E, size_t N>
const char* word_of(const std::array<JsonWord<E>, N>& words, E value) {
  for (const auto& word : words) {
    if (word.value == value) return word.text;
  }
  return "?";
}

// Throws Failure, which names `key`, if `json` is none of the words.
template <class E, size_t N>
E value_of(const std::array<JsonWord<E>, N>& words, const nlohmann::json& json, const char* key) {
  std::string known;
  for (const auto& word : words) {
    if (json == word.text) return word.value;
    known += (known.empty() ? "" : ", ") + std::string{word.text};
  }
  throw Failure("'" + std::string{key} + "' is " + text_of(json) + ", and the known words are " +
                known + ". Run the same version of weft on both sides");
}

}  // namespace weft::kit
