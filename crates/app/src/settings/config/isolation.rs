//! Settings of what commands and pages may reach: the sandbox, the network, resources.

use hardpan_sandbox::{HostPattern, ResourceLimits};
use serde::Deserialize;

/// Whether pages that a prompt names are fetched; each is stricter than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PagesMode {
    /// Without a question, unless a rule denies it.
    On,
    /// As the rules for `fetch` say; where none decides, the user is asked.
    #[default]
    Ask,
    /// Never.
    Off,
}

/// Whether commands run in a sandbox; each is stricter than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxMode {
    /// Commands have all the rights of the user.
    Off,
    /// In a sandbox. Where the system has none, the user is asked about each command.
    #[default]
    On,
    /// In a sandbox. Where the system has none, commands do not run.
    Required,
}

impl std::str::FromStr for SandboxMode {
    type Err = UnknownSandboxMode;

    fn from_str(name: &str) -> Result<Self, UnknownSandboxMode> {
        match name {
            "off" => Ok(SandboxMode::Off),
            "on" => Ok(SandboxMode::On),
            "required" => Ok(SandboxMode::Required),
            _ => Err(UnknownSandboxMode),
        }
    }
}

/// A value of `sandbox` that is none.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected `required`, `on` or `off`")]
pub struct UnknownSandboxMode;

impl<'de> Deserialize<'de> for SandboxMode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected `required`, `on` or `off`")]
        enum Value {
            Switch(bool),
            Name(String),
        }
        match Value::deserialize(deserializer)? {
            Value::Switch(true) => Ok(SandboxMode::On),
            Value::Switch(false) => Ok(SandboxMode::Off),
            Value::Name(name) => name.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// Which network commands in the sandbox have: `false`, `true`, or a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkSetting {
    /// All of the user's, or none.
    Switch(bool),
    /// These hosts, through a proxy: `crates.io`, `*.npmjs.org`.
    Hosts(Vec<HostPattern>),
}

impl<'de> Deserialize<'de> for NetworkSetting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected `true`, `false` or a list of hosts")]
        enum Value {
            Switch(bool),
            Hosts(Vec<String>),
        }
        match Value::deserialize(deserializer)? {
            Value::Switch(is_on) => Ok(NetworkSetting::Switch(is_on)),
            Value::Hosts(hosts) => {
                let hosts = hosts.iter().map(|host| host.parse()).collect::<Result<_, _>>();
                hosts.map(NetworkSetting::Hosts).map_err(serde::de::Error::custom)
            }
        }
    }
}

/// `[limits]`: how much commands can use of the machine; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Megabytes of memory of each process.
    pub memory_mb: Option<u64>,
    /// Megabytes of each file that is written.
    pub file_size_mb: Option<u64>,
    /// Processes and threads at the same time.
    pub processes: Option<u64>,
}

impl LimitsConfig {
    /// These limits, with defaults for those that are not set.
    pub fn resource_limits(&self) -> ResourceLimits {
        let default = ResourceLimits::default();
        let limit = |set: Option<u64>, unit: u64, default: Option<u64>| match set {
            None => default,
            Some(0) => None,
            Some(count) => Some(count.saturating_mul(unit)),
        };
        ResourceLimits {
            memory: limit(self.memory_mb, 1 << 20, default.memory),
            file_size: limit(self.file_size_mb, 1 << 20, default.file_size),
            processes: limit(self.processes, 1, default.processes),
        }
    }
}
