// One direction of UcTraffic (uc_traffic.h): what one side asks for, and what the other side gets.
#pragma once

#include "base/draw.h"
#include "tests/support/traffic_arena.h"
#include "tests/support/uc_traffic.h"

namespace weft::test {

class UcTraffic::Flow {
 public:
  Flow(UcPair& pair, UcSide& from, UcSide& to, const UcTrafficOptions& options, uint64_t salt,
       std::vector<std::string>& wrong);

  void finish();
  Totals totals() const { return totals_; }

 private:
  struct Message {
    work::Operation operation{};
    uint32_t length = 0;
    size_t source = 0;  // place in sources_; of a Read in targets_
    size_t target = 0;  // place in targets_; of a Read in sinks_
    Stag invalidates;
    bool solicited = false;
    bool posted = false;
    bool delivered = false;
    bool completed = false;
  };
  struct Room {  // a receive
    size_t place = 0;
    uint32_t length = 0;
    std::vector<std::pair<size_t, uint32_t>> pieces;  // place, length
    bool posted = false;
    bool used = false;
  };

  void plan_message(Random& random);
  void plan_room(Random& random, size_t least);
  void schedule(Random& random);
  void post(size_t i);
  void post_room(size_t i);
  bool takes_receive(const Message& m) const;

  void arrived(const work::Receive& r, work::Status status, const work::Arrival& a);
  size_t which(const Room& room, const work::Arrival& a) const;
  void completed(uint64_t wr_id, work::Status status);
  Buffer content_of(const Room& room, size_t n) const;
  void check_targets();
  void check_rooms();
  void complain(const std::string& what, size_t i);

  UcPair& pair_;
  UcSide& from_;
  UcSide& to_;
  const UcTrafficOptions& options_;
  std::vector<std::string>& wrong_;
  Arena sources_;  // at from_: read by Sends and Writes
  Arena sinks_;    // at from_: of Reads
  Arena targets_;  // at to_: of Writes, and what Reads read
  Arena rooms_;    // at to_: of receives
  std::vector<Message> messages_;
  std::vector<Room> room_;
  std::vector<Buffer> windows_;  // what Sends with Invalidate invalidate
  size_t next_message_ = 0;
  size_t next_room_ = 0;       // to be posted
  size_t next_used_ = 0;       // to be completed
  size_t next_completed_ = 0;  // requests
  std::optional<size_t> last_delivered_;
  Totals totals_;
};

}  // namespace weft::test
