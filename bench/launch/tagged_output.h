// SPDX-License-Identifier: Apache-2.0
//
// What children print, line by line, with the rank in front: "[2] loss 0.31".
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace ccom::launch {

class TaggedOutput {
 public:
  struct Ends {
    int out = -1, err = -1;  // -1: the child has its parent's
  };

  // Of 0 ranks: does nothing.
  explicit TaggedOutput(int ranks);
  ~TaggedOutput();
  TaggedOutput(const TaggedOutput&) = delete;
  TaggedOutput& operator=(const TaggedOutput&) = delete;

  // Where a child is to write; they are closed by exec.
  Ends ends_of(int rank) const;
  // When all children have been started: reads what they write, in a thread.
  void begin();
  // When all are gone: prints what is left. Does not wait for processes that they have left behind.
  void end();

 private:
  struct Stream {
    int reading = -1, writing = -1;
    int target;  // 1 or 2
    std::string tag;
    std::string line{};  // what has come of it
  };

  void run();
  bool read(Stream& stream);
  void print(Stream& stream);

  std::vector<Stream> streams_;  // two of each rank
  std::atomic<bool> are_gone_{false};
  std::thread thread_;
};

}  // namespace ccom::launch
