// A stand-in for cuBLAS that lacks most functions: see blas_library_test.

extern "C" int cublasCreate_v2() { return 0; }
