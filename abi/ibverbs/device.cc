// The device list, and opening and closing the device.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/file_hook.h"
#include "abi/ibverbs/objects.h"
#include "abi/ibverbs/signal_hook.h"
#include "cm/core.h"
#include "config/options.h"
#include "device/device.h"
#include "device/system.h"

namespace weft::abi {
namespace {

// The rest of rdma-core's verbs_device. libmlx5, libefa and their like look behind the ibv_device
// of any device for their own operations (spec/abi 1.3): there must be something, and nothing of
// theirs.
struct ProviderOperations {
  const char* name;
  void* functions[16];
};
constexpr ProviderOperations kOperations{.name = "weft", .functions = {}};

struct AbiDevice {
  ibv_device device;
  const ProviderOperations* operations;
  int references;
  void* list_entry[2];
  void* sysfs;
  uint64_t core_support;
  uint64_t guid;
};

template <size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const size_t n = std::min(text.size(), N - 1);
  std::copy_n(text.data(), n, to);
  to[n] = '\0';
}

AbiDevice make_device() {
  // Addresses do not matter here: an open device has a picture of its own.
  const device::Device d = device::make_device(config::options(), {}, 0);
  AbiDevice a{};
  a.device.node_type = static_cast<ibv_node_type>(d.attributes.node_type);
  a.device.transport_type = static_cast<ibv_transport_type>(d.attributes.transport);
  copy_text(a.device.name, device::kDeviceName);
  // Where the kernel would put them. Nothing is there, but programs read the names (file_hook.h).
  copy_text(a.device.dev_name, kDeviceFile);
  copy_text(a.device.dev_path, "/sys/class/infiniband_verbs/uverbs0");
  copy_text(a.device.ibdev_path, std::string{"/sys/class/infiniband/"} + a.device.name);
  a.operations = &kOperations;
  a.references = 1;
  a.list_entry[0] = a.list_entry[1] = a.list_entry;
  a.guid = device::make_guid(device::host_facts());
  return a;
}

// One for the life of the process: programs keep the pointer after they have freed the list.
AbiDevice& the_device() {
  static AbiDevice device = make_device();
  return device;
}

}  // namespace

void AbiContext::drop_ref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  pthread_mutex_destroy(&context.mutex);
  delete this;
}

uint32_t next_handle() {
  static std::atomic<uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

ibv_device** ibv_get_device_list(int* count) try {
  if (count != nullptr) *count = 0;
  hook_files();
  ibv_device& only = the_device().device;
  auto** list = static_cast<ibv_device**>(std::calloc(2, sizeof(void*)));
  if (list == nullptr) return refuse_object(ENOMEM);
  list[0] = &only;
  if (count != nullptr) *count = 1;
  return list;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

void ibv_free_device_list(ibv_device** list) {
  std::free(list);
}

const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

__be64 ibv_get_device_guid(ibv_device*) {
  return htobe64(the_device().guid);
}

int ibv_get_device_index(ibv_device*) {
  return 0;
}

ibv_context* ibv_open_device(ibv_device* device) try {
  const auto adapter = cm::adapter();
  if (!adapter.ok()) return refuse_object(adapter.error().code);
  hook_signals();
  auto c = std::make_unique<AbiContext>(**adapter, device::query_device(config::options()));
  if (!c->core.events().valid()) {
    return refuse_object(EMFILE, "cannot open weft0: no file descriptor is left (ulimit -n)");
  }
  c->sz = sizeof(verbs_context);
  c->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  c->context.device = device;
  c->driver = port::raise(port::Fd{::open(kDriver, O_RDWR | O_CLOEXEC)});
  if (!c->driver.valid()) {
    return refuse_object(errno, "cannot open weft0: %s: %s", kDriver, std::strerror(errno));
  }
  c->context.cmd_fd = c->driver.get();
  c->context.async_fd = c->core.events().fd();
  c->context.num_comp_vectors = device::kCompletionVectors;
  pthread_mutex_init(&c->context.mutex, nullptr);
  set_operations(*c);
  return &c.release()->context;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

int ibv_close_device(ibv_context* context) try {
  AbiContext& c = object(context);
  if (!c.alive()) return 0;
  {
    // The kernel would destroy what is left. Their memory may belong to somebody else soon, so
    // peers must not reach it any more.
    const std::lock_guard guard{c.lock};
    c.queue_pairs.for_each([](AbiQp& qp) {
      (void)qp.core->modify({.state = verbs::QpState::err}, verbs::qp_mask::kState).ok();
    });
  }
  c.core.events().end();
  c.drop_ref();
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

// Another process's objects, by a descriptor of the kernel's driver: weft has none.
ibv_context* ibv_import_device(int cmd_fd) {
  struct stat given {};
  struct stat ours {};
  if (::fstat(cmd_fd, &given) != 0 || !S_ISCHR(given.st_mode)) return refuse_object(EINVAL);
  if (::stat(kDriver, &ours) != 0 || given.st_rdev != ours.st_rdev) return refuse_object(ENODEV);
  return refuse_object(EOPNOTSUPP, "weft0 cannot be shared between processes by its cmd_fd");
}
ibv_pd* ibv_import_pd(ibv_context*, uint32_t) {
  return refuse_object(EOPNOTSUPP);
}
ibv_mr* ibv_import_mr(ibv_pd*, uint32_t) {
  return refuse_object(EOPNOTSUPP);
}
ibv_dm* ibv_import_dm(ibv_context*, uint32_t) {
  return refuse_object(EOPNOTSUPP);
}
void ibv_unimport_pd(ibv_pd*) {}
void ibv_unimport_mr(ibv_mr*) {}
void ibv_unimport_dm(ibv_dm*) {}

}  // extern "C"

// The last words to peers, before the kernel closes the connections.
__attribute__((destructor)) static void say_what_was_put_off() {
  if (verbs::Adapter* adapter = verbs::Adapter::existing()) adapter->flush_at_exit();
}
