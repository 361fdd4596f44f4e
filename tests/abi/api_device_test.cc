// The device list, opening, and what the device says about itself.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>

#include "tests/abi/api_fixture.h"

namespace weft::test {
namespace {

size_t entries(const char* folder) {
  const std::filesystem::directory_iterator it{folder};
  return static_cast<size_t>(std::distance(begin(it), end(it)));
}

TEST(DeviceList, CountsAndEndsWithNull) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(list[1], nullptr);
  EXPECT_STREQ(ibv_get_device_name(list[0]), "weft0");
  EXPECT_EQ(list[0]->node_type, IBV_NODE_CA);
  EXPECT_EQ(list[0]->transport_type, IBV_TRANSPORT_IB);
  EXPECT_NE(ibv_get_device_guid(list[0]), 0U);
  EXPECT_GE(ibv_get_device_index(list[0]), 0);
  ibv_free_device_list(list);
}

TEST(DeviceList, DevicesOutliveIt) {
  ibv_device** first = ibv_get_device_list(nullptr);
  ibv_device* device = first[0];
  ibv_free_device_list(first);
  ibv_device** second = ibv_get_device_list(nullptr);
  EXPECT_EQ(second[0], device);
  ibv_free_device_list(second);
  Owned<ibv_context> context{ibv_open_device(device)};
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(context->device, device);
}

// Providers compare a pointer behind every ibv_device with their own.
TEST(DeviceList, SomethingStandsBehindTheDevice) {
  ibv_device** list = ibv_get_device_list(nullptr);
  const void* operations = nullptr;
  std::memcpy(&operations, reinterpret_cast<const char*>(list[0]) + sizeof(ibv_device),
              sizeof operations);
  EXPECT_NE(operations, nullptr);
  ibv_free_device_list(list);
}

// Programs fork after they have looked at the list (spec/abi 4.1). Other tests of this process may
// have opened the device before, so what counts is the difference.
TEST(DeviceList, StartsNothing) {
  ibv_free_device_list(ibv_get_device_list(nullptr));
  const size_t threads = entries("/proc/self/task");
  const size_t files = entries("/proc/self/fd");
  ibv_free_device_list(ibv_get_device_list(nullptr));
  EXPECT_EQ(entries("/proc/self/task"), threads);
  EXPECT_EQ(entries("/proc/self/fd"), files);
}

TEST(Context, IsExtended) {
  const auto context = open_device();
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(context->abi_compat, __VERBS_ABI_IS_EXTENDED);
  EXPECT_EQ(verbs_get_ctx(context.get())->sz, sizeof(verbs_context));
  EXPECT_EQ(context->num_comp_vectors, 1);
  EXPECT_GE(fcntl(context->async_fd, F_GETFD), 0);
}

TEST(Context, ClosesItsDescriptors) {
  ibv_close_device(open_device().release());
  const size_t files = entries("/proc/self/fd");
  for (int i = 0; i < 5; ++i) ibv_close_device(open_device().release());
  EXPECT_EQ(entries("/proc/self/fd"), files);
}

TEST_F(DeviceTest, ImportsNothing) {
  EXPECT_NO_OBJECT(EINVAL, ibv_import_device(-1));
  const int other_device = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  EXPECT_NO_OBJECT(ENODEV, ibv_import_device(other_device));
  close(other_device);
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_import_device(context->cmd_fd));
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_import_pd(context.get(), pd->handle));
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_import_mr(pd.get(), 1));
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_import_dm(context.get(), 1));
}

TEST_F(DeviceTest, QueryDevice) {
  ibv_device_attr attr;
  std::memset(&attr, 0xff, sizeof attr);
  ASSERT_EQ(ibv_query_device(context.get(), &attr), 0);
  EXPECT_GT(strlen(attr.fw_ver), 0U);
  EXPECT_EQ(attr.node_guid, ibv_get_device_guid(context->device));
  EXPECT_NE(attr.vendor_id, 0U);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
  EXPECT_EQ(attr.phys_port_cnt, 1);
  EXPECT_GE(attr.max_sge, 16);
  EXPECT_EQ(attr.max_pkeys, 1);
}

