//! [`ServerConfig`]: how a server is started or reached, as `[mcp_servers.NAME]` of `config.toml` says.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::loading::ToolLoadingSetting;
use crate::login::LoginSettings;

/// How long a server may take until it has listed its tools.
const START_TIME: Duration = Duration::from_secs(10);

/// How long a call may take without a sign of progress.
const CALL_TIME: Duration = Duration::from_secs(60);

/// The longest time that settings can name, in seconds.
const MAX_SECONDS: u64 = 3600;

/// The longest name of a server: the name of a tool has to fit behind it.
const MAX_NAME: usize = 32;

/// The longest beginning of another name that is kept, so that a number fits behind it.
const MAX_MADE_NAME: usize = 28;

/// The servers of a conversation, by name. Their order is that of their tools in requests.
pub type ServerConfigs = BTreeMap<ServerName, ServerConfig>;

/// The name of a server: 1 to 32 letters, digits, `_` and `-`, without `__`, which separates it from the
/// names of its tools.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ServerName(String);

/// A text that is no name of a server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" cannot name a server: use 1 to 32 letters, digits, _ and -, without __")]
pub struct InvalidServerName(String);

impl TryFrom<String> for ServerName {
    type Error = InvalidServerName;

    fn try_from(name: String) -> Result<Self, InvalidServerName> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        let is_separable = !name.contains("__") && !name.ends_with('_');
        match is_plain && is_separable && (1..=MAX_NAME).contains(&name.len()) {
            true => Ok(ServerName(name)),
            false => Err(InvalidServerName(name)),
        }
    }
}

impl ServerName {
    /// The first name that is free of those made of a name that it has elsewhere: its words, joined by
    /// `-`, and a number if the name is taken. None if there are no words.
    pub fn made_of(name: &str, is_free: impl Fn(&ServerName) -> bool) -> Option<Self> {
        let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let plain: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_MADE_NAME).collect();
        let numbered = |number: usize| match number {
            1 => plain.clone(),
            _ => format!("{plain}-{number}"),
        };
        let names = (1..100).filter_map(|number| ServerName::try_from(numbered(number)).ok());
        names.filter(|_| !plain.is_empty()).find(|name| is_free(name))
    }

    /// The name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenConfig")]
pub struct ServerConfig {
    /// Where it runs.
    pub transport: ServerTransport,
    /// Whether conversations use it.
    pub enabled: bool,
    /// Whether its program runs in the sandbox of the model's commands. Without it, the program has all
    /// the rights of the user, but still ends with the conversation.
    pub sandbox: bool,
    /// How to log in at it.
    pub login: LoginSettings,
    /// How long it may take until it has listed its tools.
    pub start_time: Duration,
    /// How long a call may take without a sign of progress.
    pub call_time: Duration,
    /// How the model gets to know its tools; none where the settings of all servers say it.
    pub tools: Option<ToolLoadingSetting>,
}

/// How to talk to a server.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub enum ServerTransport {
    /// A program that speaks on its standard input and output.
    Program {
        /// A name on the search path, or a path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, besides PATH, HOME, LANG and what `pass_environment` names.
        env: BTreeMap<String, String>,
        /// Variables of the user's environment that it gets.
        pass_environment: Vec<String>,
        /// The folder that it runs in; the root of the workspace if it is not said.
        cwd: Option<PathBuf>,
    },
    /// A server on the network, by streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
        /// The variable of the environment that holds a bearer token.
        bearer_token_env: Option<String>,
    },
}

impl fmt::Debug for ServerTransport {
    /// Without the values of variables and headers, which are often secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerTransport::Program { command, args, env, pass_environment, cwd } => f
                .debug_struct("Program")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys())
                .field("pass_environment", pass_environment)
                .field("cwd", cwd)
                .finish(),
            ServerTransport::Http { url, headers, bearer_token_env } => f
                .debug_struct("Http")
                .field("url", url)
                .field("headers", &headers.keys())
                .field("bearer_token_env", bearer_token_env)
                .finish(),
        }
    }
}

/// Why a table of settings describes no server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ServerConfigError {
    /// It says neither what to run nor where it is.
    #[error("a server needs either `command`, a program to start, or `url`, an address")]
    NoTransport,
    /// It says both.
    #[error("a server has either `command` or `url`, not both")]
    TwoTransports,
    /// A setting that the other kind of server has.
    #[error("`{setting}` means nothing for a server with `{transport}`")]
    WrongSetting {
        /// The setting.
        setting: &'static str,
        /// What the server has.
        transport: &'static str,
    },
    /// The address is none.
    #[error("\"{0}\" is no address: write it as https://host/path")]
    InvalidUrl(String),
    /// A time that is too short or too long.
    #[error("{0} is out of range: expected a number of seconds from 1 to {MAX_SECONDS}")]
    OutOfRange(u64),
}

