//! `/panels` and `/close`: what a person does with panels and open files.

use hardpan_app::ConversationApp;

use super::command_error::SlashCommandError;
use super::commands::with_price;
use crate::output::{Align, Table, thousands};
use crate::views;

const USAGE: &str = "/panels, /panels ID, /panels ID hide, /panels ID show, or /panels ID PAGE";

/// `/panels`: lists the panels, shows one, or changes how requests show it.
pub async fn run(arguments: &str, app: &ConversationApp) -> Result<String, SlashCommandError> {
    let now = app.agent.now();
    let registry = &app.panels.registry;
    let mut words = arguments.split_whitespace();
    let (Some(name), change, None) = (words.next(), words.next(), words.next()) else {
        return if arguments.is_empty() { Ok(table(app)) } else { Err(SlashCommandError::Usage(USAGE)) };
    };
    let said = match change {
        None => {
            let content = registry.content(name, now)?;
            return Ok(content.map_or_else(|| "it has no content yet".into(), |text| text.to_string()));
        }
        Some("hide") => format!("{} is hidden from the next request on.", registry.set_hidden(name, true)?),
        Some("show") => format!("{} is shown from the next request on.", registry.set_hidden(name, false)?),
        Some(page) => {
            let page = page.parse().map_err(|_| SlashCommandError::Usage(USAGE))?;
            let (page, pages) = registry.turn_page(name, page, now)?;
            format!("page {page} of {pages} is shown from the next request on.")
        }
    };
    app.save_state().await;
    Ok(said)
}

fn table(app: &ConversationApp) -> String {
    let panels = app.panels.registry.list(app.agent.now());
    let histories = app.agent.histories();
    if panels.is_empty() && histories.is_empty() {
        return "this conversation has no panels; `panels` in config.toml, or the layout panels, adds them"
            .into();
    }
    let head = [("id", Align::Left), ("panel", Align::Left), ("bytes", Align::Right), ("", Align::Left)];
    let mut table = Table::new(&head);
    for panel in panels {
        let state = match (panel.hidden, panel.pages) {
            (true, _) => "hidden".to_owned(),
            (false, 0) => "empty".to_owned(),
            (false, 1) => String::new(),
            (false, pages) => format!("page {} of {pages}", panel.page),
        };
        table.row([panel.id.to_string(), panel.title, thousands(panel.bytes), state]);
    }
    for (id, title) in histories {
        table.row([id.to_string(), title.to_string(), String::new(), "frozen".to_owned()]);
    }
    table.render(views::width())
}

/// `/close`: takes something out of the context.
pub async fn close(name: &str, app: &ConversationApp) -> Result<String, SlashCommandError> {
    let cost = app.forecast_closing(&app.item_path(name)).map(|forecast| forecast.sentence);
    let closed = app.close_item(name).await?;
    app.save_state().await;
    Ok(with_price(&format!("{closed} is closed."), cost))
}
