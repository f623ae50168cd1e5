//! [`FoundServer`]: a server that is set up for another agent, in its own files. They are read and never
//! written, and nothing in them runs until the user has taken a server over into `config.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hardpan_files::read_small_text;
use hardpan_mcp::{InvalidServerName, ServerConfig, ServerConfigError, ServerName, ServerTransport};
use serde::Deserialize;
use serde_json::Value;

use super::jsonc::parse_jsonc;

/// The largest file that is read, in bytes. Claude Code keeps much else in its own.
const MAX_FILE: u64 = 32 << 20;

/// A server that another agent would use.
#[derive(Debug)]
pub struct FoundServer {
    /// Its name there.
    pub name: String,
    /// The file that names it.
    pub file: PathBuf,
    /// What Hardpan would run or reach.
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
    #[error("it needs a value for {0}: add the server with `hardpan mcp add`")]
    Placeholder(String),
}

/// The servers in the files of other agents: those in the project's root, and those of the user. A file that
/// is not there, or is no JSON or TOML, names none.
pub fn find_servers(root: &Path, home: Option<&Path>) -> Vec<FoundServer> {
    let mut found = Vec::new();
    let json = |path: PathBuf| -> Option<(PathBuf, Value)> {
        let value = parse_jsonc(&read_small_text(&path, MAX_FILE).ok()?)?;
        Some((path, value))
    };
    let project =
        [(".mcp.json", "mcpServers"), (".cursor/mcp.json", "mcpServers"), (".vscode/mcp.json", "servers")];
    for (name, key) in project {
        if let Some((path, value)) = json(root.join(name)) {
            collect(&mut found, &path, &value[key], root);
        }
    }
    let Some(home) = home else { return found };
    if let Some((path, value)) = json(home.join(".claude.json")) {
        collect(&mut found, &path, &value["projects"][&*root.to_string_lossy()]["mcpServers"], root);
        collect(&mut found, &path, &value["mcpServers"], root);
    }
    if let Some((path, value)) = json(home.join(".cursor/mcp.json")) {
        collect(&mut found, &path, &value["mcpServers"], root);
    }
    let path = home.join(".codex/config.toml");
    let codex = read_small_text(&path, MAX_FILE).ok().and_then(|text| toml::from_str::<Value>(&text).ok());
    if let Some(value) = codex {
        collect(&mut found, &path, &value["mcp_servers"], root);
    }
    found
}

fn collect(found: &mut Vec<FoundServer>, file: &Path, servers: &Value, root: &Path) {
    for (name, entry) in servers.as_object().into_iter().flatten() {
        let server = ServerName::try_from(name.clone())
            .map_err(UnusableServer::from)
            .and_then(|server| Ok((server, server_config(entry, root)?)));
        found.push(FoundServer { name: name.clone(), file: file.to_owned(), server });
    }
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

fn server_config(entry: &Value, root: &Path) -> Result<ServerConfig, UnusableServer> {
    let entry: ForeignEntry =
        serde_json::from_value(entry.clone()).map_err(|error| UnusableServer::Form(error.to_string()))?;
    if let Some(kind) = entry.kind.as_deref().filter(|kind| matches!(*kind, "sse" | "ws" | "websocket")) {
        return Err(UnusableServer::Transport(kind.to_owned()));
    }
    let fill = |text: &str| fill_in(text, root);
    let transport = match (entry.command, entry.url) {
        (None, None) => return Err(ServerConfigError::NoTransport.into()),
        (Some(_), Some(_)) => return Err(ServerConfigError::TwoTransports.into()),
        (Some(command), None) => {
            let (mut env, mut pass_environment) = (BTreeMap::new(), entry.env_vars);
            for (name, value) in entry.env {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                // A variable that goes through as it is.
                if variable(&value) == Some(&name) {
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
                let token = value.strip_prefix("Bearer ").and_then(variable);
                match token.filter(|_| name.eq_ignore_ascii_case("authorization")) {
                    Some(token) => bearer_token_env = Some(token.to_owned()),
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

/// The variable in `${NAME}` or `${env:NAME}`, if the text is nothing else.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(name)
}

/// A text with the workspace's folder and the defaults of variables filled in. Other places for values are
/// an error: a value of the user's environment would be stored in a file.
fn fill_in(text: &str, root: &Path) -> Result<String, UnusableServer> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let inside = &rest[start + 2..start + length];
        filled.push_str(&rest[..start]);
        match (inside, inside.split_once(":-")) {
            ("workspaceFolder" | "workspaceRoot", _) => filled.push_str(&root.to_string_lossy()),
            (_, Some((_, default))) => filled.push_str(default),
            _ => return Err(UnusableServer::Placeholder(format!("${{{inside}}}"))),
        }
        rest = &rest[start + length + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(entry: &Value) -> Result<Value, String> {
        let config = server_config(entry, Path::new("/work"));
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
            json!({"mcpServers": {"a": {"command": "a"}, "bad name": {"command": "a"}}}).to_string(),
        );
        let commented =
            "// our servers\n{\"servers\": {\"e\": {\"command\": \"e\", }, }, /* none */ \"inputs\": []}";
        write(root.join(".vscode/mcp.json"), commented.into());
        write(root.join(".cursor/mcp.json"), "// nothing but a comment".into());
        let projects = json!({"mcpServers": {"c": {"command": "c"}}, "projects": {root.to_string_lossy(): {"mcpServers": {"b": {"command": "b"}}}}});
        write(home.join(".claude.json"), projects.to_string());
        write(home.join(".codex/config.toml"), "model = \"x\"\n[mcp_servers.d]\ncommand = \"d\"\n".into());
        let found = find_servers(&root, Some(&home));
        let names: Vec<(&str, bool)> =
            found.iter().map(|found| (&*found.name, found.server.is_ok())).collect();
        assert_eq!(
            names,
            [("a", true), ("bad name", false), ("e", true), ("b", true), ("c", true), ("d", true)]
        );
        assert!(find_servers(&home, None).is_empty());
    }
}
