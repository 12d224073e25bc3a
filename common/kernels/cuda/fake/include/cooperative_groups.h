#error \
    "cooperative_groups are not here: use __syncthreads() for block.sync(), __syncwarp(mask) for tile.sync(), and __shfl_down_sync for reduce()."
