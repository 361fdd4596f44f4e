// Lines that another tool says (tools/kit/json_lines.h), in pieces. Input: the size of the pieces,
// then the bytes.

#include "kit/json_lines.h"

#include "fuzz/support/input.h"
#include "kit/failure.h"

namespace {

using namespace weft;

constexpr size_t kLongest = 4096;

int depth_of(const nlohmann::json& value) {
  int deepest = 0;
  if (value.is_structured()) {
    for (const auto& part : value) deepest = std::max(deepest, 1 + depth_of(part));
  }
  return deepest;
}

// What was taken can be copied and said again.
void look_at(const nlohmann::json& document) {
  FUZZ_CHECK(depth_of(document) <= 17);
  kit::JsonLines again{kLongest * 8};
  again.add(kit::line_of(document));
  const auto same = again.next();
  FUZZ_CHECK(same.has_value() && *same == document && again.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input{fuzz::as_bytes(data, size)};
  const size_t piece = size_t{1} + input.u8();
  kit::JsonLines lines{kLongest};
  while (!input.empty()) {
    const Bytes bytes = input.take(piece);
    lines.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    try {
      while (const auto document = lines.next()) look_at(*document);
    } catch (const kit::Failure&) {
      // A line that is none; what is behind it counts.
      if (lines.full()) lines.take_rest();
    }
  }
  return 0;
}
