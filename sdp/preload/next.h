// The function of the same name that comes behind the library's.
#pragma once

#include <dlfcn.h>

namespace weft::sdp {

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace weft::sdp

// `WEFT_SDP_NEXT(close)` is libc's close, found at the first call.
#define WEFT_SDP_NEXT(name)                                                 \
  ([]() noexcept {                                                          \
    static auto* const function = weft::sdp::next<decltype(::name)>(#name); \
    return function;                                                        \
  }())
