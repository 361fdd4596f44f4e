// Does anybody still have the port of a peer that answers nothing? (spec/wdp 4.2, spec/wdp-rd 5.3)
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "drive/datagram_driver.h"
#include "port/port_inquiry.h"

namespace weft::drive {

class PortCheckOwner {
 public:
  virtual ~PortCheckOwner() = default;
  // Once, and the check is gone. `closed`: the peer's kernel says that nobody has the port. Else
  // somebody has answered, or nobody did in time.
  virtual void port_checked(Token& token, bool closed) = 0;
};

// Engine holder only. Owned by the engine.
class PortCheck final : public engine::EventHandler {
 public:
  // Sends `question` to path.to at `at`, or later where the driver has many checks under way. The
  // driver and the owner live until port_checked(), or stop().
  static PortCheck& start(Token& token, DatagramDriver& driver, PortCheckOwner& owner,
                          const wdp::Path& path, std::vector<std::byte> question, Time at);
  // Asks for the TCP port of the same number, which an adapter's port has as well
  // (spec/addressing 2.2).
  static PortCheck& start_by_tcp(Token& token, DatagramDriver& driver, PortCheckOwner& owner,
                                 const wdp::Path& path);
  // The owner hears nothing of it.
  void stop(Token& token);

  void on_ready(Token& token, bool readable, bool writable) override;
  void on_deadline(Token& token) override;
  void on_doorbell(Token&) override {}
  void abandon_in_child() override { inquiry_.reset(); }

 private:
  using Question = std::optional<std::vector<std::byte>>;
  PortCheck(DatagramDriver& driver, PortCheckOwner& owner, const wdp::Path& path,
            Question&& question)
      : driver_(driver), owner_(owner), path_(path), question_(std::move(question)) {}
  static PortCheck& start(Token& token, std::unique_ptr<PortCheck> owned, Time at);
  void ask(Token& token);
  void end(Token& token, bool closed);

  DatagramDriver& driver_;
  PortCheckOwner& owner_;
  const wdp::Path path_;
  const Question question_;  // none: by TCP
  bool counted_ = false;     // it is one of the driver's that are under way
  std::optional<port::PortInquiry> inquiry_;
};

}  // namespace weft::drive
