//! [`FoundServers`]: the servers that are set up for other agents, in their own files. These are read and
//! never written, and nothing in them runs until the user has taken a server over into `config.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hardpan_files::{UnreadableReason, read_small_text};
use hardpan_mcp::{InvalidServerName, ServerConfig, ServerConfigError, ServerName, ServerTransport};
use serde::Deserialize;
use serde_json::Value;

use super::jsonc::parse_jsonc;
use super::placeholders::{Placeholders, Variable};

/// The largest file that is read, in bytes. Claude Code keeps much else in its own.
const MAX_FILE: u64 = 32 << 20;

/// What the files of other agents name.
#[derive(Debug, Default)]
pub struct FoundServers {
    /// The servers, file by file.
    pub servers: Vec<FoundServer>,
    /// The files that are there, but name nothing that can be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// A server that another agent would use.
#[derive(Debug)]
pub struct FoundServer {
    /// Its name there.
    pub name: String,
    /// The file that names it.
    pub file: PathBuf,
    /// What Hardpan would run or reach, and under which name.
    pub server: Result<(ServerName, ServerConfig), UnusableServer>,
}

/// Why a server of another agent cannot be taken over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableServer {
    /// Its name is none for Hardpan.
    #[error(transparent)]
    Name(#[from] InvalidServerName),
    /// It describes no server.
    #[error(transparent)]
    Config(#[from] ServerConfigError),
    /// Its entry has another form than documented.
    #[error("it is not written as the other agent's documents say: {0}")]
    Form(String),
    /// It speaks a transport that the protocol no longer has.
    #[error("it speaks `{0}`; Hardpan speaks stdio and streamable HTTP")]
    Transport(String),
    /// It has a place for a value that is known elsewhere.
    #[error("it needs a value for {0}: set it, or add the server with `hardpan mcp add`")]
    Placeholder(String),
    /// It has a place for a value that no file should have.
    #[error(
        "it needs the value of {0} here, which looks like a secret and would be stored in config.toml: add the server with `hardpan mcp add`"
    )]
    Secret(String),
}

/// The servers in the files of other agents: those in the project's root, and those of the user, with the
/// variables of the user's environment.
pub fn find_servers(
    root: &Path,
    home: Option<&Path>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> FoundServers {
    let mut search = Search { found: FoundServers::default(), places: Placeholders { root, environment } };
    for (name, key) in
        [(".mcp.json", "mcpServers"), (".cursor/mcp.json", "mcpServers"), (".vscode/mcp.json", "servers")]
    {
        search.read(root.join(name), json, &[&[key]]);
    }
    let Some(home) = home else { return search.found };
    let project = root.to_string_lossy();
    let claude: [&[&str]; 2] = [&["projects", &project, "mcpServers"], &["mcpServers"]];
    search.read(home.join(".claude.json"), json, &claude);
    search.read(home.join(".cursor/mcp.json"), json, &[&["mcpServers"]]);
    search.read(home.join(".codex/config.toml"), toml, &[&["mcp_servers"]]);
    search.found
}

fn json(text: &str) -> Result<Value, String> {
    parse_jsonc(text).map_err(|error| format!("is no JSON: {error}"))
}

fn toml(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error| format!("is no TOML: {}", error.message()))
}

struct Search<'a> {
    found: FoundServers,
    places: Placeholders<'a>,
}

impl Search<'_> {
    /// Reads a file that may be there, and has tables of servers at these places.
    fn read(&mut self, file: PathBuf, parse: fn(&str) -> Result<Value, String>, tables: &[&[&str]]) {
        let value = match read_small_text(&file, MAX_FILE) {
            Ok(text) => parse(&text),
            Err(UnreadableReason::Missing) => return,
            Err(reason) => Err(reason.to_string()),
        };
        match value {
            Ok(value) => {
                for table in tables {
                    self.collect(&file, table.iter().fold(&value, |value, key| &value[key]), table);
                }
            }
            Err(reason) => self.found.unreadable.push((file, reason)),
        }
    }

    fn collect(&mut self, file: &Path, servers: &Value, table: &[&str]) {
        let Some(servers) = servers.as_object() else {
            if !servers.is_null() {
                let reason = format!("has a `{}` that is no table of servers", table.join("."));
                self.found.unreadable.push((file.to_owned(), reason));
            }
            return;
        };
        for (name, entry) in servers {
            let server = server_name(name)
                .map_err(UnusableServer::from)
                .and_then(|server| Ok((server, server_config(entry, &self.places)?)));
            self.found.servers.push(FoundServer { name: name.clone(), file: file.to_owned(), server });
        }
    }
}

