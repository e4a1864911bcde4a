//! molde-constraint
