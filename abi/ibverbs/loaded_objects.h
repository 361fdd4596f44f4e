// Functions that loaded objects (the program, libraries) import, replaced in all of them that are
// concerned. See imports.h for how.
#pragma once

#include "abi/ibverbs/imports.h"

namespace weft::abi {

// `concerned`: by its path, as the loader tells it; that of the program is empty. Any thread, any
// number of times. Takes locks of the dynamic loader, so the caller holds none. Throws bad_alloc.
void replace_in_objects(bool (*concerned)(const char* path), Replacement replacement);

}  // namespace weft::abi
