// For the tests of tools/doctor.sh: machines that are made up, as a folder with
// the files that the doctor reads and the programs that it asks.
//
//   Machine machine;
//   machine.Remove("usr/bin/gcc");
//   const DoctorResult r = machine.Run();
//   EXPECT_THAT(r.text, HasSubstr(AptGet("g++")));
//
// A Machine owns its folder. Not thread-safe. A folder that cannot be written
// ends the test.

#ifndef D2L_TOOLS_DOCTOR_TESTING_H_
#define D2L_TOOLS_DOCTOR_TESTING_H_

#include <filesystem>
#include <string>
#include <vector>

namespace d2l {

// What the doctor says where there is nothing to do.
inline constexpr char kNothing[] = "Nothing is missing.";

// "sudo ", or nothing for root, who needs none and may have none.
std::string Sudo();

// The commands that install packages: Debian's, and NVIDIA's on a system that
// does not know NVIDIA's repository, such as "debian12/x86_64".
std::string AptGet(const std::string& packages);
std::string FromNvidia(const std::string& repository,
                       const std::string& package);

// Fails the test unless the text is plain, in 80 columns. Only a word may be
// longer, such as a path, on a line of its own.
void ExpectPlain(const std::string& text);

struct DoctorResult {
  int exit_code;
  std::string output;
  // The same in one line: single spaces, commands as if never broken.
  std::string text;
};

// To begin with, Debian 12 on 8 cores with all that a build needs, no GPU.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Files are named as on the machine, without the first slash; its copy of
  // this repository is "repo".
  std::string Path(const std::string& file) const;
  void File(const std::string& file, const std::string& text);
  void Program(const std::string& file, const std::string& commands);
  void Remove(const std::string& file);

  void Gcc(const std::string& version);
  // In usr/local/cuda; it takes gcc up to 15.
  void Toolkit(const std::string& version);
  // An nvidia-smi that lists GPUs of these names, of compute capability 9.0,
  // with 79.5 of 80 GiB free, GPU i with the UUID "GPU-ibeef"; and what it says
  // of versions.
  void Gpus(const std::vector<std::string>& names,
            const std::string& versions =
                "Driver Version: 580.65.06   CUDA Version: 13.0");
  // On the PCI bus, without a driver.
  void PciGpu();

  // Runs the doctor, with these settings, "NAME=value", and no others. Expects
  // plain text, and no message of bash.
  DoctorResult Run(const std::vector<std::string>& environment = {}) const;
  // The words of the command that Run runs.
  std::vector<std::string> Command(
      const std::vector<std::string>& environment) const;
  // Runs the commands below "To do", as somebody does who copies them.
  void RunToDo(const std::string& output);

 private:
  std::filesystem::path root_;
};

}  // namespace d2l

#endif  // D2L_TOOLS_DOCTOR_TESTING_H_
