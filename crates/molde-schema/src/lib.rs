//! molde-schema
