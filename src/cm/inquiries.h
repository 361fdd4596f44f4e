// Who has which QPN and Q_Key: the questions of this process about UD queue pairs of others, all of
// them by one socket (CTL service 4, spec/wdp 4.8).
#pragma once

#include <map>

#include "drive/datagram_driver.h"
#include "drive/port_check.h"
#include "port/system_error.h"

namespace weft::cm {

// Hears of the outcome once; the question is forgotten afterwards. Engine holder calls, from inside
// a visit of the driver.
class Inquirer {
 public:
  virtual ~Inquirer() = default;
  virtual void answered(engine::Token& token, const wdp::Handshake& handshake) = 0;
};

// Holder of the first engine alone.
class Inquiries final : private drive::DatagramOwner {
 public:
  // Those of the adapter that the engine is of. Never destroyed; a child of fork(2) has its own.
  static Inquiries& on(engine::Token& token);

  // The UDP port that questions come from; 0 when there is no socket to be had.
  uint16_t own_port(engine::Token& token);
  // Throws std::bad_alloc. Errors: of the socket.
  Result<SessionToken, port::SystemError> ask(engine::Token& token, Inquirer& inquirer,
                                              const wdp::Offer& offer, const wdp::Path& path,
                                              uint32_t interface);
  void forget(engine::Token& token, SessionToken question);

 private:
  // One that is open.
  struct Question final : drive::PortCheckOwner {
    Question(Inquiries& inquiries, Inquirer& who, SessionToken number)
        : all(inquiries), inquirer(who), question(number) {}
    void port_checked(engine::Token& token, bool closed) override;

    Inquiries& all;
    Inquirer& inquirer;
    const SessionToken question;
    drive::PortCheck* check = nullptr;
  };

  // The socket, from the first time on that it is needed.
  Result<drive::DatagramDriver*, port::SystemError> driver(engine::Token& token);
  // Takes it out of those that are open. Null: it is none of them.
  Inquirer* close(engine::Token& token, SessionToken question);
  void answered(engine::Token& token, drive::DatagramDriver& driver, SessionToken question,
                const wdp::Handshake& handshake) override;

  drive::DatagramDriver* driver_ = nullptr;  // once it is needed
  std::map<SessionToken, Question> open_;
};

}  // namespace weft::cm
