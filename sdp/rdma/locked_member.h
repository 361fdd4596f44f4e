// A member whose mail is processed under a lock of its own. Who has taken completions of it does
// not wait for that lock: whoever lets go of it looks into the mail once more. So no mail is left
// behind, and no two threads wait for each other.
#pragma once

#include <mutex>

#include "sdp/loop/handlers.h"
#include "sdp/rdma/completions.h"
#include "sdp/rdma/undisturbed.h"

namespace weft::sdp {

class LockedMember : public Completions::Member {
 public:
  class Lock {
   public:
    explicit Lock(LockedMember& member) : member_(member) {}
    void lock() { mutex_.lock(); }
    bool try_lock() { return mutex_.try_lock(); }
    void unlock() {
      const Undisturbed undisturbed;
      member_.before_unlock();
      mutex_.unlock();
      // The mutex and the mailbox are each written by one side before it looks at the other's.
      if (!member_.mail_.empty()) member_.on_mail();
    }

   private:
    friend class LockedMember;
    LockedMember& member_;
    Mutex mutex_;
  };
  Lock lock{*this};

 protected:
  ~LockedMember() override = default;
  // With the lock: some of the mail. False: it cannot be yet, and the mail stays.
  virtual bool process_mail() = 0;
  // With the lock, by whoever lets go of it.
  virtual void before_unlock() = 0;
  // Mail comes as fast as it is processed: the calling thread leaves it to another one, which is to
  // take the lock and let go of it. False: there is none, and it goes on itself.
  virtual bool put_off_mail() = 0;

 private:
  static constexpr int kMostTimes = 8;

  void on_mail() final {
    for (int times = 0; !mail_.empty(); ++times) {
      if (times == kMostTimes && put_off_mail()) return;
      const std::unique_lock holding{lock.mutex_, std::try_to_lock};
      if (!holding) return;
      const bool processed = process_mail();
      before_unlock();
      if (!processed) return;
    }
  }
};

}  // namespace weft::sdp
