//! [`forecast_command`]: what a slash command costs, before it is run.

use hardpan_app::ConversationApp;
use hardpan_app::context_items::ContextKey;
use hardpan_context::Breakdown;
use hardpan_economy::forecast::FreeWhen;
use hardpan_economy::{CostForecast, PlannedAction, Rates};
use hardpan_prompt::{MessageState, TokenUsage};
use hardpan_terminal::blocks::format::{clock, count, counted, dollars};
use hardpan_terminal::blocks::pickers::{ActPrice, PriceChoice};
use hardpan_terminal::keymap::{Action, Keymap};
use hardpan_terminal::views::PriceData;

/// What a command would do and cost.
pub struct ActForecast {
    /// The question: `Exclude src/a.rs?`
    pub question: String,
    /// Tokens of what it is about; 0 if it is about no item.
    pub tokens: usize,
    /// The engine's forecast.
    pub cost: CostForecast,
    /// The command that does the same where it is free; none if it cannot wait.
    pub later: Option<String>,
    /// Whether requests cost less afterwards, by what they read of the item.
    pub saves: bool,
}

/// Forecasts a command; none if it changes no request, or nothing has been sent.
pub fn forecast_command(text: &str, app: &ConversationApp) -> Option<ActForecast> {
    let rest = text.strip_prefix('/')?;
    let (name, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
    let arguments = arguments.trim();
    let agent = &app.agent;
    let forecast = |question: String, action: PlannedAction<'_>| {
        let cost = agent.forecast_cost(action)?;
        Some(ActForecast { question, tokens: 0, cost, later: Some(format!("/defer {rest}")), saves: false })
    };
    match (name, arguments) {
        (_, "") if name != "fold" => None,
        ("model", model) => {
            let model = model.split(' ').next().unwrap_or(model);
            let target = app.find_model(None, model.to_owned()).ok()?;
            let action = PlannedAction::SwitchModel { model: &target.model, profile: &target.profile };
            forecast(format!("Switch to {}?", target.model.name()), action)
        }
        ("thinking", level) => {
            let setting = level.parse().ok()?;
            let free = agent.thinking_change_is_free(setting);
            let mut act = forecast(format!("Change the effort to {level}?"), PlannedAction::Thinking)?;
            if free {
                (act.cost.tokens_written_again, act.cost.dollars_now) = (0, 0.0);
            }
            Some(act)
        }
        ("tools", switch) => {
            let (state, tool) = switch.split_once(' ')?;
            forecast(format!("Switch {} {state}?", tool.trim()), PlannedAction::ToggleTool(tool.trim()))
        }
        ("agent", name) => forecast(format!("Work as {name}?"), PlannedAction::SwitchAgent),
        // Another order: whatever is cached is written again.
        ("layout", name) => forecast(format!("Use the layout {name}?"), PlannedAction::Wait),
        ("pin", key) => Some(ActForecast {
            tokens: item_tokens(&agent.breakdown(), key),
            later: None,
            ..match item_tokens(&agent.breakdown(), key) {
                0 => {
                    let ContextKey::File(path) = ContextKey::parse(key).ok()? else { return None };
                    let cost = app.forecast_opening(&app.scope.root.join(path))?;
                    let question = format!("Pin {path}?");
                    ActForecast { question, tokens: 0, cost, later: None, saves: false }
                }
                _ => forecast(format!("Pin {}?", item_name(key)), PlannedAction::Pin(key))?,
            }
        }),
        ("unpin" | "close", key) => {
            let act = forecast(format!("Close {}?", item_name(key)), PlannedAction::Close(key))?;
            Some(ActForecast { tokens: item_tokens(&agent.breakdown(), key), saves: true, ..act })
        }
        ("exclude", key) if key.ends_with(" free") => {
            let key = key.trim_end_matches(" free");
            let question = format!("Exclude {} where that is free?", item_name(key));
            let mut act = forecast(question, PlannedAction::Pin(key))?;
            (act.tokens, act.later, act.saves) = (item_tokens(&agent.breakdown(), key), None, true);
            Some(act)
        }
        ("exclude", key) => {
            let named = match ContextKey::parse(key).ok()? {
                ContextKey::Message(id) => id,
                ContextKey::File(_) => key,
            };
            let act = forecast(format!("Exclude {}?", item_name(key)), PlannedAction::Prune(named))?;
            let later = Some(format!("/exclude {key} free"));
            Some(ActForecast { tokens: item_tokens(&agent.breakdown(), key), later, saves: true, ..act })
        }
        ("include", key) => {
            let cost = match ContextKey::parse(key).ok()? {
                ContextKey::Message(id) => forecast_restoring(app, id)?,
                ContextKey::File(path) => app.forecast_opening(&app.scope.root.join(path))?,
            };
            let question = format!("Send {} again?", item_name(key));
            Some(ActForecast {
                question,
                tokens: 0,
                cost,
                later: Some(format!("/defer {rest}")),
                saves: false,
            })
        }
        ("fold", _) => forecast_fold(app),
        _ => None,
    }
}

/// A message that comes back moves everything after it.
fn forecast_restoring(app: &ConversationApp, id: &str) -> Option<CostForecast> {
    let messages = app.agent.messages();
    let at = messages.iter().position(|message| &*message.id.0 == id)?;
    let next = messages[at + 1..].iter().find(|message| message.state != MessageState::Deleted);
    match next {
        Some(next) => app.agent.forecast_cost(PlannedAction::Prune(&next.id.0)),
        None => app.agent.forecast_cost(PlannedAction::Pin(id)),
    }
}

