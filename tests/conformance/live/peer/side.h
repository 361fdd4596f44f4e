// The peer under test: one side of an rdma_cm connection, with memory of which the other side may
// touch a part, and requests on demand. Uses nothing but the two libraries, as any program, so that
// the same file runs on weft and on the siw of a kernel. Every wait is bounded.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft::conformance {

// Something did not work; the text goes to the driver.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
[[noreturn]] void fail_call(const std::string& call);

using Octets = std::vector<uint8_t>;
std::string to_hex(const uint8_t* bytes, size_t n);

// Bytes in which none equals its neighbours; `seed` tells patterns apart.
inline uint8_t pattern_byte(size_t i, uint64_t seed) {
  return static_cast<uint8_t>(i * 7 + i / 251 + seed * 31);
}

class Side {
 public:
  static constexpr size_t kWindow = 65536;  // of the arena, what has keys for the other side
  static constexpr size_t kGuard = 16384;   // before and behind it
  static constexpr size_t kSlots = 32;      // requests and receives of a connection
  static constexpr uint64_t kArenaSeed = 3;
  static constexpr uint64_t kOutSeed = 5;  // of what is sent and written

  explicit Side(std::string address);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side();

  // As at the beginning: no connection, no listener, the memory as it was made, fresh keys. The
  // answer names the keys. `completion_ms`: how long to wait for a completion.
  std::string reset(int completion_ms);

  // --- connections
  uint16_t listen();
  // A connection request, or "none"; the queue pair has so many receives before it is accepted.
  std::string request(size_t receives, size_t bytes, int within_ms);
  void accept(int ird, int ord, const Octets& private_data);
  void reject(const Octets& private_data);
  void connect(const std::string& address, uint16_t port, size_t receives, size_t bytes, int ird,
               int ord, const Octets& private_data);
  std::string event();
  void disconnect();
  void break_pair();  // to the error state
  void drop();

  // --- requests
  void post_receives(size_t n, size_t bytes);
  void send(const std::string& kind, size_t bytes, uint32_t word);
  void remote(const std::string& kind, uint32_t stag, uint64_t to, size_t bytes, uint64_t value);
  uint32_t bind_window();
  std::string next_done();
  std::string next_received();

  // --- memory; offsets are the window's
  std::string window(int64_t offset, size_t bytes) const;
  std::string sink(size_t bytes) const;
  void poke(int64_t offset, const Octets& bytes);
  std::string changed() const;

 private:
  bool event_within(int ms) const;
  rdma_cm_event* next_event();
  void make_pair(size_t receives, size_t bytes);
  void clear();
  void post(ibv_send_wr& w, ibv_sge piece, size_t bytes);
  uint8_t* slot(size_t n) { return &inbox_[n % kSlots * kWindow]; }

  std::string address_;
  int completion_ms_ = 0;
  rdma_event_channel* channel_ = nullptr;
  ibv_context* device_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_pd* other_pd_ = nullptr;
  std::vector<ibv_mr*> regions_;
  ibv_mr* rw_ = nullptr;  // also among the regions
  ibv_mr* local_ = nullptr;
  ibv_mr* inbox_mr_ = nullptr;
  ibv_mr* sink_mr_ = nullptr;
  ibv_mw* mw_ = nullptr;

  rdma_cm_id* listener_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  ibv_cq* done_ = nullptr;
  ibv_cq* received_ = nullptr;
  size_t posted_ = 0;
  size_t taken_ = 0;

  Octets arena_;
  Octets out_;
  Octets sink_;
  Octets inbox_;
};

}  // namespace weft::conformance
