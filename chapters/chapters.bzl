"""The chapters, in the course's order. chapters/README.md: how to add one."""

# The folder, and the number of devices that its lesson uses. A line for each:
# the doctor and tests/run_on_gpu_host.sh read the lines, too.
CHAPTERS = {
    "hybrid_programming": 1,
    "async_computation": 1,
    "auto_parallelism": 2,
    "multi_gpu": 2,
    "profiling": 1,
}
