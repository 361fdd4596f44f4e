// Who calls: what libibverbs, librdmacm and this library ask of sockets is not for SDP.
#pragma once

namespace weft::sdp {

// `address` is where the call returns to. Takes no lock and no memory after the first call.
bool is_program(const void* address);

}  // namespace weft::sdp

// In each function that stands in the place of libc's.
#define WEFT_SDP_FOR_PROGRAM weft::sdp::is_program(__builtin_return_address(0))
#define WEFT_SDP_EXPORT extern "C" [[gnu::visibility("default")]]
