//! The simulator as a provider on loopback, answering from a script.

use hardpan_test_support::SimulatorServer;

use crate::support::Sandbox;

/// A provider that answers from a script. It is ended with the test.
pub struct Provider {
    _server: SimulatorServer,
}

impl Provider {
    /// Starts it, and makes it the provider of the sandbox. `settings` are further lines of config.toml.
    pub fn start(sandbox: &Sandbox, script: &str, settings: &str) -> Self {
        let server = SimulatorServer::start(script);
        let config = format!(
            "map_tokens = 0\n{settings}\n[providers.anthropic]\nbase_url = \"{}/v1\"\n[patience]\nlongest_wait_seconds = 0.05\n",
            server.url()
        );
        sandbox.write("config/config.toml", config);
        Provider { _server: server }
    }
}
