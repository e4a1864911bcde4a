//! molde-kernels
