// NoGradGuard: switches gradients off (torch::NoGradGuard).
//
//   {
//     const NoGradGuard guard;
//     running_mean *= 0.9;
//   }
//
// While it lives, this thread's gradient tapes (common/autograd/tape.h) record
// nothing: a tensor made meanwhile, also a view, is a constant to them.
// Thread-safety: a guard acts on its own thread only.

#ifndef D2L_COMMON_OPS_NO_GRAD_H_
#define D2L_COMMON_OPS_NO_GRAD_H_

namespace d2l {

namespace internal {
// How many guards live on this thread.
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
