// The client's end of one connection: what it asks for, and what it expects of the answers.
#pragma once

#include <array>
#include <memory>

#include "tests/soak/link_id.h"
#include "tests/soak/worker.h"

namespace weft::soak {

class ClientLink {
 public:
  // How a connection ends when the client wants it to.
  enum class Ending : uint8_t { polite, abrupt, error_state, wrong_key, disconnect };
  static constexpr uint64_t kEndings = 5;

  ClientLink() : memory_(std::make_unique_for_overwrite<std::byte[]>(kMemory)) {}

  // --- life
  // Registers the memory and posts all receives. The pair is there. 0, or what errno says.
  int prepare(rdma_cm_id* id, ibv_pd* domain, uint16_t place, uint32_t link);
  void opened(Ledger& ledger, Worker& me, const Welcome& welcome);
  // Everything goes, in whatever state it is.
  void drop(Link::Stage last);

  // --- while it is open
  // Posts what there is room for. False when a call failed.
  bool post_some(uint64_t random);
  // Nothing is under way, and everything was answered.
  bool quiet() const { return posted_ == done_ && acked_ == messages_; }
  void post_wrong_key();
  // A request behind all others that is reported in any case: with it, those before it are done,
  // too. A link that ends takes it as well as one that works.
  bool post_marker();
  void completed(const ibv_wc& wc, const WorkId& id);

  bool flushed() const { return posted_ == done_ && receives_ == 0; }
  bool broken() const { return broken_; }
  uint32_t link() const { return link_; }
  uint16_t generation() const { return generation_; }
  Clock::time_point progress() const { return progress_; }
  void progressed() { progress_ = Clock::now(); }
  void say_clean() { ledger_->link[link_].clean.store(true); }
  uint64_t under_way() const { return posted_ - done_; }
  uint32_t receives() const { return receives_; }

 private:
  enum class Kind : uint8_t { send, write_immediate, write, read, add, swap, wrong, marker };
  struct Request {
    Kind kind;
    uint64_t number;  // of the message, of the write, or the value that an atomic has to find
    size_t length;
  };
  // Memory: what is sent, what is written, what is read, what atomics return, what is received.
  static constexpr size_t kSends = 0;
  static constexpr size_t kWrites = kSends + kWindow * kMostBytes;
  static constexpr size_t kReads = kWrites + Layout::kAreas * kMostBytes;
  static constexpr size_t kResults = kReads + Layout::kAreas * kMostBytes;
  static constexpr size_t kReceived = kResults + 4096;
  static constexpr size_t kMemory = kReceived + kReceives * kMostBytes;

  std::byte* at(size_t offset) { return &memory_[offset]; }
  size_t result_of(uint64_t request) const { return kResults + request % kRequests * 8; }
  bool post(Request r, ibv_send_wr& w, std::byte* from, bool signaled);
  bool post_receive(uint32_t slot);
  bool post_message(uint64_t random);
  bool post_write_and_read();
  bool post_atomic(bool add);
  void succeeded(const Request& r, uint64_t request);
  void received(const ibv_wc& wc, uint32_t slot);
  void check_atomic(const Request& r, uint64_t request, const char* what);
  Link::Half& half() { return ledger_->link[link_].client; }

  Ledger* ledger_ = nullptr;
  Worker* me_ = nullptr;
  std::unique_ptr<std::byte[]> memory_;
  rdma_cm_id* id_ = nullptr;
  ibv_mr* region_ = nullptr;
  Welcome welcome_{};
  uint32_t link_ = 0;
  uint16_t place_ = 0;
  uint16_t generation_ = 0;
  bool broken_ = false;
  bool poisoned_ = false;  // a wrong key was used

  std::array<Request, kRequests> requests_{};
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  uint32_t receives_ = 0;

  uint64_t messages_ = 0;       // posted
  uint64_t messages_done_ = 0;  // their requests are complete
  uint64_t acked_ = 0;          // answered by the program over there
  uint64_t replies_ = 0;
  uint64_t writes_ = 0;
  uint64_t writes_read_ = 0;
  uint64_t adds_ = 0;
  uint64_t swaps_ = 0;
  Clock::time_point progress_{};
};

}  // namespace weft::soak
