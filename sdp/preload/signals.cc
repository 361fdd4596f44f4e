// sigaction(2) and its relatives.
#include <csignal>

#include "sdp/loop/handlers.h"
#include "sdp/preload/caller.h"

using weft::sdp::Handlers;

WEFT_SDP_EXPORT int sigaction(int signal, const struct sigaction* action,
                              struct sigaction* old) noexcept {
  return Handlers::set_action(signal, action, old);
}

extern "C" int __sigaction(int signal, const struct sigaction* action, struct sigaction* old);
WEFT_SDP_EXPORT int __sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
  return Handlers::set_action(signal, action, old);
}

WEFT_SDP_EXPORT Handlers::Simple signal(int signal, Handlers::Simple handler) noexcept {
  return Handlers::set(signal, handler);
}

extern "C" Handlers::Simple bsd_signal(int signal, Handlers::Simple handler);
WEFT_SDP_EXPORT Handlers::Simple bsd_signal(int signal, Handlers::Simple handler) {
  return Handlers::set(signal, handler);
}

WEFT_SDP_EXPORT Handlers::Simple ssignal(int signal, Handlers::Simple handler) noexcept {
  return Handlers::set(signal, handler);
}

WEFT_SDP_EXPORT Handlers::Simple sysv_signal(int signal, Handlers::Simple handler) noexcept {
  return Handlers::set_for_once(signal, handler);
}

WEFT_SDP_EXPORT Handlers::Simple __sysv_signal(int signal, Handlers::Simple handler) noexcept {
  return Handlers::set_for_once(signal, handler);
}

WEFT_SDP_EXPORT int siginterrupt(int signal, int does) noexcept {
  return Handlers::set_interrupts(signal, does != 0);
}
