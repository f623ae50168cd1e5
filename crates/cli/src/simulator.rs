//! `hardpan simulator`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use hardpan_simulator::{ServerConfig, Engine, Listen, Script, EngineSettings, serve};

use crate::output;

/// How long answers under way may go on after Ctrl-C.
const GRACE: Duration = Duration::from_secs(1);

/// Serves until it is interrupted.
pub fn run(port: u16, script: Option<&Path>, faults: Option<&str>) -> Result<()> {
    let mut settings = EngineSettings::default();
    if let Some(path) = script {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        settings.script = Some(Script::from_yaml(&path.display().to_string(), &text)?);
    }
    if let Some(spec) = faults {
        settings.faults = spec.parse()?;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime can be made")?;
    runtime.block_on(async {
        let server =
            serve(ServerConfig { listen: Listen::Loopback(port), ..ServerConfig::new(Engine::new(settings)) }).await?;
        let url = server.url();
        output::print(format!("listening on {url}\n"))?;
        eprintln!("no language model is behind this address, and any key will do; Ctrl-C ends it");
        eprintln!("hardpan asks it with ANTHROPIC_API_KEY=any and these lines in config.toml:");
        eprintln!("  [providers.anthropic]\n  base_url = \"{url}\"");
        tokio::signal::ctrl_c().await.context("Ctrl-C cannot be waited for")?;
        Ok(server.stop(GRACE).await?)
    })
}
