// Descriptors that the program leaves open when it closes those that it does not know: the
// library's and the adapter's (loop/own_descriptors.h). Here is which the adapter makes.
#pragma once

#include <optional>

namespace weft::sdp {

// What close(2) of `fd`, or dup2(2) to it, by the program comes to where it is one of them: EBADF,
// as of a number that is not in use, or cannot be. A process that has only borrowed this one's
// memory (vfork) closes its own copies.
bool is_left_open(int fd);
inline constexpr int kLeftOpen = -1;  // with errno

// close_range(2) of all others. `flags` are none, or CLOSE_RANGE_UNSHARE.
int close_others(unsigned first, unsigned last, int flags);

// Around a system call of the adapter's that makes or ends a descriptor.
bool makes_or_ends_descriptor(long number);
void before_call_of_adapter(long number, long first);
void after_call_of_adapter(long number, long second, long result);

}  // namespace weft::sdp
