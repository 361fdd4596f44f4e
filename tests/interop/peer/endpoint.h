// One end of a connection for a script: the calls of librdmacm and libibverbs, each of them bounded
// in time, and messages whose every byte follows from their number. Uses nothing but the two
// libraries, as any program, so that the same file runs on weft and, in the guest, on siw.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft::interop {

// Something is not as the script has it.
class Unexpected : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// A call failed; the message has errno's words.
[[noreturn]] void fail_call(const std::string& call);

class Endpoint {
 public:
  static constexpr size_t kWindow = size_t{1} << 20;  // bytes that the peer may read and write

  Endpoint(std::string address, uint16_t port);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  // --- connections. `bytes` of private data, of which the first 12 name the window.
  void listen();
  void request(size_t bytes);
  void accept(size_t bytes);
  void reject(size_t bytes);
  // Finds the way to the peer, and makes the queue pair, or leaves that to a program that will
  // never do it.
  void resolve(bool with_pair);
  void connect(size_t bytes);
  // So many Reads each way are what a Request, or an answer, will say; the default is 8.
  void limit_reads(uint8_t most) { reads_ = most; }
  // The call fails, or one of the events that say so comes.
  void connect_in_vain(size_t bytes);
  // The Reply came, for a program that sees to its queue pair itself.
  void expect_response();
  void expect_established();
  // The Reply came with so much private data.
  void expect_established(size_t bytes);
  void expect_rejected(size_t bytes);
  void disconnect();
  void expect_disconnected();
  // By the program, whatever the connection is doing.
  void fail_pair();
  // The queue pair and the identifier go; the listener stays.
  void drop();

  // --- requests
  struct Where {
    bool wrong_key = false;
    size_t offset = 0;  // in the peer's window
  };
  void post_receive(size_t bytes);
  // `wrong_key`: what is to be invalidated is not the peer's window.
  void post_send(ibv_wr_opcode opcode, size_t bytes, unsigned flags, bool wrong_key = false);
  // Writes, reads and atomics.
  void post_remote(ibv_wr_opcode opcode, size_t bytes, const Where& where);

  // Into three places with gaps between them.
  void post_scattered_read(size_t bytes);

  // Requests of one piece of memory, from hold() on, are posted with one call.
  void hold() { holding_ = true; }
  void post_held();

  // --- completions
  void expect_done(ibv_wc_status status);
  void expect_completion();
  // The next receive has the next message, which is so long.
  void expect_message(size_t bytes);
  void expect_receive(ibv_wc_status status);
  // What was read is the peer's window as it was made; what the peer wrote is in ours.
  void expect_read(size_t bytes) const;
  void expect_scattered(size_t bytes) const;
  void expect_written(size_t bytes) const;

 private:
  static constexpr size_t kSlots = 64;
  static constexpr size_t kMessages = 4 * kWindow;  // the slots of all of them

  using Event = std::unique_ptr<rdma_cm_event, int (*)(rdma_cm_event*)>;
  Event next_event(const std::string& awaited);
  Event next_of_connection(const std::string& awaited);
  Event next_request();
  void expect_event(rdma_cm_event_type kind);
  void make_pair();
  bool try_connect(size_t bytes);
  void learn_window(const rdma_conn_param& from, size_t bytes);
  std::vector<uint8_t> private_data(size_t bytes) const;
  void post(ibv_send_wr& w);
  ibv_wc next_completion(ibv_cq* queue, const char* whose);
  uint8_t* slot(uint64_t n) { return &local_[n % kSlots * (kMessages / kSlots)]; }
  // Of Reads, Writes and atomics: behind the slots, for messages may be under way meanwhile.
  std::vector<ibv_sge> scattered(size_t bytes) const;
  uint8_t* remote() { return &local_[kMessages]; }
  const uint8_t* remote() const { return &local_[kMessages]; }

  std::string address_;
  uint16_t port_;
  rdma_event_channel* channel_;
  rdma_cm_id* listener_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  rdma_conn_param asked_{};  // by the peer's Request
  std::deque<Event> early_requests_;

  std::vector<uint8_t> window_;
  std::vector<uint8_t> local_;
  ibv_mr* window_mr_ = nullptr;
  ibv_mr* local_mr_ = nullptr;
  uint64_t peer_address_ = 0;
  uint32_t peer_key_ = 0;
  uint8_t reads_ = 8;

  struct Held {
    ibv_send_wr request;
    ibv_sge piece;
  };
  bool holding_ = false;
  std::vector<Held> held_;

  uint64_t sends_ = 0;     // messages posted
  uint64_t receives_ = 0;  // posted
  uint64_t received_ = 0;  // completed
  uint64_t messages_ = 0;  // of them, that had a message
};

}  // namespace weft::interop
