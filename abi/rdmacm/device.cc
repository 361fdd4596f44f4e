#include "abi/rdmacm/device.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <new>

#include "abi/rdmacm/ids.h"
#include "base/fork_lock.h"

namespace weft::abi {
namespace {

std::mutex g_lock;
SharedDevice g_device;

// In a child of fork(2) the parent's device is dead; the child opens its own when it needs one.
void forget_after_fork() {
  g_device = {};
}
const HeldOverFork<g_lock, forget_after_fork> g_over_fork;

bool open() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) return false;
  if (count == 0) {
    ibv_free_device_list(list);
    errno = ENODEV;
    return false;
  }
  SharedDevice d;
  d.verbs = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (d.verbs == nullptr) return false;
  ibv_device_attr attributes{};
  const int error = ibv_query_device(d.verbs, &attributes);
  if (error == 0) d.pd = ibv_alloc_pd(d.verbs);
  if (d.pd == nullptr) {
    const int why = error != 0 ? error : errno;
    ibv_close_device(d.verbs);
    errno = why;
    return false;
  }
  d.max_reads = static_cast<uint8_t>(std::min(attributes.max_qp_rd_atom, 255));
  g_device = d;
  return true;
}

}  // namespace

const SharedDevice* shared_device() {
  const std::lock_guard guard{g_lock};
  // One that stands on descriptors that the program has closed is replaced. Its struct stays: ids
  // of the program point there.
  if (g_device.verbs != nullptr && the_core().alive(g_device.verbs)) return &g_device;
  if (!open()) return nullptr;
  return &g_device;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_context** rdma_get_devices(int* num_devices) try {
  const SharedDevice* d = shared_device();
  auto** list =
      d == nullptr ? nullptr : static_cast<ibv_context**>(std::calloc(2, sizeof(ibv_context*)));
  if (list != nullptr) list[0] = d->verbs;
  if (num_devices != nullptr) *num_devices = list != nullptr ? 1 : 0;
  return list;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

void rdma_free_devices(ibv_context** list) {
  std::free(static_cast<void*>(list));
}

}  // extern "C"
