#include "kit/verbs_library.h"

#include <dlfcn.h>

#include "kit/failure.h"

namespace weft::kit {

template <class Function>
void VerbsLibrary::find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(handle_, name));
  if (function == nullptr) throw Failure{path_ + " has no " + name + "; is it a libibverbs?"};
}

VerbsLibrary::VerbsLibrary(const std::string& path)
    : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw Failure{std::string{"cannot load the library: "} + dlerror()};
  find(get_device_list, "ibv_get_device_list");
  find(free_device_list, "ibv_free_device_list");
  find(open_device, "ibv_open_device");
  find(close_device, "ibv_close_device");
  find(query_gid, "ibv_query_gid");
  find(alloc_pd, "ibv_alloc_pd");
  find(dealloc_pd, "ibv_dealloc_pd");
  find(reg_mr, "ibv_reg_mr");
  find(reg_mr_iova, "ibv_reg_mr_iova");
  find(dereg_mr, "ibv_dereg_mr");
  find(create_comp_channel, "ibv_create_comp_channel");
  find(destroy_comp_channel, "ibv_destroy_comp_channel");
  find(create_cq, "ibv_create_cq");
  find(destroy_cq, "ibv_destroy_cq");
  find(get_cq_event, "ibv_get_cq_event");
  find(ack_cq_events, "ibv_ack_cq_events");
  find(create_qp, "ibv_create_qp");
  find(modify_qp, "ibv_modify_qp");
  find(qp_to_qp_ex, "ibv_qp_to_qp_ex");
  find(destroy_qp, "ibv_destroy_qp");
  find(create_ah, "ibv_create_ah");
  find(destroy_ah, "ibv_destroy_ah");
  find(wc_status_str, "ibv_wc_status_str");
}

}  // namespace weft::kit
