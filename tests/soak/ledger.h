// What the processes of a soak tell each other: memory that all of them share, so that it outlives
// each of them. Every number has one writer, named here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::soak {

inline constexpr size_t kMostWorkers = 32;
inline constexpr size_t kMostLinks = size_t{1} << 20;
inline constexpr size_t kComplaintSize = 240;

// One counter of one writer.
class Count {
 public:
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }
  uint64_t get() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> value_{0};
};

// One connection, from the request on. The two halves are written by the two processes.
struct Link {
  // ended: and every completion was taken; abandoned: what was under way was given up.
  enum class Stage : uint8_t { none, open, ended, abandoned };
  struct Half {
    std::atomic<Stage> stage{Stage::none};
    std::atomic<uint8_t> worker{0};
    std::atomic<uint32_t> incarnation{0};
    Count sent;      // messages whose request completed with success
    Count received;  // messages that came, and were as they should be
  };
  Half client;
  Half server;
  std::atomic<bool> clean{false};  // client: everything was answered before it was closed
};

// Of one process, and of those that take its place when it is killed.
struct Worker {
  enum class Role : uint8_t { client, server };
  Role role{};                           // supervisor
  std::atomic<uint32_t> incarnation{0};  // supervisor
  std::atomic<uint16_t> port{0};         // server: where it listens; 0: it does not yet
  std::atomic<bool> limited{false};      // supervisor: descriptors or memory are scarce
  std::atomic<uint32_t> shortages{0};    // supervisor: how often they were made so
  std::atomic<bool> slow{false};         // supervisor: it shall not read

  Count turns;
  Count connections;
  Count sends;
  Count writes;
  Count writes_with_immediate;
  Count reads;
  Count atomics;
  Count messages_received;
  Count bytes_verified;
  Count refused_by_limits;
  Count refused_by_peer;
  Count ended_by_peer;
  Count ended_by_us;
  Count wrong_keys;
};

struct Ledger {
  std::atomic<bool> stop{false};  // supervisor: finish what is under way, start nothing new
  std::atomic<bool> want{false};  // supervisor: a process has been without descriptors or memory
  std::atomic<uint32_t> links{0};
  std::atomic<uint32_t> complaints{0};
  std::array<std::array<char, kComplaintSize>, 32> complaint{};
  std::array<Worker, kMostWorkers> workers{};
  std::array<Link, kMostLinks> link{};

  // Something is not as it must be. Any process.
  void complain(const char* format, ...) __attribute__((format(printf, 2, 3)));
};

}  // namespace weft::soak
