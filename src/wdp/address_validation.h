// What may be sent to an address that is not known to be the peer's: three times what came from
// there (spec/threats 4, RFC 9000 8.1).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::wdp {

// Of one peer. A value type. Not thread-safe.
class AddressValidation {
 public:
  static constexpr uint64_t kFactor = 3;

  // `bytes` came. `validated`: with a proof that they come from there.
  void came(size_t bytes, bool validated) {
    came_ += bytes;
    validated_ = validated_ || validated;
  }
  // The peer has answered what only it can have heard.
  void validate() { validated_ = true; }
  bool is_validated() const { return validated_; }
  bool allows(size_t bytes) const { return validated_ || went_ + bytes <= kFactor * came_; }
  void went(size_t bytes) { went_ += bytes; }

 private:
  uint64_t came_ = 0;
  uint64_t went_ = 0;
  bool validated_ = false;
};

}  // namespace weft::wdp
