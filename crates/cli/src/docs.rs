//! `hardpan docs`: prints Hardpan's documentation, which is compiled in. The model reads it, too,
//! when the user asks about Hardpan.

use anyhow::{Result, bail};
use hardpan_models::{did_you_mean, nearest};
use serde::Serialize;

use crate::output::{self, OutputFormat};

/// A document's name without `.md`, and its text.
type Document = (&'static str, &'static str);

macro_rules! documents {
    ($($name:literal at $path:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../", $path)))),*]
    };
}

/// All documents, in the order in which a newcomer should read them.
const DOCUMENTS: &[Document] = documents![
    "readme" at "README.md",
    "configuration" at "docs/configuration.md",
    "logging" at "docs/logging.md",
    "telemetry" at "docs/telemetry.md",
    "agent" at "docs/agent.md",
    "tools" at "docs/tools.md",
    "security" at "docs/security.md",
    "agents" at "docs/agents.md",
    "extensions" at "docs/extensions.md",
    "hooks" at "docs/hooks.md",
    "mcp" at "docs/mcp.md",
    "skills-and-templates" at "docs/skills-and-templates.md",
    "sessions" at "docs/sessions.md",
    "layouts" at "docs/layouts.md",
    "panels" at "docs/panels.md",
    "conformance" at "docs/conformance.md",
    "terminal" at "docs/terminal.md",
    "keys" at "docs/keys.md",
    "views" at "docs/views.md",
    "map" at "docs/map.md",
    "cost" at "docs/cost.md",
    "commit" at "docs/commit.md",
    "audit" at "docs/audit.md",
    "economy" at "docs/economy.md",
    "benchmarks" at "docs/benchmarks.md",
    "clients" at "docs/clients.md",
    "rpc" at "docs/rpc.md",
    "acp" at "docs/acp.md",
    "snapshot" at "docs/snapshot.md",
    "simulator" at "docs/simulator.md",
    "symbols-recall" at "docs/symbols-recall.md",
    "dependencies" at "docs/dependencies.md",
    "decisions" at "docs/decisions.md",
    "changelog" at "CHANGELOG.md",
];

#[derive(Serialize)]
struct DocumentSummary {
    name: &'static str,
    title: &'static str,
}

/// Prints the list of documents, or one of them.
pub fn docs(name: Option<&str>, format: OutputFormat) -> Result<()> {
    let Some(name) = name else { return list(format) };
    let wanted = name.to_lowercase();
    let wanted = wanted.strip_prefix("docs/").unwrap_or(&wanted);
    let wanted = wanted.strip_suffix(".md").unwrap_or(wanted);
    match DOCUMENTS.iter().find(|(known, _)| *known == wanted) {
        Some((_, text)) => Ok(output::print(*text)?),
        None => {
            let meant = nearest(wanted, DOCUMENTS.iter().map(|(known, _)| *known));
            bail!("no document is called \"{name}\"{}; run `hardpan docs` to list them", did_you_mean(&meant))
        }
    }
}

fn list(format: OutputFormat) -> Result<()> {
    let listed: Vec<DocumentSummary> =
        DOCUMENTS.iter().map(|(name, text)| DocumentSummary { name, title: title(text) }).collect();
    if format == OutputFormat::Json {
        return output::print_json(&listed);
    }
    let width = DOCUMENTS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: String =
        listed.iter().map(|DocumentSummary { name, title }| format!("{name:width$}  {title}\n")).collect();
    output::print(lines)?;
    note!("run hardpan docs NAME to print one");
    Ok(())
}

/// The first heading of a document.
fn title(text: &'static str) -> &'static str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_of_the_repository_is_there_and_has_a_title() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let files =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        for name in files.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)) {
            assert!(DOCUMENTS.iter().any(|(known, _)| *known == name), "docs/{name}.md is not in the list");
        }
        for (name, text) in DOCUMENTS {
            assert!(!title(text).is_empty(), "{name} has no title");
        }
    }
}
