#include "drive/port_check.h"

#include <memory>
#include <utility>

namespace weft::drive {
namespace {

// For an answer of the peer's kernel: longer than round trips are.
constexpr Duration kPortAnswer = std::chrono::seconds{1};
// At a time, for each has a descriptor: peers of a host that is gone are many, and nobody answers.
constexpr size_t kMostChecks = 8;

}  // namespace

PortCheck& PortCheck::start(Token& token, DatagramDriver& driver, PortCheckOwner& owner,
                            const wdp::Path& path, std::vector<std::byte> question, Time at) {
  return start(token,
               std::unique_ptr<PortCheck>{new PortCheck(driver, owner, path, std::move(question))},
               at);
}

PortCheck& PortCheck::start_by_tcp(Token& token, DatagramDriver& driver, PortCheckOwner& owner,
                                   const wdp::Path& path) {
  return start(token, std::unique_ptr<PortCheck>{new PortCheck(driver, owner, path, {})},
               token.now());
}

PortCheck& PortCheck::start(Token& token, std::unique_ptr<PortCheck> owned, Time at) {
  PortCheck& check = *owned;
  token.runtime().add(token, std::move(owned), -1, false, false);
  if (token.now() >= at) {
    check.ask(token);
  } else {
    token.runtime().set_deadline(token, check, at);
  }
  return check;
}

void PortCheck::ask(Token& token) {
  token.runtime().set_deadline(token, *this, token.now() + kPortAnswer);
  if (driver_.port_checks_ >= kMostChecks) return;
  ++driver_.port_checks_;
  counted_ = true;
  const uint32_t scope = driver_.output_.interface_of(path_.from, path_.to.address);
  const auto there = port::Address::from_gid(path_.to.address, path_.to.port, scope);
  const auto from =
      path_.from.is_zero() ? port::Address{} : port::Address::from_gid(path_.from, 0, scope);
  auto inquiry = question_ ? port::PortInquiry::ask(there, from, *question_)
                           : port::PortInquiry::ask_by_tcp(there, from);
  // Without a socket for it the answer is never known.
  if (!inquiry.ok()) return;
  inquiry_.emplace(std::move(*inquiry));
  token.runtime().rewatch(token, *this, inquiry_->fd(), true, false);
}

void PortCheck::on_ready(Token& token, bool, bool) {
  if (inquiry_) end(token, inquiry_->closed());
}

void PortCheck::on_deadline(Token& token) {
  if (counted_) return end(token, false);
  ask(token);
}

void PortCheck::end(Token& token, bool closed) {
  PortCheckOwner& owner = owner_;
  stop(token);
  owner.port_checked(token, closed);
}

void PortCheck::stop(Token& token) {
  if (std::exchange(counted_, false)) --driver_.port_checks_;
  if (inquiry_) token.runtime().rewatch(token, *this, -1, false, false);
  inquiry_.reset();
  token.runtime().remove(token, *this);
}

}  // namespace weft::drive
