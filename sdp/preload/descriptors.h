// System calls by which the program changes its descriptors past libc: libuv, and so Node.js,
// closes by syscall(2).
#pragma once

namespace weft::sdp {

bool changes_descriptors(long number);
// Around the call `number`, of these arguments, if it is one of them. `result` is returned.
void before_descriptors_change(long number, long first, long second, long third);
long after_descriptors_changed(long number, long first, long result);

}  // namespace weft::sdp
