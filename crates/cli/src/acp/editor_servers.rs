//! The MCP servers that an editor passes on with a session.

use agent_client_protocol_schema::v1::McpServer;
use hardpan_mcp::{ServerConfig, ServerConfigs, ServerName, ServerTransport};

/// The servers of a session, and what is to be said about those that cannot be used. The person has set them
/// up in the editor: they run as those of `config.toml` do.
pub fn editor_servers(servers: &[McpServer]) -> (ServerConfigs, Vec<String>) {
    let (mut configs, mut problems) = (ServerConfigs::new(), Vec::new());
    for server in servers {
        let (name, transport) = match server {
            McpServer::Stdio(program) => (
                &program.name,
                ServerTransport::Program {
                    command: program.command.to_string_lossy().into_owned(),
                    args: program.args.clone(),
                    env: program.env.iter().map(|set| (set.name.clone(), set.value.clone())).collect(),
                    pass_environment: Vec::new(),
                    cwd: None,
                },
            ),
            McpServer::Http(server) => (
                &server.name,
                ServerTransport::Http {
                    url: server.url.clone(),
                    headers: server.headers.iter().map(|set| (set.name.clone(), set.value.clone())).collect(),
                    bearer_token_env: None,
                },
            ),
            McpServer::Sse(server) => {
                let name = &server.name;
                problems.push(format!(
                    "the MCP server {name} is left out: it speaks SSE, which the protocol gave up"
                ));
                continue;
            }
            _ => {
                problems.push("an MCP server of a kind that Hardpan does not know is left out".to_owned());
                continue;
            }
        };
        // As if it stood in config.toml: the same rules hold for it.
        let config = serde_json::from_value(ServerConfig::new(transport).to_settings());
        let is_free = |name: &ServerName| !configs.contains_key(name);
        match (ServerName::made_of(name, is_free), config) {
            (Some(name), Ok(config)) => drop(configs.insert(name, config)),
            (None, _) => problems
                .push(format!("the MCP server {name} is left out: it has no name that tools can have")),
            (_, Err(error)) => problems.push(format!("the MCP server {name} is left out: {error}")),
        }
    }
    (configs, problems)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_of_editors_get_names_that_tools_can_have() {
        let servers: Vec<McpServer> = serde_json::from_value(json!([
            {"name": "My files", "command": "/bin/files", "args": ["--all"], "env": [{"name": "A", "value": "b"}]},
            {"name": "my_files!", "command": "/bin/other", "args": [], "env": []},
            {"name": "My files", "command": "/bin/third", "args": [], "env": []},
            {"type": "http", "name": "tickets", "url": "https://example.com/mcp", "headers": [{"name": "X", "value": "y"}]},
            {"type": "http", "name": "odd", "url": "file:///etc/passwd", "headers": []},
            {"type": "sse", "name": "old", "url": "https://example.com/sse", "headers": []},
            {"name": "\u{1F5C2}", "command": "/bin/x", "args": [], "env": []},
        ]))
        .expect("servers");
        let (configs, problems) = editor_servers(&servers);
        let settings: Vec<(String, serde_json::Value)> =
            configs.iter().map(|(name, config)| (name.to_string(), config.to_settings())).collect();
        assert_eq!(
            settings,
            [
                ("My-files".into(), json!({"command": "/bin/files", "args": ["--all"], "env": {"A": "b"}})),
                ("My-files-2".into(), json!({"command": "/bin/third"})),
                ("my-files".into(), json!({"command": "/bin/other"})),
                ("tickets".into(), json!({"url": "https://example.com/mcp", "headers": {"X": "y"}})),
            ]
        );
        for (problem, expected) in problems.iter().zip(["odd", "SSE", "no name"]) {
            assert!(problem.contains(expected), "{problem}");
        }
        assert_eq!(problems.len(), 3);
    }
}
