//! `hardpan log`: what tools were allowed to do in this folder, by whom, and how it ended.

use std::path::PathBuf;

use anyhow::Result;
use hardpan_app::audit_log::{AuditEntry, AuditEvent, read_audit_log};
use hardpan_workspace::find_project_root;

use crate::command_setup::{data_folder, working_folder};
use crate::output::{self, Align, Table};
use crate::views::width;

/// Flags of `hardpan log`.
#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// Show only lines of this session (its id, or the beginning of it)
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Show lines of all folders
    #[arg(long)]
    all: bool,
    /// Show at most this many lines, the newest
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    lines: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show the lines of this folder [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Runs `hardpan log`.
pub fn log(args: &LogArgs) -> Result<()> {
    let root = find_project_root(&working_folder(args.dir.as_deref())?);
    let root = root.canonicalize().unwrap_or(root).to_string_lossy().into_owned();
    let is_wanted = |entry: &AuditEntry| {
        let is_here = args.all || args.session.is_some() || entry.workspace == root;
        is_here && args.session.as_ref().is_none_or(|wanted| entry.session.starts_with(wanted.as_str()))
    };
    let entries: Vec<AuditEntry> = read_audit_log(&data_folder()?).into_iter().filter(is_wanted).collect();
    let shown = &entries[entries.len().saturating_sub(args.lines)..];
    if args.json {
        return output::print_json(&shown);
    }
    if shown.is_empty() {
        note!("nothing yet: tools that change something are written down here, with who allowed it");
        return Ok(());
    }
    let columns =
        [("time (UTC)", Align::Left), ("session", Align::Left), ("tool", Align::Left), ("what", Align::Left)];
    let mut table = Table::new(&columns);
    for entry in shown {
        let session: String = entry.session.chars().take(8).collect();
        let time = entry.at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let agent = entry.agent.as_ref().map_or_else(String::new, |agent| format!(" ({agent})"));
        table.row([time, session, format!("{}{agent}", entry.tool), describe(&entry.event)]);
    }
    Ok(output::print(table.render(width()))?)
}

fn describe(event: &AuditEvent) -> String {
    match event {
        AuditEvent::Allowed { subject, by, rule } => {
            let rule = rule.as_ref().map_or_else(String::new, |rule| format!(" {rule}"));
            format!("allowed by {}{rule}: {subject}", by.as_str())
        }
        AuditEvent::Denied { subject, reason } => format!("denied ({reason}): {subject}"),
        AuditEvent::Ended { failed: false } => "ended".to_owned(),
        AuditEvent::Ended { failed: true } => "failed".to_owned(),
    }
}
