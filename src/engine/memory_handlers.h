// The handlers whose input is in memory that another process writes to. A program that polls asks
// the memory, and then the kernel need not tell of it: a message costs no system call on either
// side (docs/design/25).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "engine/event_handler.h"
#include "port/peer_word.h"

namespace weft::engine {

// Engine holder only, but for all_are_heard().
class MemoryHandlers {
 public:
  // The handler has been heard of just now: it is asked from now on. Above kMost the one that has
  // been silent for longest is not asked any more, and its descriptor tells of it.
  void add(Token& token, EventHandler& handler);
  void remove(EventHandler& handler);
  // It is not asked before `word` has changed. The word is read until the next call for the
  // handler. Nothing where the handler is not asked at all.
  void ask_after(EventHandler& handler, const port::PeerWord& word) {
    if (handler.memory_slot_ != EventHandler::kNoSlot) asked_[handler.memory_slot_].word = word;
  }
  bool any() const { return count_ > 0; }

  // Asks them, or as many as a turn has time for; the next call goes on there. True when something
  // moved.
  bool ask(Token& token);
  // Those that are only asked are no business of epoll's, which is called every now and then.
  bool sockets_can_wait(Time now);
  void ask_sockets_next() { waiting_ = kPolls; }

  // The program has polled so often that it will again.
  bool polled_for_long() const {
    return polls_ >= std::min(kFewestPollsBefore + count_ / kForOnePoll, kMostPollsBefore);
  }
  // They are asked again and again: their descriptors need not tell of them. False where they have
  // to, which `may_ask` says once all_are_heard() does not any more: any thread that looks after
  // that knows.
  template <class MayAsk>
  bool only_ask(Token& token, MayAsk&& may_ask) {
    if (!any() || !all_are_heard()) return false;
    heard_.store(false, std::memory_order_seq_cst);
    if (!may_ask()) {
      heard_.store(true, std::memory_order_relaxed);
      return false;
    }
    use_descriptors(token, false);
    return true;
  }
  // From now on their descriptors tell of them.
  void hear_all(Token& token);
  bool all_are_heard(std::memory_order order = std::memory_order_relaxed) const {
    return heard_.load(order);
  }
  // The program has polled once more.
  void polled() { polls_ = any() ? polls_ + 1 : 0; }

 private:
  // One that has nothing to say costs a look at its word, in a line of the cache that stays until
  // the peer writes to it.
  static constexpr size_t kMost = 256;
  // A thread that polls so often does not sleep each time. Until then each message of a peer costs
  // a wake-up; and to change over costs a line of the cache that the peer has, for each of them.
  static constexpr size_t kFewestPollsBefore = 4;
  static constexpr size_t kForOnePoll = 4;
  static constexpr size_t kMostPollsBefore = 64;
  static constexpr unsigned kPolls = 64;  // of them, before the sockets are asked as well

  struct Asked {
    EventHandler* handler = nullptr;
    port::PeerWord word;
    uint64_t heard_at = 0;  // the greatest: it was heard of last
  };
  void put(size_t slot, const Asked& asked);
  size_t most_silent() const;
  void use_descriptors(Token& token, bool on);

  std::array<Asked, kMost> asked_{};
  size_t count_ = 0;
  size_t next_ = 0;  // in asked_, whose turn it is
  uint64_t times_heard_ = 0;
  std::atomic<bool> heard_{true};
  unsigned polls_ = 0;    // since all were heard
  unsigned waiting_ = 0;  // polls since epoll was asked
  Time sockets_asked_at_;
};

}  // namespace weft::engine
