// For tests: runs PTX on arrays of the host.
//
//   EXPECT_EQ(Result<float>("add.rn.f32 d, a, b;", 1.0f, 2.0f), 3);
//
//   std::vector<int> out(64);
//   RunKernel(body, {&out}, /*threads=*/64);  // stores to [%out0 + …]

#ifndef D2L_TESTS_PTX_INTERPRETER_TESTING_H_
#define D2L_TESTS_PTX_INTERPRETER_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/ptx/kernel.h"

namespace d2l::ptx {

// The type of a register, and of memory: the narrowest registers have 16 bits.
template <typename T>
std::string TypeName() {
  if (std::is_same_v<T, float>) return "f32";
  if (std::is_same_v<T, double>) return "f64";
  return "b" + std::to_string(8 * sizeof(T));
}

inline std::string ModuleOf(const std::string& params,
                            const std::string& body) {
  return ".version 8.0\n.target sm_75\n.address_size 64\n"
         ".visible .entry kernel(" +
         params + ")\n{\n" + body + "ret;\n}\n";
}

// A launch of the kernel named "kernel" in one block.
inline Launch OneBlock(Module& module, unsigned threads) {
  Launch launch;
  launch.kernel = module.KernelNamed("kernel");
  launch.block.x = threads;
  launch.params.resize(launch.kernel->param_bytes);
  return launch;
}

// What one thread computes: `instructions` set d, of type Out, from a, b and c.
// They may use the predicates p and q, and the register r of 32 bits.
template <typename Out, typename... In>
Out Result(const std::string& instructions, In... in) {
  std::string params = ".param .u64 out";
  std::string body = ".reg .u64 %out;\n.reg .pred p, q;\n.reg .b32 r;\n.reg ." +
                     TypeName<Out>() + " d;\nld.param.u64 %out, [out];\n";
  char name = 'a';
  [[maybe_unused]] const auto declare = [&](const std::string& type) {
    const std::string param = std::string(1, name) + "_param";
    params += ", .param ." + type + " " + param;
    body += ".reg ." + type + " " + name + ";\nld.param." + type + " " + name +
            ", [" + param + "];\n";
    ++name;
  };
  (declare(TypeName<In>()), ...);
  body += instructions + "\nst.global." + TypeName<Out>() + " [%out], d;\n";
  Module module(ModuleOf(params, body));
  Launch launch = OneBlock(module, 1);
  Out out{};
  const auto begin = reinterpret_cast<std::uint64_t>(&out);
  launch.find_memory = [=](std::uint64_t) {
    return MemoryRange{begin, begin + sizeof(out)};
  };
  std::size_t next = 0;
  const auto set = [&](const auto& value) {
    std::memcpy(&launch.params[launch.kernel->params[next++].first], &value,
                sizeof(value));
  };
  set(begin);
  (set(in), ...);
  RunGrid(launch);
  return out;
}

// Runs `body` with %data, the address of `data`, and %t, the thread's number,
// as 64 bits. An access outside of `data` is a fault. Blocks all do the same.
template <typename T>
void RunKernel(const std::string& body, std::vector<T>* data, unsigned threads,
               unsigned blocks = 1, const std::string& globals = "") {
  Module module(globals +
                ModuleOf(".param .u64 data",
                         ".reg .u64 %data, %t, %x<4>;\n.reg .b32 %t32, %r<8>;\n"
                         ".reg .f32 %f<4>;\n.reg .pred %p<2>;\n"
                         "ld.param.u64 %data, [data];\nmov.u32 %t32, %tid.x;\n"
                         "cvt.u64.u32 %t, %t32;\n" +
                             body));
  Launch launch = OneBlock(module, threads);
  launch.grid.x = blocks;
  const auto begin = reinterpret_cast<std::uint64_t>(data->data());
  const MemoryRange range = {begin, begin + data->size() * sizeof(T)};
  launch.find_memory = [range](std::uint64_t address) {
    const bool inside = address >= range.begin && address < range.end;
    return inside ? range : MemoryRange();
  };
  std::memcpy(launch.params.data(), &begin, sizeof(begin));
  RunGrid(launch);
}

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_INTERPRETER_TESTING_H_
