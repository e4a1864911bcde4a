//! molde
