//! Runs a simulator: `cargo run -p hardpan-simulator --example serve -- [script.yaml] [faults]`.

use std::error::Error;

use hardpan_simulator::{Engine, EngineSettings, Script, ServerConfig, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut settings = EngineSettings::default();
    if let Some(file) = arguments.next() {
        settings.script = Some(Script::from_yaml(&file, &std::fs::read_to_string(&file)?)?);
    }
    if let Some(faults) = arguments.next() {
        settings.faults = faults.parse()?;
    }
    let server = serve(ServerConfig::new(Engine::new(settings))).await?;
    println!("listening on {}", server.url());
    Ok(server.run().await?)
}