/// The name here of a server that has this name elsewhere.
fn server_name(name: &str) -> Result<ServerName, InvalidServerName> {
    let is_free = |_: &ServerName| true;
    ServerName::try_from(name.to_owned()).or_else(|invalid| ServerName::made_of(name, is_free).ok_or(invalid))
}

/// An entry of any of these files; each agent has its own names for some of the settings.
#[derive(Deserialize)]
struct ForeignEntry {
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Value>,
    #[serde(default)]
    env_vars: Vec<String>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default, alias = "http_headers")]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    env_http_headers: BTreeMap<String, String>,
    bearer_token_env_var: Option<String>,
    enabled: Option<bool>,
    disabled: Option<bool>,
    startup_timeout_sec: Option<f64>,
    tool_timeout_sec: Option<f64>,
}

fn server_config(entry: &Value, places: &Placeholders<'_>) -> Result<ServerConfig, UnusableServer> {
    let entry: ForeignEntry =
        serde_json::from_value(entry.clone()).map_err(|error| UnusableServer::Form(error.to_string()))?;
    if let Some(kind) = entry.kind.as_deref().filter(|kind| matches!(*kind, "sse" | "ws" | "websocket")) {
        return Err(UnusableServer::Transport(kind.to_owned()));
    }
    let fill = |text: &str| places.fill_in(text);
    let transport = match (entry.command, entry.url) {
        (None, None) => return Err(ServerConfigError::NoTransport.into()),
        (Some(_), Some(_)) => return Err(ServerConfigError::TwoTransports.into()),
        (Some(command), None) => {
            let (mut env, mut pass_environment) = (BTreeMap::new(), entry.env_vars);
            for (name, value) in entry.env {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                // A variable that goes through as it is.
                let is_passed = |variable: &Variable<'_>| {
                    let is_set = || (places.environment)(&name).is_some();
                    variable.name == name && (variable.default.is_none() || is_set())
                };
                if Variable::parse(&value).is_some_and(|variable| is_passed(&variable)) {
                    pass_environment.push(name);
                } else {
                    env.insert(name, fill(&value)?);
                }
            }
            ServerTransport::Program {
                command: fill(&command)?,
                args: entry.args.iter().map(|arg| fill(arg)).collect::<Result<_, _>>()?,
                env,
                pass_environment,
                cwd: entry.cwd.as_deref().map(fill).transpose()?.map(PathBuf::from),
            }
        }
        (None, Some(url)) => {
            let (mut headers, mut bearer_token_env) = (BTreeMap::new(), entry.bearer_token_env_var);
            for (name, value) in entry.headers {
                let token = value.strip_prefix("Bearer ").and_then(Variable::parse);
                match token.filter(|_| name.eq_ignore_ascii_case("authorization")) {
                    Some(token) => bearer_token_env = Some(token.name.to_owned()),
                    None => {
                        headers.insert(name, fill(&value)?);
                    }
                }
            }
            if let Some((name, variable)) = entry.env_http_headers.into_iter().next() {
                return Err(UnusableServer::Placeholder(format!("the header {name} (${variable})")));
            }
            ServerTransport::Http { url: fill(&url)?, headers, bearer_token_env }
        }
    };
    let enabled = entry.enabled.unwrap_or(true) && !entry.disabled.unwrap_or(false);
    let mut config = ServerConfig { enabled, ..ServerConfig::new(transport) };
    let time = |seconds: f64| Duration::from_secs(seconds.clamp(1.0, 3600.0) as u64);
    config.start_time = entry.startup_timeout_sec.map_or(config.start_time, time);
    config.call_time = entry.tool_timeout_sec.map_or(config.call_time, time);
    // The rules of config.toml hold for it as well: an address is one, for example.
    serde_json::from_value(config.to_settings()).map_err(|error| UnusableServer::Form(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(entry: &Value) -> Result<Value, String> {
        let environment = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        let places = Placeholders { root: Path::new("/work"), environment: &environment };
        let config = server_config(entry, &places);
        config.map(|config| config.to_settings()).map_err(|error| error.to_string())
    }

    #[test]
    fn entries_of_each_agent_become_settings() {
        for (entry, expected) in [
            // Claude Code
            (
                json!({"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${TOKEN}", "LEVEL": 3}}),
                json!({"command": "npx", "args": ["-y", "x"], "env": {"LEVEL": "3"}, "pass_environment": ["TOKEN"]}),
            ),
            (
                json!({"type": "http", "url": "${BASE:-https://example.com}/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}),
                json!({"url": "https://example.com/mcp", "bearer_token_env": "KEY"}),
            ),
            // VS Code
            (
                json!({"command": "node", "args": ["${workspaceFolder}/server.js"]}),
                json!({"command": "node", "args": ["/work/server.js"]}),
            ),
            (
                json!({"command": "${env:HOME}/bin/x", "env": {"A": "${env:A}", "B": "${B:-b}", "HOME": "${HOME:-/}", "C": "${HOME}/c"}}),
                json!({"command": "/home/me/bin/x", "env": {"B": "b", "C": "/home/me/c"}, "pass_environment": ["A", "HOME"]}),
            ),
            // Codex
            (
                json!({"url": "https://example.com/mcp", "bearer_token_env_var": "KEY", "startup_timeout_sec": 20, "enabled": false}),
                json!({"url": "https://example.com/mcp", "bearer_token_env": "KEY", "start_seconds": 20, "enabled": false}),
            ),
        ] {
            assert_eq!(settings(&entry), Ok(expected));
        }
    }

    #[test]
    fn what_cannot_be_taken_over_is_told() {
        for (entry, expected) in [
            (json!({"type": "sse", "url": "https://example.com"}), "it speaks `sse`"),
            (json!({"command": "a", "args": ["--key", "${input:key}"]}), "a value for ${input:key}"),
            (json!({"command": "a", "env": {"A": "${OTHER}"}}), "a value for ${OTHER}"),
            (json!({"url": "file:///etc/passwd"}), "is no address"),
            (json!({"note": 1}), "needs either `command`"),
            (json!("a"), "not written as"),
        ] {
            let error = settings(&entry).expect_err("a mistake");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn files_of_the_project_and_of_the_user_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (root, home) = (folder.path().join("work"), folder.path().join("home"));
        let write = |path: PathBuf, text: String| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            root.join(".mcp.json"),
            json!({"mcpServers": {"*": {"command": "a"}, "a": {"command": "a"}, "my.server": {"command": "a"}}})
                .to_string(),
        );
        let commented =
            "// our servers\n{\"servers\": {\"e\": {\"command\": \"e\", }, }, /* none */ \"inputs\": []}";
        write(root.join(".vscode/mcp.json"), commented.into());
        write(root.join(".cursor/mcp.json"), "// nothing but a comment".into());
        let projects = json!({"mcpServers": {"c": {"command": "c"}}, "projects": {root.to_string_lossy(): {"mcpServers": {"b": {"command": "b"}}}}});
        write(home.join(".claude.json"), projects.to_string());
        write(home.join(".codex/config.toml"), "model = \"x\"\n[mcp_servers.d]\ncommand = \"d\"\n".into());
        let none = |_: &str| None;
        let found = find_servers(&root, Some(&home), &none);
        let name = |found: &FoundServer| {
            let here = found.server.as_ref().ok().map(|(name, _)| name.to_string());
            format!("{} as {}", found.name, here.unwrap_or_default())
        };
        let names: Vec<String> = found.servers.iter().map(name).collect();
        assert_eq!(
            names,
            ["* as ", "a as a", "my.server as my-server", "e as e", "b as b", "c as c", "d as d"]
        );
        assert_eq!(found.unreadable, []);
        let found = find_servers(&home, None, &none);
        assert!(found.servers.is_empty() && found.unreadable.is_empty());
        // What is there and cannot be read is named.
        write(root.join(".mcp.json"), "{\n\"mcpServers\": {]}".into());
        write(root.join(".vscode/mcp.json"), "{\"servers\": []}".into());
        std::fs::remove_file(home.join(".claude.json")).unwrap();
        std::fs::create_dir(home.join(".claude.json")).unwrap();
        write(home.join(".codex/config.toml"), "model = x".into());
        let found = find_servers(&root, Some(&home), &none);
        let reasons: Vec<(&Path, &str)> =
            found.unreadable.iter().map(|(file, reason)| (&**file, &**reason)).collect();
        assert_eq!(
            reasons,
            [
                (&*root.join(".mcp.json"), "is no JSON: key must be a string at line 2 column 16"),
                (&*root.join(".vscode/mcp.json"), "has a `servers` that is no table of servers"),
                (&*home.join(".claude.json"), "is a folder: name a file in it"),
                (
                    &*home.join(".codex/config.toml"),
                    "is no TOML: string values must be quoted, expected literal string"
                ),
            ]
        );
    }
}
