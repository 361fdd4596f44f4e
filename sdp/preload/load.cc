// The library is loaded: what has to be known before the first call.
#include "sdp/loop/own_descriptors.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/fork_handlers.h"
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/table.h"

extern "C" int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(),
                                 void* object);

namespace {

[[gnu::constructor]] void begin() {
  // Not pthread_atfork(3), in whose place this library stands (clone.cc).
  const auto all = weft::sdp::ForkHandlers::of_libc();
  (void)WEFT_SDP_NEXT(__register_atfork)(all.before, all.in_parent, all.in_child, nullptr);
  (void)weft::sdp::ForkHandlers::add({.in_child = weft::sdp::OwnDescriptors::forget_all});
  weft::sdp::Table::begin();
  weft::sdp::Registrations::keep_over_forks();
}

}  // namespace
