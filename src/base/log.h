// Sentences for the user on standard error, a line each, and only from the level that WEFT_LOG asks
// for.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::log {

enum class Level : uint8_t { off, error, warn, info, debug };

void set_level(Level level);
bool enabled(Level level);
// printf's format. One write(2) a line; errno stays. Any thread; not from a signal handler.
void write(Level level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace weft::log

#define WEFT_LOG(level, ...)                                      \
  do {                                                            \
    if (::weft::log::enabled(::weft::log::Level::level))          \
      ::weft::log::write(::weft::log::Level::level, __VA_ARGS__); \
  } while (false)

// For calls of the program that are refused: the first one at this place is worth a warning;
// a program that makes one mistake again and again hears of the others from level info on.
#define WEFT_LOG_REFUSAL(...)                             \
  do {                                                    \
    static ::std::atomic_flag said = ATOMIC_FLAG_INIT;    \
    if (said.test_and_set(::std::memory_order_relaxed)) { \
      WEFT_LOG(info, __VA_ARGS__);                        \
    } else {                                              \
      WEFT_LOG(warn, __VA_ARGS__);                        \
    }                                                     \
  } while (false)
