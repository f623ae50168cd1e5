//! economy
