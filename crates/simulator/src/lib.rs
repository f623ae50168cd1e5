//! Providers on loopback and within the process.
