//! What a person chooses in the client: the mode, the model and how long it thinks.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use hardpan_app::ConversationApp;
use hardpan_context::Target;
use hardpan_models::Catalogue;
use hardpan_terminal::model::Mode;

/// The id of the choice of a mode.
pub const MODE: &str = "mode";
/// The id of the choice of a model.
pub const MODEL: &str = "model";
/// The id of the choice of a thinking level.
pub const THINKING: &str = "thinking";

/// The modes that a client offers. Mode `all` takes a flag: `hardpan acp --yes`.
const MODES: [Mode; 3] = [Mode::Ask, Mode::Edits, Mode::Plan];

const THINKING_LEVELS: [&str; 8] = ["default", "off", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The mode of this id, if a client may choose it.
pub fn mode_by_id(id: &str) -> Option<Mode> {
    Mode::by_name(id).filter(|mode| MODES.contains(mode))
}

fn mode_title(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "Ask",
        Mode::Edits => "Edits",
        Mode::Plan => "Plan",
        Mode::All => "All",
    }
}

/// The modes, for clients that know modes.
pub fn modes(current: Mode) -> SessionModeState {
    let mode =
        |mode: Mode| SessionMode::new(mode.name(), mode_title(mode)).description(mode.meaning().to_owned());
    SessionModeState::new(current.name(), MODES.map(mode).to_vec())
}

/// Every choice.
pub fn config_options(app: &ConversationApp, mode: Mode) -> Vec<SessionConfigOption> {
    let modes = MODES.map(|mode| {
        SessionConfigSelectOption::new(mode.name(), mode_title(mode)).description(mode.meaning().to_owned())
    });
    let target = app.agent.target();
    let current = format!("{}/{}", target.provider, target.model.id);
    let thinking = app.agent.thinking().to_string();
    let mut levels: Vec<String> = THINKING_LEVELS.map(str::to_owned).to_vec();
    if !levels.contains(&thinking) {
        levels.push(thinking.clone());
    }
    let level = |level: String| SessionConfigSelectOption::new(level.clone(), level);
    vec![
        SessionConfigOption::select(MODE, "Mode", mode.name(), modes.to_vec())
            .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select(MODEL, "Model", current.clone(), models(app, &current))
            .category(SessionConfigOptionCategory::Model),
        SessionConfigOption::select(
            THINKING,
            "Thinking",
            thinking,
            levels.into_iter().map(level).collect::<Vec<_>>(),
        )
        .category(SessionConfigOptionCategory::ThoughtLevel),
    ]
}

/// The models that there is a key for, and the one in use.
fn models(app: &ConversationApp, current: &str) -> Vec<SessionConfigSelectOption> {
    app.with_catalogue(|catalogue| usable_models(app, catalogue, current))
}

fn usable_models(
    app: &ConversationApp,
    catalogue: &Catalogue,
    current: &str,
) -> Vec<SessionConfigSelectOption> {
    let mut has_key: BTreeMap<String, bool> = BTreeMap::new();
    let mut names = vec![current.to_owned()];
    for model in catalogue.models().filter(|model| !model.gone) {
        let usable = *has_key.entry(model.provider.to_string()).or_insert_with(|| {
            Target::new(catalogue, Some(&model.provider), &model.id)
                .is_ok_and(|target| !app.is_offline(&target))
        });
        if usable {
            names.push(format!("{}/{}", model.provider, model.id));
        }
    }
    names.sort();
    names.dedup();
    names.into_iter().map(|name| SessionConfigSelectOption::new(name.clone(), name)).collect()
}
