// The libibverbs that is measured, loaded by its path when a side starts: so the program itself
// needs none, and there is no doubt about which one it is. Only functions that every program may
// call.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace weft::kit {

class VerbsLibrary {
 public:
  // Throws Failure when the file cannot be loaded or lacks a function. Never unloaded.
  explicit VerbsLibrary(const std::string& path);

  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_gid) query_gid;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  ibv_mr* (*reg_mr)(ibv_pd* pd, void* address, size_t length, int access);
  ibv_mr* (*reg_mr_iova)(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access);
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_qp_to_qp_ex) qp_to_qp_ex;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_create_ah) create_ah;
  decltype(&::ibv_destroy_ah) destroy_ah;
  decltype(&::ibv_wc_status_str) wc_status_str;

 private:
  template <class Function>
  void find(Function& function, const char* name);

  std::string path_;
  void* handle_;
};

}  // namespace weft::kit
