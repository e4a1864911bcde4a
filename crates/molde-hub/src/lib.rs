//! molde-hub
