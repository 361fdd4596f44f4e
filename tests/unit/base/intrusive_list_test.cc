#include "base/intrusive_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weft {
namespace {

struct Ready;
struct Timed;

struct Item : ListHook<Ready>, ListHook<Timed> {
  explicit Item(int v) : value(v) {}
  int value;
};
using ReadyList = IntrusiveList<Item, Ready>;
using TimedList = IntrusiveList<Item, Timed>;

template <class List>
std::vector<int> values(List& list) {
  std::vector<int> all;
  list.for_each([&](Item& i) { all.push_back(i.value); });
  return all;
}
using Values = std::vector<int>;

static_assert(!std::is_copy_constructible_v<Item>, "a copy would be linked nowhere, or twice");
static_assert(!std::is_copy_constructible_v<ReadyList>);

TEST(IntrusiveList, KeepsTheOrderOfPushes) {
  ReadyList list;
  Item a(1), b(2), c(3);
  EXPECT_TRUE(list.empty());
  list.push_back(a);
  list.push_back(b);
  list.push_back(c);
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(&list.front(), &a);
  EXPECT_EQ(values(list), (Values{1, 2, 3}));
}

TEST(IntrusiveList, PopFrontUnlinks) {
  ReadyList list;
  Item a(1), b(2);
  list.push_back(a);
  list.push_back(b);
  EXPECT_EQ(list.pop_front(), &a);
  EXPECT_FALSE(a.ListHook<Ready>::linked());
  EXPECT_TRUE(b.ListHook<Ready>::linked());
  EXPECT_EQ(list.pop_front(), &b);
  EXPECT_EQ(list.pop_front(), nullptr);
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, PushOfALinkedElementHasNoEffect) {
  ReadyList list;
  Item a(1), b(2);
  list.push_back(a);
  list.push_back(b);
  list.push_back(a);
  EXPECT_EQ(values(list), (Values{1, 2}));
}

TEST(IntrusiveList, UnlinkWorksAnywhereAndTwice) {
  for (int gone = 1; gone <= 3; ++gone) {
    ReadyList list;
    Item a(1), b(2), c(3);
    for (Item* i : {&a, &b, &c}) list.push_back(*i);
    for (Item* i : {&a, &b, &c}) {
      if (i->value != gone) continue;
      i->ListHook<Ready>::unlink();
      i->ListHook<Ready>::unlink();
    }
    Values expected{1, 2, 3};
    expected.erase(expected.begin() + gone - 1);
    EXPECT_EQ(values(list), expected);
  }
}

TEST(IntrusiveList, AnUnlinkedElementMayComeBackAtTheEnd) {
  ReadyList list;
  Item a(1), b(2);
  list.push_back(a);
  list.push_back(b);
  a.ListHook<Ready>::unlink();
  list.push_back(a);
  EXPECT_EQ(values(list), (Values{2, 1}));
}

TEST(IntrusiveList, TagsKeepListsApart) {
  ReadyList ready;
  TimedList timed;
  Item a(1), b(2);
  ready.push_back(a);
  ready.push_back(b);
  timed.push_back(b);
  timed.push_back(a);
  EXPECT_EQ(ready.pop_front(), &a);
  EXPECT_EQ(values(ready), (Values{2}));
  EXPECT_EQ(values(timed), (Values{2, 1}));
}

TEST(IntrusiveList, AnElementLeavesItsListsWhenItDies) {
  ReadyList ready;
  TimedList timed;
  Item a(1), c(3);
  {
    Item b(2);
    for (Item* i : {&a, &b, &c}) {
      ready.push_back(*i);
      timed.push_back(*i);
    }
    EXPECT_EQ(values(ready), (Values{1, 2, 3}));
  }
  EXPECT_EQ(values(ready), (Values{1, 3}));
  EXPECT_EQ(values(timed), (Values{1, 3}));
}

TEST(IntrusiveList, ADyingListLetsItsElementsGo) {
  Item a(1), b(2);
  {
    ReadyList list;
    list.push_back(a);
    list.push_back(b);
  }
  EXPECT_FALSE(a.ListHook<Ready>::linked());
  EXPECT_FALSE(b.ListHook<Ready>::linked());
  ReadyList other;
  other.push_back(b);
  EXPECT_EQ(values(other), (Values{2}));
}

TEST(IntrusiveList, ForEachMayRemoveOrDestroyWhatItIsGiven) {
  ReadyList list;
  std::vector<std::unique_ptr<Item>> items;
  for (int i = 0; i < 6; ++i) {
    items.push_back(std::make_unique<Item>(i));
    list.push_back(*items.back());
  }
  Values seen;
  list.for_each([&](Item& i) {
    const int v = i.value;
    seen.push_back(v);
    if (v % 3 == 0) {
      i.ListHook<Ready>::unlink();
    } else if (v % 3 == 1) {
      items[static_cast<size_t>(v)].reset();
    }
  });
  EXPECT_EQ(seen, (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(list), (Values{2, 5}));
}

}  // namespace
}  // namespace weft
