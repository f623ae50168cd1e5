//! The simulator with a script: as an engine, and as a server for processes other than the test's.

use std::time::Duration;

use hardpan_simulator::{Engine, EngineSettings, Faults, Script, Server, ServerConfig, serve};
use tokio::runtime::Runtime;

/// An engine that answers from a script (YAML) with these faults, such as `stall=900,times=1`.
pub fn scripted_engine(script: &str, faults: &str) -> Engine {
    let script = Script::from_yaml("script.yaml", script).unwrap_or_else(|error| panic!("{error}"));
    let faults: Faults = faults.parse().unwrap_or_else(|error| panic!("{faults}: {error}"));
    Engine::new(EngineSettings { script: Some(script), faults, ..EngineSettings::default() })
}

/// A simulator on loopback for a test without a runtime of its own, as one that starts the binary.
/// It ends when it is dropped.
pub struct SimulatorServer {
    runtime: Runtime,
    server: Option<Server>,
    url: String,
}

impl SimulatorServer {
    /// Starts a server that answers from this script.
    pub fn start(script: &str) -> Self {
        SimulatorServer::with_engine(scripted_engine(script, ""))
    }

    /// Starts a server whose answers are those of the offline assistant.
    pub fn offline_assistant() -> Self {
        SimulatorServer::with_engine(Engine::new(EngineSettings::default()))
    }

    /// Starts a server with this engine.
    pub fn with_engine(engine: Engine) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let server = runtime.block_on(serve(ServerConfig::new(engine))).expect("a free port");
        let url = server.url();
        SimulatorServer { runtime, server: Some(server), url }
    }

    /// What goes before `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for SimulatorServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            // A test that ends does not care how its server does.
            let _ = self.runtime.block_on(server.stop(Duration::ZERO));
        }
    }
}
