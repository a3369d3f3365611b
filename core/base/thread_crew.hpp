// Threads that share a task, for as long as one call of the core lasts.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace morf {

class ThreadCrew {
 public:
  // The calling thread is one of them.
  explicit ThreadCrew(std::size_t threads) {
    try {
      for (std::size_t number = 1; number < threads; ++number) threads_.emplace_back([this, number] { serve(number); });
    } catch (const std::system_error&) {  // there are no more threads: those at hand will do
    }
  }
  ~ThreadCrew() {
    {
      const std::lock_guard lock(mutex_);
      work_ = nullptr;
      ++task_;
    }
    begin_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  ThreadCrew(const ThreadCrew&) = delete;
  ThreadCrew& operator=(const ThreadCrew&) = delete;

  std::size_t size() const { return threads_.size() + 1; }

  // Calls work(0) .. work(parts - 1), at most size() of them, side by side. Throws what the first of those that threw did.
  void run(std::size_t parts, const std::function<void(std::size_t)>& work) {
    if (parts > 1) {
      {
        const std::lock_guard lock(mutex_);
        work_ = &work;
        parts_ = parts;
        busy_ = threads_.size();
        errors_.assign(parts, nullptr);
        ++task_;
      }
      begin_.notify_all();
    } else {
      errors_.assign(1, nullptr);
    }
    attempt(work, 0);
    if (parts > 1) {
      std::unique_lock lock(mutex_);
      end_.wait(lock, [this] { return busy_ == 0; });
    }
    for (const std::exception_ptr& error : errors_)
      if (error) std::rethrow_exception(error);
  }

 private:
  void attempt(const std::function<void(std::size_t)>& work, std::size_t part) {
    try {
      work(part);
    } catch (...) {
      errors_[part] = std::current_exception();
    }
  }

  void serve(std::size_t number) {
    for (std::uint64_t seen = 0;;) {
      const std::function<void(std::size_t)>* work = nullptr;
      bool mine = false;
      {
        std::unique_lock lock(mutex_);
        begin_.wait(lock, [&] { return task_ != seen; });
        seen = task_;
        work = work_;
        mine = number < parts_;
      }
      if (work == nullptr) return;
      if (mine) attempt(*work, number);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) end_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t parts_ = 0, busy_ = 0;
  std::uint64_t task_ = 0;
  std::vector<std::exception_ptr> errors_;  // a part
  std::vector<std::thread> threads_;
};

}  // namespace morf