TEST_F(DeviceTest, QueryDeviceExKnowsOldAndNewStructs) {
  const verbs_context* v = verbs_get_ctx(context.get());
  ibv_device_attr_ex attr;
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &attr), 0);
  EXPECT_EQ(attr.phys_port_cnt_ex, 1U);
  EXPECT_NE(attr.hca_core_clock, 0U);

  struct {
    ibv_device_attr_ex known;
    uint64_t future;
  } newer;
  std::memset(&newer, 0xff, sizeof newer);
  ASSERT_EQ(v->query_device_ex(context.get(), nullptr, &newer.known, sizeof newer), 0);
  EXPECT_EQ(newer.future, 0U);
  EXPECT_EQ(newer.known.orig_attr.max_qp, attr.orig_attr.max_qp);

  constexpr size_t kOld = sizeof(ibv_device_attr);
  std::memset(&newer, 0xff, sizeof newer);
  ASSERT_EQ(v->query_device_ex(context.get(), nullptr, &newer.known, kOld), 0);
  EXPECT_EQ(newer.known.orig_attr.max_qp, attr.orig_attr.max_qp);
  EXPECT_EQ(newer.known.phys_port_cnt_ex, 0xffffffffU);
  EXPECT_REFUSED(EINVAL, v->query_device_ex(context.get(), nullptr, &newer.known, kOld - 1));

  ibv_query_device_ex_input input{.comp_mask = 1};
  EXPECT_REFUSED(EINVAL, v->query_device_ex(context.get(), &input, &attr, sizeof attr));
}

// As many as the device says, and then again when one goes.
TEST_F(DeviceTest, TheNumbersOfObjectsHold) {
  ibv_device_attr attr;
  ASSERT_EQ(ibv_query_device(context.get(), &attr), 0);
  const auto holds = [](int most, const auto& make, const auto& destroy) {
    std::vector<decltype(make())> all;
    for (int i = 0; i < most; ++i) {
      all.push_back(make());
      ASSERT_NE(all.back(), nullptr) << i << ": " << strerror(errno);
    }
    EXPECT_NO_OBJECT(ENOMEM, make());
    EXPECT_EQ(destroy(all.back()), 0);
    all.back() = make();
    EXPECT_NE(all.back(), nullptr);
    for (auto* o : all) EXPECT_EQ(destroy(o), 0);
  };
  // With that of the fixture. A sentence says which limit it was.
  testing::internal::CaptureStderr();
  holds(
      attr.max_pd - 1, [&] { return ibv_alloc_pd(context.get()); }, ibv_dealloc_pd);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("its max_pd is " + std::to_string(attr.max_pd) + ","), std::string::npos)
      << said;
  holds(
      attr.max_cq, [&] { return ibv_create_cq(context.get(), 1, nullptr, nullptr, 0); },
      ibv_destroy_cq);
  ibv_srq_init_attr one{};
  one.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  holds(
      attr.max_srq, [&] { return ibv_create_srq(pd.get(), &one); }, ibv_destroy_srq);
}

TEST_F(DeviceTest, QueryPort) {
  ibv_port_attr attr;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &attr), 0);
  // 4 lanes of 25 Gbit/s: from less UCX concludes that reading a message costs more than copying
  // it.
  EXPECT_EQ(attr.active_width, 2);
  EXPECT_EQ(attr.active_speed, 32);
  EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(attr.flags, IBV_QPF_GRH_REQUIRED) << "as of any RoCE port";
  EXPECT_GT(attr.gid_tbl_len, 0);
  EXPECT_EQ(attr.pkey_tbl_len, 1);
  EXPECT_REFUSED(EINVAL, ibv_query_port(context.get(), 0, &attr));
  EXPECT_REFUSED(EINVAL, ibv_query_port(context.get(), 2, &attr));
}

// The symbol, which programs from before port_cap_flags2 call, has less room.
TEST_F(DeviceTest, OldQueryPortWritesTheShortStruct) {
  using OldQueryPort = int (*)(ibv_context*, uint8_t, void*);
  const auto query = reinterpret_cast<OldQueryPort>(dlsym(RTLD_DEFAULT, "ibv_query_port"));
  ASSERT_NE(query, nullptr);
  constexpr size_t kShort = offsetof(ibv_port_attr, port_cap_flags2);
  ibv_port_attr attr;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &attr), 0);
  uint8_t old[sizeof attr];
  std::memset(old, 0xa5, sizeof old);
  ASSERT_EQ(query(context.get(), 1, old), 0);
  EXPECT_EQ(std::memcmp(old, &attr, kShort), 0);
  for (size_t i = kShort; i < sizeof old; ++i) EXPECT_EQ(old[i], 0xa5) << i;
}

