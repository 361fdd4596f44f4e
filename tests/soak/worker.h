// What both kinds of processes have: events, one completion queue with its channel, and patience.
// Plain calls of librdmacm and libibverbs, as any program makes them.
#pragma once

#include <rdma/rdma_cma.h>

#include <chrono>
#include <cstdint>
#include <random>

#include "tests/soak/ledger.h"
#include "tests/soak/pattern.h"

namespace weft::soak {

using Clock = std::chrono::steady_clock;

inline constexpr uint32_t kReceives = 24;  // posted by each side of a link
inline constexpr uint32_t kWindow = 16;    // messages to the server that it did not answer yet
inline constexpr uint32_t kRequests = 64;
// Nothing takes longer than this, whatever happens to the others; a process that was stopped or had
// no memory gets it anew.
inline constexpr std::chrono::seconds kPatience{40};

// The server's memory of a link, in which the client writes, reads and counts.
struct Layout {
  static constexpr size_t kAddCell = 0;
  static constexpr size_t kSwapCell = 8;
  static constexpr size_t kAreas = 4;
  static constexpr size_t area(uint64_t n) { return 4096 + n % kAreas * kMostBytes; }
  static constexpr size_t message(uint64_t n) {
    return area(0) + (kAreas + n % kWindow) * kMostBytes;
  }
  static constexpr size_t kBytes = 4096 + (kAreas + kWindow) * kMostBytes;
};

// What the server says when it accepts.
struct Welcome {
  uint64_t address;
  uint32_t key;
};

class WorkerProcess {
 public:
  WorkerProcess(Ledger& ledger, size_t number);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  virtual ~WorkerProcess() = default;

  // Until the ledger says stop and all is done. The process ends afterwards without any cleaning
  // up.
  void run();

 protected:
  virtual void on_event(const rdma_cm_event& e) = 0;
  virtual void on_completion(const ibv_wc& wc) = 0;
  virtual void turn() = 0;
  virtual bool done() const = 0;

  // A call failed. True, and counted, when it is because of limits that were set to this process;
  // otherwise it is complained of.
  bool excused(const char* call, int error);
  // The completion queue and the protection domain, made with the first context that is seen.
  bool have_context(ibv_context* context);
  bool make_pair(rdma_cm_id* id);
  uint64_t random(uint64_t below) { return random_() % below; }
  void patience_anew() { patient_since_ = Clock::now(); }
  // Since when nothing was done to this process from outside.
  Clock::time_point patient_since() const { return patient_since_; }

  Ledger& ledger_;
  Worker& me_;
  const size_t number_;
  const uint32_t incarnation_;
  rdma_event_channel* events_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_cq* queue_ = nullptr;

 private:
  void take_events();
  bool take_completions();
  void wait();
  void watch_time();
  void ask_for_more();

  std::mt19937_64 random_;
  ibv_comp_channel* channel_ = nullptr;
  Clock::time_point patient_since_ = Clock::now();
  Clock::time_point last_turn_ = Clock::now();
  Clock::time_point limited_until_{};
  uint32_t shortages_ = 0;  // that watch_time() has seen
  uint32_t asked_ = 0;      // the one of them at which more was asked for
};

[[noreturn]] void be_client(Ledger& ledger, size_t number, unsigned links);
[[noreturn]] void be_server(Ledger& ledger, size_t number);

}  // namespace weft::soak
