//! `hardpan simulator`: runs the fake provider as an HTTP server.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use hardpan_simulator::{Engine, EngineSettings, Listen, Script, ServerConfig, serve};

use crate::output;

/// How long to let answers finish after Ctrl-C.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until Ctrl-C.
pub fn run(port: u16, script: Option<&Path>, faults: Option<&str>) -> Result<()> {
    let mut settings = EngineSettings::default();
    if let Some(path) = script {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        settings.script = Some(Script::from_yaml(&path.display().to_string(), &text)?);
    }
    if let Some(spec) = faults {
        settings.faults = spec.parse()?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(async {
        let server = serve(ServerConfig {
            listen: Listen::Loopback(port),
            ..ServerConfig::new(Engine::new(settings))
        })
        .await?;
        let url = server.url();
        output::print(format!("listening on {url}\n"))?;
        note!("this is a simulator without a language model; it accepts any key; press Ctrl-C to stop it");
        note!("to use it from hardpan, set ANTHROPIC_API_KEY=any and put this into config.toml:");
        note!("  [providers.anthropic]\n  base_url = \"{url}\"");
        tokio::signal::ctrl_c().await.context("cannot listen for Ctrl-C")?;
        Ok(server.stop(GRACE).await?)
    })
}
