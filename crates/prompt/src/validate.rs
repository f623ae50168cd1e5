//! The providers' rules.
