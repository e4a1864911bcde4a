//! molde-infer
