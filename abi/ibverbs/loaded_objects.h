// Functions that loaded objects (the program, libraries) import, replaced in all of them that are
// concerned. See imports.h for how.
#pragma once

#include <link.h>

#include <string_view>

#include "abi/ibverbs/imports.h"

namespace weft::abi {

// Without its folder; empty for the program.
inline std::string_view file_name(const dl_phdr_info& object) {
  const std::string_view path = object.dlpi_name;
  return path.substr(path.rfind('/') + 1);
}

// Is it about this object? Asked under the loader's lock, perhaps before the object is relocated.
// Its dlpi_name is the path, and empty for the program.
using Concerned = bool (*)(const dl_phdr_info& object);

// Any thread, any number of times. Takes locks of the dynamic loader, so the caller holds none.
// Throws bad_alloc.
void replace_in_objects(Concerned concerned, Replacement replacement);

}  // namespace weft::abi