/// A server as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_environment: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bearer_token_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oauth_client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oauth_scopes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oauth_callback_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<ToolLoadingSetting>,
}

impl TryFrom<WrittenConfig> for ServerConfig {
    type Error = ServerConfigError;

    fn try_from(written: WrittenConfig) -> Result<Self, ServerConfigError> {
        let seconds = |written: Option<u64>, default: Duration| match written {
            None => Ok(default),
            Some(seconds @ 1..=MAX_SECONDS) => Ok(Duration::from_secs(seconds)),
            Some(seconds) => Err(ServerConfigError::OutOfRange(seconds)),
        };
        let (start_time, call_time) =
            (seconds(written.start_seconds, START_TIME)?, seconds(written.call_seconds, CALL_TIME)?);
        let (enabled, sandbox) = (written.enabled.unwrap_or(true), written.sandbox.unwrap_or(false));
        let login = LoginSettings {
            client_id: written.oauth_client_id.clone(),
            scopes: written.oauth_scopes.clone().unwrap_or_default(),
            callback_port: written.oauth_callback_port,
        };
        let transport = match (written.command, written.url) {
            (None, None) => return Err(ServerConfigError::NoTransport),
            (Some(_), Some(_)) => return Err(ServerConfigError::TwoTransports),
            (Some(command), None) => {
                reject(
                    "command",
                    [
                        ("headers", written.headers.is_some()),
                        ("bearer_token_env", written.bearer_token_env.is_some()),
                        ("oauth_client_id", written.oauth_client_id.is_some()),
                        ("oauth_scopes", written.oauth_scopes.is_some()),
                        ("oauth_callback_port", written.oauth_callback_port.is_some()),
                    ],
                )?;
                ServerTransport::Program {
                    command,
                    args: written.args.unwrap_or_default(),
                    env: written.env.unwrap_or_default(),
                    pass_environment: written.pass_environment.unwrap_or_default(),
                    cwd: written.cwd,
                }
            }
            (None, Some(url)) => {
                reject(
                    "url",
                    [
                        ("args", written.args.is_some()),
                        ("env", written.env.is_some()),
                        ("pass_environment", written.pass_environment.is_some()),
                        ("cwd", written.cwd.is_some()),
                        ("sandbox", written.sandbox.is_some()),
                    ],
                )?;
                if !is_http(&url) {
                    return Err(ServerConfigError::InvalidUrl(url));
                }
                let headers = written.headers.unwrap_or_default();
                ServerTransport::Http { url, headers, bearer_token_env: written.bearer_token_env }
            }
        };
        Ok(ServerConfig { transport, enabled, sandbox, login, start_time, call_time, tools: written.tools })
    }
}

