// The listening doctor (`weft doctor --listen`): serves clients over TCP and UDP until its time is
// over. One thread, one event loop.
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
  static constexpr size_t kMostConnections = 128;  // of all clients together
  static constexpr size_t kMostSessions = 16;      // one for each client
  // A connection over which nothing arrives for so long is closed.
  static constexpr std::chrono::seconds kIdleTimeout{60};

  // Receives a sentence for each event.
  using Log = std::function<void(const std::string&)>;

  // Binds port `number` on TCP and UDP (0: any), and another one as programs on weft do. Throws
  // kit::Failure, with a sentence that names who holds the port.
  Listener(uint16_t number, Log log);

  uint16_t port() const { return endpoints_[0].number; }
  uint16_t program_port() const { return endpoints_[1].number; }
  // Until `stop` is readable, or `lifetime` is over.
  void run(int stop, std::chrono::seconds lifetime);

 private:
  // A TCP and a UDP socket on one port number.
  struct Endpoint {
    uint16_t number = 0;
    port::TcpListener tcp;
    ProbeSocket udp;
  };
  // A client's control connection, or the connection of a segment test.
  struct Connection {
    explicit Connection(port::TcpStream stream);
    ControlConnection control;
    Time last_received;
    std::optional<Session> session;  // of a control connection
    // Of a segment test:
    uint64_t token = 0;  // of the session that it belongs to; 0: none yet
    uint64_t id = 0;
    uint64_t wanted = 0;
    uint64_t received = 0;
    bool receiving = false;
  };
  using Connections = std::list<Connection>;

  static Endpoint open_endpoint(uint16_t number);
  static Endpoint open_any_endpoint();
  int time_left(Time end) const;
  void accept_connections(Endpoint& endpoint);
  void receive_datagrams(Endpoint& endpoint);
  bool serve(Connection& connection, bool readable);
  bool handle_messages(Connection& connection);
  bool receive_segment(Connection& connection);
  void open_session(Connection& connection, const nlohmann::json& greeting);
  void begin_segment_test(Connection& connection, const nlohmann::json& request);
  nlohmann::json reply_to(Connection& connection, const nlohmann::json& request);
  Session* session_of(uint64_t token);

  Log log_;
  std::array<Endpoint, 2> endpoints_;
  Connections connections_;
};

}  // namespace weft::doctor
