// Finds the word that a misspelt one was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weft {

// The word of `known` with the fewest edits (a letter added, left out, replaced, or swapped with
// the next one) from `given`. Empty if `given` is too far from all of them: more than one edit for
// each three letters. Of equals the first one. Pure.
std::string nearest_word(std::string_view given, std::span<const std::string> known);

}  // namespace weft