fn is_http(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn reject<const N: usize>(
    transport: &'static str,
    settings: [(&'static str, bool); N],
) -> Result<(), ServerConfigError> {
    match settings.into_iter().find(|(_, is_set)| *is_set) {
        Some((setting, _)) => Err(ServerConfigError::WrongSetting { setting, transport }),
        None => Ok(()),
    }
}

impl From<&ServerConfig> for WrittenConfig {
    fn from(config: &ServerConfig) -> Self {
        let seconds = |time: Duration, default: Duration| (time != default).then_some(time.as_secs());
        let mut written = WrittenConfig {
            command: None,
            args: None,
            env: None,
            pass_environment: None,
            cwd: None,
            url: None,
            headers: None,
            bearer_token_env: None,
            oauth_client_id: config.login.client_id.clone(),
            oauth_scopes: Some(config.login.scopes.clone()).filter(|scopes| !scopes.is_empty()),
            oauth_callback_port: config.login.callback_port,
            enabled: (!config.enabled).then_some(false),
            sandbox: config.sandbox.then_some(true),
            start_seconds: seconds(config.start_time, START_TIME),
            call_seconds: seconds(config.call_time, CALL_TIME),
            tools: config.tools,
        };
        match config.transport.clone() {
            ServerTransport::Program { command, args, env, pass_environment, cwd } => {
                written.command = Some(command);
                written.args = Some(args).filter(|args| !args.is_empty());
                written.env = Some(env).filter(|env| !env.is_empty());
                written.pass_environment = Some(pass_environment).filter(|names| !names.is_empty());
                written.cwd = cwd;
            }
            ServerTransport::Http { url, headers, bearer_token_env } => {
                written.url = Some(url);
                written.headers = Some(headers).filter(|headers| !headers.is_empty());
                (written.bearer_token_env, written.sandbox) = (bearer_token_env, None);
            }
        }
        written
    }
}

impl ServerConfig {
    /// The server as settings have it: a table with what is not the default.
    pub fn to_settings(&self) -> serde_json::Value {
        serde_json::to_value(WrittenConfig::from(self)).unwrap_or_default()
    }

    /// A server with the default limits, which conversations use.
    pub fn new(transport: ServerTransport) -> Self {
        let (enabled, sandbox, start_time, call_time) = (true, false, START_TIME, CALL_TIME);
        let login = LoginSettings::default();
        ServerConfig { transport, enabled, sandbox, login, start_time, call_time, tools: None }
    }

    /// Whether a login is used: it is on the network, and the settings have no token for it.
    pub fn can_log_in(&self) -> bool {
        match &self.transport {
            ServerTransport::Program { .. } => false,
            ServerTransport::Http { headers, bearer_token_env, .. } => {
                let has_header = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                bearer_token_env.is_none() && !has_header
            }
        }
    }

    /// Narrows a server that a project names and not the user: its program runs in the sandbox, and it
    /// gets nothing of the user's environment.
    pub fn restrict_to_project(&mut self) {
        self.sandbox = true;
        match &mut self.transport {
            ServerTransport::Program { pass_environment, .. } => pass_environment.clear(),
            ServerTransport::Http { bearer_token_env, .. } => *bearer_token_env = None,
        }
    }

    /// What tells this server from another one: a remembered list of tools is of the server that gave it.
    pub fn identity(&self) -> Hash {
        Hash::of(&serde_json::to_vec(&self.transport).unwrap_or_default())
    }

    /// One line about where the server runs, without secrets.
    pub fn place(&self) -> String {
        match &self.transport {
            ServerTransport::Program { command, args, .. } => {
                let words = std::iter::once(command).chain(args);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            ServerTransport::Http { url, .. } => url.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(written: serde_json::Value) -> Result<ServerConfig, String> {
        serde_json::from_value(written).map_err(|error| error.to_string())
    }

    #[test]
    fn a_program_and_an_address_are_servers() {
        let program =
            read(json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}})).expect("a server");
        assert_eq!((program.start_time, program.call_time, program.sandbox), (START_TIME, CALL_TIME, false));
        assert_eq!(program.place(), "npx -y x");
        let http = read(json!({"url": "https://example.com/mcp", "call_seconds": 5})).expect("a server");
        assert_eq!((http.place().as_str(), http.call_time.as_secs()), ("https://example.com/mcp", 5));
        assert_ne!(program.identity(), http.identity());
    }

    #[test]
    fn what_is_written_is_read_again() {
        for written in [
            json!({"command": "npx", "args": ["-y"], "env": {"A": "b"}, "pass_environment": ["T"], "cwd": "/w",
                "sandbox": true, "enabled": false, "start_seconds": 20, "call_seconds": 5}),
            json!({"url": "https://example.com/mcp", "headers": {"A": "b"}, "bearer_token_env": "T"}),
            json!({"url": "https://example.com/mcp", "oauth_client_id": "c", "oauth_scopes": ["s"],
                "oauth_callback_port": 4000}),
            json!({"command": "a"}),
            json!({"command": "a", "tools": "search"}),
        ] {
            assert_eq!(read(written.clone()).expect("a server").to_settings(), written);
        }
    }

    #[test]
    fn mistakes_name_the_setting() {
        for (written, expected) in [
            (json!({}), "needs either `command`"),
            (json!({"command": "a", "url": "http://b"}), "not both"),
            (json!({"command": "a", "headers": {}}), "`headers` means nothing for a server with `command`"),
            (json!({"url": "http://b", "env": {}}), "`env` means nothing for a server with `url`"),
            (json!({"url": "file:///etc/passwd"}), "is no address"),
            (json!({"command": "a", "start_seconds": 0}), "0 is out of range"),
            (json!({"command": "a", "tols": []}), "tols"),
        ] {
            let error = read(written).expect_err("a mistake");
            assert!(error.contains(expected), "{error}");
        }
        for name in ["", "a b", "a__b", "a_", "über", &"a".repeat(33)] {
            assert!(ServerName::try_from(name.to_owned()).is_err(), "{name}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let written = json!({"command": "a", "args": ["--key=s3cret"], "env": {"TOKEN": "s3cret"}});
        assert!(!format!("{:?}", read(written)).contains("s3cret"));
        let written = json!({"url": "http://b", "headers": {"X-Key": "s3cret"}});
        assert!(!format!("{:?}", read(written)).contains("s3cret"));
    }
}
