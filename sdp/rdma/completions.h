// The completions of all connections of the process come to queues that they share, so that a look
// at one connection is a look at all, and one event tells of any.
//
// Who polls hands each completion to its connection, a member, and tells the member that it has
// mail. It does not wait for it: a member that another thread works on is looked after by that
// thread, which looks into the mail once more when it has let go (Session::Lock).
//
// Room: a member reserves as many entries as it may have requests, and a queue grows before it is
// given to one that does not fit. So no queue can overrun. The room is free again when the member's
// queue pair is destroyed, so that no completion of it can come, and all that were there are taken.
//
// A late completion reaches nobody: members have numbers, which are never used again, and they
// stand in each work request.
//
// Locks, in their order: that of one member; that of the queues; what queues and members do not
// know of. Who holds the queues takes no other. Who tells a member holds no more than the lock of
// one other, and tries that of the told one.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sdp/loop/handlers.h"
#include "sdp/rdma/mailbox.h"

namespace weft::sdp {

// Where queues come from. Errors are in errno.
class QueueSource {
 public:
  virtual ibv_cq* make_queue(ibv_context* device, uint32_t entries) = 0;
  // An adapter may not be able to.
  virtual bool resize_queue(ibv_cq* queue, uint32_t entries) = 0;
  virtual void end_queue(ibv_cq* queue) = 0;
  // How many entries one may have.
  virtual uint32_t largest_queue(ibv_context* device) = 0;

 protected:
  ~QueueSource() = default;
};

// Above 400 lines with its source: who takes, who sleeps and who attends rely on each other.
class Completions {
 public:
  class Member {
   public:
    Member() = default;
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   protected:
    virtual ~Member() = default;
    // There is mail. On any thread, which may hold the lock of another member.
    virtual void on_mail() = 0;
    Mailbox mail_;

   private:
    friend class Completions;
    uint64_t number_ = 0;
    ibv_cq* queue_ = nullptr;
    uint32_t entries_ = 0;
    std::atomic<int> pins_{0};  // threads that are about to tell it
  };

  explicit Completions(QueueSource& source) : source_(source) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  // There are no members any more.
  ~Completions();

  // The queue for a queue pair of `member`, with room for `entries` completions of it;
  // Mailbox::kMost at most. Nothing with errno.
  ibv_cq* join(Member& member, ibv_context* device, uint32_t entries);
  // `work` and `number` come back in Completed. A completion of kBroken is none: nothing will come
  // any more.
  static constexpr uint8_t kBroken = 0xff;
  static uint64_t work_id(const Member& member, uint8_t work, uint8_t number);
  // Its queue pair is destroyed. Nobody tells it of anything any more.
  void leave(Member& member);

  // Takes what is there, for all. Where another thread is at it, that one does it, for all; but
  // `surely` waits for it first, and takes all that is there when it begins. The others take a few
  // batches, and end early where `self` has mail: the caller has a connection of its own to serve.
  // `to_the_end` asks once more behind a batch that was not full, for an adapter may send what it
  // has put off only when it is asked for what it does not have. `self`, whose lock the caller has,
  // looks into its mail itself. False: another thread was at it.
  enum class How : uint8_t { if_free, to_the_end, surely };
  bool take(How how, const Member* self = nullptr);

  // Whether there is anything to take.
  bool any_members() const { return count_members() > 0; }
  size_t count_members() const { return count_.load(std::memory_order_relaxed); }

  // Somebody sleeps until a completion comes, or does not any more.
  void want(int change) { wanting_.fetch_add(change); }
  // The calling thread is going to sleep, or elsewhere: where need is, the queues tell by an event
  // when something comes. What was there is taken then, and true returned.
  bool rest(const Member* self = nullptr);
  // While there is one, a thread takes completions again and again, and nobody needs events. It
  // does not take long, and handlers wait for its end: one that jumped out would leave it for ever.
  class Looking {
   public:
    Looking(Completions& completions, const Member* self) : completions_(completions), self_(self) {
      completions_.lookers_.fetch_add(1);
    }
    Looking(const Looking&) = delete;
    Looking& operator=(const Looking&) = delete;
    ~Looking() {
      if (completions_.lookers_.fetch_sub(1) == 1) (void)completions_.rest(self_);
    }

   private:
    const HoldHandlers hold_;
    Completions& completions_;
    const Member* const self_;
  };

  // A program that calls often takes the completions itself, and events would only cost. So behind
  // one somebody attends for a while: he takes them now and then.
  void called() {
    if (!called_.load(std::memory_order_relaxed)) called_.store(true, std::memory_order_relaxed);
  }
  // The event has come. True: the caller is the one to attend from now on.
  bool on_event();
  // True: he goes on.
  bool attend();
  // He cannot: events are needed.
  void stop_attending() {
    attended_ = false;
    (void)rest();
  }
  // It showed something to somebody who sleeps, and is likely to call soon.
  void shown() { shown_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t count_shown() const { return shown_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kBatch = 32;
  static constexpr size_t kMostBatches = 4;  // of a queue, for who does not take all
  static constexpr int kMostLooks = 3;       // at a queue that says that they failed
  struct Queue {
    ibv_cq* cq = nullptr;
    ibv_context* device = nullptr;
    uint32_t entries = 0;
    uint32_t reserved = 0;
    bool broken = false;
  };
  // Those that got mail of one round, until they are told of it.
  class Touched {
   public:
    explicit Touched(Completions& completions) : completions_(completions) {}
    Touched(const Touched&) = delete;
    Touched& operator=(const Touched&) = delete;
    ~Touched();
    bool full() const { return count_ == kBatch; }
    void add(Member& member);
    void tell();

   private:
    Completions& completions_;
    std::array<Member*, kBatch> members_{};
    size_t count_ = 0;
    size_t told_ = 0;
  };
  class Hold;
  Queue* queue_with_room(ibv_context* device, uint32_t entries);
  size_t poll(Queue& queue, Touched& touched, const Member* self);
  void deliver(Member& member, const Completed& completed, Touched& touched, const Member* self);
  void unpin(Member& member);
  size_t break_members(Queue& queue, Touched& touched, const Member* self);

  QueueSource& source_;
  Mutex lock_;  // of what follows
  std::vector<Queue> queues_;
  std::unordered_map<uint64_t, Member*> members_;
  uint64_t last_number_ = 0;

  std::atomic<size_t> count_{0};       // of the members
  std::atomic<int> leaving_{0};        // threads that wait until nobody tells a member any more
  std::atomic<uint32_t> unpinned_{0};  // how often that may have become so, while there are any

  std::atomic<int> wanting_{0};
  std::atomic<int> lookers_{0};
  std::atomic<bool> armed_{false};  // an event will come
  std::atomic<bool> attended_{false};
  std::atomic<bool> called_{false};
  std::atomic<uint64_t> shown_{0};
};

}  // namespace weft::sdp
