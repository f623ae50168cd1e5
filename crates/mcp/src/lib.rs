//! Servers of the Model Context Protocol: their settings, their processes and connections, their tools.
//!
//! - [`ServerConfig`] says how a server is started or reached.

mod config; // ServerConfig: how a server is started or reached

pub use config::{
    InvalidServerName, ServerConfig, ServerConfigError, ServerConfigs, ServerName, ServerTransport,
};
