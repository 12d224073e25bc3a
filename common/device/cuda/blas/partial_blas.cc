// A library that is called cuBLAS and lacks most of it: see blas_library_test.

extern "C" int cublasCreate_v2() { return 0; }
