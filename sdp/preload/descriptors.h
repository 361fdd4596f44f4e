// System calls that the program makes past libc and that concern its descriptors: libuv, and so
// Node.js, closes by syscall(2). What moves bytes is the kernel's from then on.
#pragma once

#include <optional>

namespace weft::sdp {

bool concerns_descriptors(long number);
// Around the call `number`, of these arguments, if it is one of them. `result` is returned. What
// answers instead of the kernel is returned by the first one.
std::optional<long> before_call_on_descriptors(long number, long first, long second, long third);
long after_call_on_descriptors(long number, long first, long result);

}  // namespace weft::sdp
