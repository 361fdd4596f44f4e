#include "sdp/sockets/fallbacks.h"

#include <map>
#include <mutex>

#include "sdp/loop/handlers.h"
#include "sdp/sockets/shown_name.h"
#include "sdp/sockets/table.h"
#include "sdp/stat/shown.h"

namespace weft::sdp {
namespace {

Mutex g_lock;
// Neither is ever destroyed: programs close descriptors while they end.
std::map<int, Shown>* g_shown = new std::map<int, Shown>;

}  // namespace

void Fallbacks::add(int fd, const Address& peer, bool server, Fallback why) {
  if (Table::in_borrowed_memory()) return;
  const ShownConnection shown{.transport = Transport::tcp,
                              .server = server,
                              .fallback = why,
                              .own = shown_name_of(fd),
                              .peer = shown_name(peer)};
  const std::lock_guard holding{g_lock};
  (*g_shown)[fd] = Shown{shown};
  count = static_cast<int>(g_shown->size());
}

void Fallbacks::forget(int fd) {
  if (Table::in_borrowed_memory()) return;
  const std::lock_guard holding{g_lock};
  g_shown->erase(fd);
  count = static_cast<int>(g_shown->size());
}

void Fallbacks::forget_range(unsigned first, unsigned last) {
  if (Table::in_borrowed_memory()) return;
  const std::lock_guard holding{g_lock};
  std::erase_if(*g_shown, [first, last](const auto& i) {
    const auto fd = static_cast<unsigned>(i.first);
    return first <= fd && fd <= last;
  });
  count = static_cast<int>(g_shown->size());
}

void Fallbacks::forget_in_child() {
  new (&g_lock) Mutex;
  g_shown = new std::map<int, Shown>;
  count = 0;
}

}  // namespace weft::sdp
