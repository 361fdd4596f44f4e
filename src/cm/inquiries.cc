#include "cm/inquiries.h"

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>

#include "base/fork_lock.h"
#include "engine/engine.h"
#include "port/udp_bind.h"
#include "port/udp_socket.h"
#include "wdp/port_question.h"

namespace weft::cm {
namespace {

std::mutex g_lock;
const HeldOverFork<g_lock> g_over_fork;
// By engine: those of a parent process are dead in a child, and so is this list's entry for them.
// Never destroyed: threads of the program go on while it exits.
using All = std::map<const engine::Engine*, std::unique_ptr<Inquiries>>;
All& g_all = *new All;

}  // namespace

using engine::Token;

Inquiries& Inquiries::on(Token& token) {
  const std::lock_guard guard{g_lock};
  auto& own = g_all[&engine::Engine::of(token)];
  if (own == nullptr) own = std::make_unique<Inquiries>();
  return *own;
}

Result<drive::DatagramDriver*, port::SystemError> Inquiries::driver(Token& token) {
  if (driver_ != nullptr) return driver_;
  auto udp = port::bind_udp(port::Address::any(AF_INET6, 0));
  if (!udp.ok() && udp.error().code == EAFNOSUPPORT) {
    udp = port::bind_udp(port::Address::any(AF_INET, 0));
  }
  if (!udp.ok()) return fail(udp.error());
  driver_ = &drive::DatagramDriver::start(
      token, *this,
      std::make_unique<port::UdpSocket>(std::move(*udp), drive::DatagramDriver::kBuffer));
  return driver_;
}

uint16_t Inquiries::own_port(Token& token) {
  const auto d = driver(token);
  return d.ok() ? port::Address::of_socket((*d)->properties().fd).port() : uint16_t{0};
}

Result<SessionToken, port::SystemError> Inquiries::ask(Token& token, Inquirer& inquirer,
                                                       const wdp::Offer& offer,
                                                       const wdp::Path& path, uint32_t interface) {
  if (const auto d = driver(token); !d.ok()) return fail(d.error());
  driver_->set_interface(path.from, interface);
  const SessionToken question = driver_->wdp_socket().ask(offer, path, token.now());
  try {
    Question& asked = open_.try_emplace(question, *this, inquirer, question).first->second;
    asked.check = &drive::PortCheck::start(token, *driver_, asked, path,
                                           wdp::port_question(driver_->random()),
                                           token.now() + wdp::kAsksForPort);
  } catch (const std::bad_alloc&) {
    open_.erase(question);
    driver_->wdp_socket().forget(question, token.now());
    throw;
  }
  driver_->settle(token);
  return question;
}

void Inquiries::Question::port_checked(Token& token, bool closed) {
  check = nullptr;
  if (closed) all.driver_->port_closed(token, question);
}

Inquirer* Inquiries::close(Token& token, SessionToken question) {
  const auto it = open_.find(question);
  if (it == open_.end()) return nullptr;
  Inquirer& inquirer = it->second.inquirer;
  if (it->second.check != nullptr) it->second.check->stop(token);
  open_.erase(it);
  return &inquirer;
}

void Inquiries::forget(Token& token, SessionToken question) {
  if (close(token, question) == nullptr) return;
  driver_->wdp_socket().forget(question, token.now());
  driver_->settle(token);
}

void Inquiries::answered(Token& token, drive::DatagramDriver&, SessionToken question,
                         const wdp::Handshake& handshake) {
  if (Inquirer* inquirer = close(token, question)) inquirer->answered(token, handshake);
}

}  // namespace weft::cm