TEST_F(DeviceTest, QueryGid) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  ibv_gid gid{};
  // All of the table can be queried: perftest gives up otherwise.
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ASSERT_EQ(ibv_query_gid(context.get(), 1, i, &gid), 0) << i;
    EXPECT_NE(gid.global.interface_id, 0U) << i;
  }
  const struct {
    uint8_t port;
    int index;
  } wrong[] = {{1, port.gid_tbl_len}, {1, -1}, {0, 0}, {2, 0}};
  for (const auto& w : wrong) {
    errno = 0;
    EXPECT_EQ(ibv_query_gid(context.get(), w.port, w.index, &gid), -1);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(DeviceTest, QueryGidEx) {
  ibv_gid gid{};
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &gid), 0);
  ASSERT_EQ(ibv_query_gid_ex(context.get(), 1, 0, &entry, 0), 0);
  EXPECT_EQ(std::memcmp(&entry.gid, &gid, sizeof gid), 0);
  EXPECT_EQ(entry.gid_type, static_cast<uint32_t>(IBV_GID_TYPE_ROCE_V2));
  EXPECT_EQ(entry.port_num, 1U);
  EXPECT_NE(entry.ndev_ifindex, 0U);
  EXPECT_REFUSED(ENODATA, ibv_query_gid_ex(context.get(), 1, 9999, &entry, 0));
  EXPECT_REFUSED(EINVAL, ibv_query_gid_ex(context.get(), 2, 0, &entry, 0));
  EXPECT_REFUSED(EINVAL, ibv_query_gid_ex(context.get(), 1, 0, &entry, 1));

  // A program that knows the GID alone.
  std::memset(&entry, 0xa5, sizeof entry);
  ASSERT_EQ(_ibv_query_gid_ex(context.get(), 1, 0, &entry, 0, sizeof gid), 0);
  EXPECT_EQ(std::memcmp(&entry.gid, &gid, sizeof gid), 0);
  EXPECT_EQ(entry.gid_index, 0xa5a5a5a5U);
}

TEST_F(DeviceTest, QueryGidTable) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  const auto length = static_cast<size_t>(port.gid_tbl_len);
  std::vector<ibv_gid_entry> table(length + 1);
  ASSERT_EQ(ibv_query_gid_table(context.get(), table.data(), table.size(), 0), port.gid_tbl_len);
  for (uint32_t i = 0; i < length; ++i) EXPECT_EQ(table[i].gid_index, i);
  EXPECT_EQ(ibv_query_gid_table(context.get(), table.data(), length - 1, 0), -EINVAL);
  EXPECT_EQ(ibv_query_gid_table(context.get(), table.data(), table.size(), 1), -EINVAL);
}

TEST_F(DeviceTest, QueryPkey) {
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context.get(), 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff);
  EXPECT_EQ(ibv_query_pkey(context.get(), 1, 1, &pkey), -1);
  EXPECT_EQ(ibv_query_pkey(context.get(), 2, 0, &pkey), -1);
  EXPECT_EQ(ibv_get_pkey_index(context.get(), 1, 0xffff), 0);
  EXPECT_EQ(ibv_get_pkey_index(context.get(), 1, 0x7fff), -1);
}

// The services that the header would call through the context and the device does not have.
TEST_F(DeviceTest, WhatIsMissingSaysSo) {
  ibv_alloc_dm_attr dm{.length = 4096, .log_align_req = 0, .comp_mask = 0};
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_alloc_dm(context.get(), &dm));
  ibv_xrcd_init_attr xrcd{};
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_open_xrcd(context.get(), &xrcd));
  ibv_sge sge{};
  EXPECT_REFUSED(EOPNOTSUPP, ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
  EXPECT_NE(verbs_get_ctx(context.get())->close_xrcd, nullptr);  // called without a look
}

// As timestamps of completions have it: nanoseconds, in one number.
TEST_F(DeviceTest, ReadsItsClock) {
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const int64_t before = now();
  ibv_values_ex values{.comp_mask = IBV_VALUES_MASK_RAW_CLOCK, .raw_clock = {}};
  ASSERT_EQ(ibv_query_rt_values_ex(context.get(), &values), 0);
  EXPECT_EQ(values.comp_mask, static_cast<uint32_t>(IBV_VALUES_MASK_RAW_CLOCK));
  EXPECT_EQ(values.raw_clock.tv_sec, 0);
  EXPECT_GE(values.raw_clock.tv_nsec, before);
  EXPECT_LE(values.raw_clock.tv_nsec, now());
}

TEST(Host, ForkNeedsNoPreparation) {
  EXPECT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

}  // namespace
}  // namespace weft::test
