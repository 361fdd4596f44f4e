// The library is loaded: what has to be known before the first call.
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/table.h"

namespace {

[[gnu::constructor]] void begin() {
  weft::sdp::Table::begin();
  weft::sdp::Registrations::keep_over_forks();
}

}  // namespace