/// What a fold with the next request costs, from the layout's own outlook.
fn forecast_fold(app: &ConversationApp) -> Option<ActForecast> {
    let breakdown = app.agent.breakdown()?;
    let fold = breakdown.next_fold?;
    let rates = rates(app, &breakdown);
    let unit = rates.input_dollars(&TokenUsage { input: 1, ..TokenUsage::default() });
    let rewritten = breakdown.total_tokens.saturating_sub(fold.kept_tokens + fold.garbage_tokens);
    let cost = CostForecast {
        tokens_written_again: rewritten as u64,
        dollars_now: (fold.price * unit).max(0.0),
        free_at: Some(FreeWhen::AtNextFold),
        sentence: String::new(),
    };
    let question = format!("Fold now? It drops {} tokens of garbage.", count(fold.garbage_tokens));
    Some(ActForecast { question, tokens: fold.garbage_tokens, cost, later: None, saves: true })
}

/// Whether the next request folds by itself.
pub fn is_fold_due(app: &ConversationApp) -> bool {
    let fold = app.agent.breakdown().and_then(|breakdown| breakdown.next_fold);
    fold.is_some_and(|fold| fold.garbage_tokens > 0 && fold.rent >= fold.price)
}

fn rates(app: &ConversationApp, breakdown: &Breakdown) -> Rates {
    let target = app.agent.target();
    Rates::for_model(&target.model, &target.profile, breakdown.total_tokens as u64)
}

/// The tokens of an item in the last request.
fn item_tokens(breakdown: &Option<Breakdown>, key: &str) -> usize {
    let blocks = breakdown.iter().flat_map(|breakdown| &breakdown.blocks);
    let contents = blocks.flat_map(|block| &block.contents).filter(|content| content.key() == key);
    contents.map(|content| content.tokens).sum()
}

/// What a key names, for a person.
fn item_name(key: &str) -> &str {
    key.strip_prefix("file:").unwrap_or(key)
}

/// The question with its choices: now, where it is free, or not at all.
pub fn price_data(text: &str, act: &ActForecast, app: &ConversationApp, keymap: &Keymap) -> PriceData {
    let ActForecast { question, tokens, cost, later, saves } = act;
    let breakdown = app.agent.breakdown();
    let each = breakdown.as_ref().filter(|_| *saves && *tokens > 0).map(|breakdown| {
        let read = TokenUsage { cache_read: *tokens as u64, ..TokenUsage::default() };
        rates(app, breakdown).input_dollars(&read)
    });
    let is_free = cost.tokens_written_again == 0 && cost.dollars_now <= 0.0;
    let effect = match (cost.tokens_written_again, is_free) {
        (_, true) => "nothing is written again".to_owned(),
        (0, false) => "it is written once".to_owned(),
        (tokens, _) => {
            format!(
                "{} written again",
                counted(usize::try_from(tokens).unwrap_or(usize::MAX), "token is", "tokens are")
            )
        }
    };
    let choice = |key: String, act: &str, effect: String, price: Option<f64>, note: Option<String>| {
        PriceChoice { key, act: act.to_owned(), effect, price, note }
    };
    let mut choices =
        vec![choice(keymap.hint(Action::PriceNow), "now", effect, Some(cost.dollars_now), None)];
    let mut commands = vec![Some(text.to_owned())];
    if let Some(later) = later.as_ref().filter(|_| !is_free) {
        let note = each.map(|each| format!("until then it costs {} a request", dollars(each)));
        let when = free_time(app, cost.free_at, breakdown.as_ref());
        choices.push(choice(keymap.hint(Action::PriceFold), "at the next free fold", when, Some(0.0), note));
        commands.push(Some(later.clone()));
    }
    let pays_off = each.filter(|each| *each > 0.0 && !is_free).map(|each| {
        format!(
            "\"now\" would pay off after {}",
            counted((cost.dollars_now / each).ceil() as usize, "request", "requests")
        )
    });
    choices.push(choice(keymap.hint(Action::PickBack), "leave it", pays_off.unwrap_or_default(), None, None));
    commands.push(None);
    let about = if *tokens > 0 { counted(*tokens, "token", "tokens") } else { String::new() };
    let chosen = usize::from(commands.len() > 2);
    PriceData { price: ActPrice { question: question.clone(), about, choices, chosen }, commands }
}

/// When something becomes free: `in about 3 requests, or in 4:12`.
fn free_time(app: &ConversationApp, free_at: Option<FreeWhen>, breakdown: Option<&Breakdown>) -> String {
    let expiry = app.agent.cache_warmth().map(|warmth| {
        format!("in {}", clock(std::time::Duration::from_secs(u64::try_from(warmth.expires_in).unwrap_or(0))))
    });
    let fold = breakdown.filter(|_| free_at == Some(FreeWhen::AtNextFold)).and_then(|breakdown| {
        let fold = breakdown.next_fold.filter(|fold| fold.garbage_tokens > 0)?;
        let requests = crate::context_layers::requests_until(fold, &rates(app, breakdown))?;
        Some(format!("in about {}", counted(requests, "request", "requests")))
    });
    match (fold, expiry) {
        (Some(fold), Some(expiry)) => format!("{fold}, or {expiry}"),
        (Some(when), None) | (None, Some(when)) => when,
        (None, None) => "when the cache has expired".to_owned(),
    }
}
