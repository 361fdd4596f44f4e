// The doctor that listens at the peer (`weft doctor --listen`): answers the probes of others, over
// TCP and UDP, until its time is over. One thread, one loop.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <optional>

#include "doctor/session.h"
#include "port/tcp_listener.h"

namespace weft::doctor {

class Listener {
 public:
  static constexpr size_t kMostVisitors = 128;  // connections of all peers together
  static constexpr size_t kMostSessions = 16;   // peers that examine at the same time
  // A connection over which nothing comes for so long is closed.
  static constexpr std::chrono::seconds kSilence{60};

  // Hears what happens, in sentences.
  using Say = std::function<void(const std::string&)>;

  // Takes port `number` on TCP and UDP (0: any), and another one as programs on weft do. Throws
  // kit::Failure, with a sentence that names who holds the port.
  Listener(uint16_t number, Say say);

  uint16_t port() const { return doors_[0].number; }
  uint16_t program_port() const { return doors_[1].number; }
  // Until `stop` is readable, or `life` is over.
  void run(int stop, std::chrono::seconds life);

 private:
  struct Door {
    uint16_t number = 0;
    port::TcpListener tcp;
    UdpEnd udp;
  };
  // A connection: of an examiner, or of a trial of segments.
  struct Visitor {
    explicit Visitor(port::TcpStream stream);
    Control control;
    Time heard;
    std::optional<Session> session;  // it examines
    // A trial's.
    uint64_t token = 0;  // of the session that it belongs to; 0: none yet
    uint64_t id = 0;
    uint64_t to_take = 0;
    uint64_t taken = 0;
    bool taking = false;
  };
  using Visitors = std::list<Visitor>;

  static Door open_door(uint16_t number);
  static Door any_door();
  int time_left(Time end) const;
  void let_in(Door& door);
  void take_datagrams(Door& door);
  bool serve(Visitor& visitor, bool readable);
  bool converse(Visitor& visitor);
  bool take_segment(Visitor& visitor);
  void introduce(Visitor& visitor, const nlohmann::json& greeting);
  void begin_trial(Visitor& visitor, const nlohmann::json& request);
  nlohmann::json answer(Visitor& visitor, const nlohmann::json& question);
  Session* session_of(uint64_t token);

  Say say_;
  std::array<Door, 2> doors_;
  Visitors visitors_;
};

}  // namespace weft::doctor
