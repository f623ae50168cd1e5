//! The simulator as a provider on loopback, answering from a script.

use std::time::Duration;

use hardpan_simulator::{Engine, EngineSettings, Script, Server, ServerConfig, serve};
use tokio::runtime::Runtime;

use crate::support::Sandbox;

/// A provider that answers from a script. It is ended with the test.
pub struct Provider {
    runtime: Runtime,
    server: Option<Server>,
}

impl Provider {
    /// Starts it, and makes it the provider of the sandbox. `settings` are further lines of config.toml.
    pub fn start(sandbox: &Sandbox, script: &str, settings: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let script = Script::from_yaml("script.yaml", script).expect("the script can be read");
        let engine = Engine::new(EngineSettings { script: Some(script), ..EngineSettings::default() });
        let server = runtime.block_on(serve(ServerConfig::new(engine))).expect("a free port");
        let config = format!(
            "map_tokens = 0\n{settings}\n[providers.anthropic]\nbase_url = \"{}/v1\"\n[patience]\nlongest_wait_seconds = 0.05\n",
            server.url()
        );
        sandbox.write("config/config.toml", config);
        Provider { runtime, server: Some(server) }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _ = self.runtime.block_on(server.stop(Duration::ZERO));
        }
    }
}
