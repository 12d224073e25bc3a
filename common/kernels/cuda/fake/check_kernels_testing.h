// Kernels for check_test.cc: correct ones, and ones with one fault each.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_KERNELS_TESTING_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_KERNELS_TESTING_H_

namespace d2l::kernels::cuda {

constexpr int kTile = 32;

void CopyKernel(float* out, const float* in, int n);
// in and out are (n, n), n a multiple of the tile.
void NaiveTranspose(float* out, const float* in, int n);
void TiledTranspose(float* out, const float* in, int n);
void PaddedTranspose(float* out, const float* in, int n);
void ColumnSums(float* out, const float* in, int rows, int columns);
// c = a b, all (n, n), by tiles of 16.
void TiledProduct(float* c, const float* a, const float* b, int n);
void WarpSum(float* out, const float* in);
void Histogram(int* counts, const int* in, int n);

// ---- Right, in a style of their own.
void SumOfWarp(float* out, const float* in, bool orders);
void TakeTurns(float* out, const float* in, int n, bool orders);
void WholeBlocksReturn(float* out, const float* in, int n);
// in and out are (32, 32).
void SwizzledTranspose(float* out, const float* in);
void SumByLastBlock(float* out, const float* in, float* partial,
                    unsigned* arrived, bool fences);
void FlagInABlock(float* out, int* flag, bool fences);
void SyncWithEndedLanes(float* out, const float* in);

// ---- With one fault each.
void NoBarrier(float* out, const float* in);
void ReachedByHalf(float* out, const float* in);
void ShiftedIndex(float* out, const float* in, int n);
void PlainHistogram(int* counts, const int* in, int n);
void NeverWritten(float* out);
void BeyondTheTile(float* out, const float* in, int offset);
void BeyondTheEnd(float* out, const float* in, int n);
void Misaligned(float* out, const char* in);
void MisalignedVectors(float* out, const float* in);
void LastOneWins(int* out);
void StrandedLanes(int* out);
void OutsideTheMask(unsigned* out);
void MasksThatDiffer(unsigned* out);
void WordsThatDiffer(unsigned* out);
void ReadsAnEndedLane(int* out);
void TwoBarriers(float* out, const float* in);
void PartOfTheWarpSyncs(float* out);
void DeviceHistogram(int* counts, const int* in, int n);
void StaticScratch(float* out, const float* in);
void BeyondDynamicShared(float* out, float* scratch);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_KERNELS_TESTING_H_
