// NoGradGuard: what need not be differentiated (torch::NoGradGuard).
//
//   {
//     const NoGradGuard guard;
//     running_mean *= 0.9;
//   }
//
// While it lives, this thread's gradient tapes (common/autograd/tape.h) note
// nothing: what is made meanwhile, also a view, is a constant to them.
// Thread-safety: of its thread only.

#ifndef D2L_COMMON_OPS_NO_GRAD_H_
#define D2L_COMMON_OPS_NO_GRAD_H_

namespace d2l {

namespace internal {
// That live on this thread.
inline thread_local int no_grad_guards = 0;
}  // namespace internal

class NoGradGuard {
 public:
  NoGradGuard() { ++internal::no_grad_guards; }
  ~NoGradGuard() { --internal::no_grad_guards; }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NO_GRAD_H_
