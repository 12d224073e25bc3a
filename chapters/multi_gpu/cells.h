// The lesson's cells: in lesson.cc what there is, and DataParallel's names; the
// others in these files.

#ifndef D2L_CHAPTERS_MULTI_GPU_CELLS_H_
#define D2L_CHAPTERS_MULTI_GPU_CELLS_H_

#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"

namespace d2l::multi_gpu {

// Two times that differ by less may differ because the machine is noisy.
inline constexpr double kClearly = 1.3;

// The devices, or the only one twice: then two replicas share it.
std::vector<Device> AtLeastTwo();

// Some reasons are true only of devices in one CPU.
bool OnCpus();

std::string Median(const Figure& time);

Judgement SeveralDevices();

// training.cc
void LeNetScratch(Cell& cell);
void C2(Cell& cell);
void ResNet18(Cell& cell);
void Forgotten(Cell& cell);
void Straggler(Cell& cell);

// communication.cc
void ThreeSplits(Cell& cell);
void AllReduceCell(Cell& cell);
void OverlapLink(Cell& cell);
void ParameterServer(Cell& cell);
void KeyValueStore(Cell& cell);

// machines.cc
void SeveralMachines(Cell& cell);

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_CELLS_H_
