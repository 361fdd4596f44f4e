// Which sanitizer this is built with, by GCC's names and Clang's: WEFT_TSAN, and WEFT_SANITIZER for
// ASan or TSan.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif

#if defined(WEFT_TSAN) || defined(__SANITIZE_ADDRESS__)
#define WEFT_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_SANITIZER 1
#endif
#endif
