// ListenerList: the process's listeners of one kind of event, any number of
// them. ScopedListener: a listener of one thread.
//
//   inline ListenerList<OpListener> op_listeners;
//   op_listeners.Add(&counter);
//   op_listeners.ForEach([&](OpListener& l) { l.OnOp(record); });
//   op_listeners.Remove(&counter);
//
// Thread-safety: all functions of a list may be called at the same time.
// ForEach takes no lock. It may still be calling a listener that is being
// removed, so the caller of Remove keeps the listener alive until no event can
// be under way. A ScopedListener belongs to its thread.
//
// Ownership: the list owns no listener. Its nodes are reused and never freed.

#ifndef D2L_COMMON_BASE_LISTENER_LIST_H_
#define D2L_COMMON_BASE_LISTENER_LIST_H_

#include <atomic>

#include "common/base/mutex.h"

namespace d2l {

template <typename Listener>
class ListenerList {
 public:
  ListenerList() = default;
  ListenerList(const ListenerList&) = delete;
  ListenerList& operator=(const ListenerList&) = delete;

  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  void Add(Listener* listener) {
    const MutexLock lock(mutex_);
    Node* node = head_.load(std::memory_order_relaxed);
    while (node != nullptr && node->listener.load() != nullptr) {
      node = node->next;
    }
    if (node == nullptr) {
      node = new Node{{nullptr}, head_.load(std::memory_order_relaxed)};
      head_.store(node, std::memory_order_release);
    }
    node->listener.store(listener, std::memory_order_release);
    count_.fetch_add(1, std::memory_order_release);
  }

  // Removes one registration of `listener`, which was added.
  void Remove(Listener* listener) {
    const MutexLock lock(mutex_);
    Node* node = head_.load(std::memory_order_relaxed);
    while (node != nullptr && node->listener.load() != listener) {
      node = node->next;
    }
    if (node == nullptr) return;
    node->listener.store(nullptr, std::memory_order_release);
    count_.fetch_sub(1, std::memory_order_release);
  }

  template <typename F>
  void ForEach(F f) const {
    const Node* node = head_.load(std::memory_order_acquire);
    for (; node != nullptr; node = node->next) {
      Listener* const listener = node->listener.load(std::memory_order_acquire);
      if (listener != nullptr) f(*listener);
    }
  }

 private:
  struct Node {
    std::atomic<Listener*> listener;
    Node* const next;
  };

  std::atomic<int> count_{0};
  std::atomic<Node*> head_{nullptr};
  Mutex mutex_;  // held to change the list
};

// Listens while it lives; it must be a local variable. `innermost`, one for
// each thread, points to the last ScopedListener that still lives. topics: the
// bits by which ForEach selects.
template <typename Listener>
class ScopedListener {
 public:
  ScopedListener(const ScopedListener*& innermost, Listener* listener,
                 unsigned topics = ~0u)
      : innermost_(innermost),
        outer_(innermost),
        listener_(listener),
        topics_(topics) {
    innermost_ = this;
  }
  ~ScopedListener() { innermost_ = outer_; }
  ScopedListener(const ScopedListener&) = delete;
  ScopedListener& operator=(const ScopedListener&) = delete;

  // Calls f(Listener&) for each listener of the topic, from the innermost
  // outwards.
  template <typename F>
  static void ForEach(const ScopedListener* innermost, unsigned topic, F f) {
    for (; innermost != nullptr; innermost = innermost->outer_) {
      if (innermost->topics_ & topic) f(*innermost->listener_);
    }
  }

 private:
  const ScopedListener*& innermost_;
  const ScopedListener* const outer_;
  Listener* const listener_;
  const unsigned topics_;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_LISTENER_LIST_H_
