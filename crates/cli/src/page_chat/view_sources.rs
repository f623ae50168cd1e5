//! [`ViewSources`]: what the views are made of, read from the conversation. What takes time is read
//! elsewhere and sent to the face.

mod choices; // models, layouts, agents, tools
mod item_text; // the text of something in the context
mod session_list; // sessions, with what going on costs
mod session_tree; // the tree, with what going back does

use std::future::Future;
use std::sync::{Arc, mpsc};

use hardpan_app::ConversationApp;
use hardpan_terminal::editor::{Submission, SubmissionKind};
use hardpan_terminal::model::{Effect, Model};
use hardpan_terminal::runner::FaceMessage;
use hardpan_terminal::views::{ViewData, ViewKind};
use ratatui::text::Line;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use crate::chat::act_price::{forecast_command, price_data};
use crate::chat::commands::{parse_call, session_changes};
use crate::context_layers;
use crate::output::safe_lines;

/// Where views get their data.
pub struct ViewSources {
    app: Arc<ConversationApp>,
    face: mpsc::Sender<FaceMessage>,
    effects: UnboundedSender<Effect>,
    runtime: Handle,
}

impl ViewSources {
    /// Reads from this conversation. Called within a runtime.
    pub fn new(
        app: Arc<ConversationApp>,
        face: mpsc::Sender<FaceMessage>,
        effects: UnboundedSender<Effect>,
    ) -> Self {
        ViewSources { app, face, effects, runtime: Handle::current() }
    }

    /// What a view is made of.
    pub fn data(&self, kind: &ViewKind, model: &Model) -> ViewData {
        let app = self.app.clone();
        match kind {
            ViewKind::Context => match app.agent.breakdown() {
                Some(breakdown) => {
                    ViewData::Context(Box::new(context_layers::context_data(&app, &breakdown)))
                }
                None => self.later(kind, async move {
                    match app.preview_request("").await {
                        Ok(preview) => {
                            let data = context_layers::context_data(&app, &preview.breakdown());
                            ViewData::Context(Box::new(data))
                        }
                        Err(error) => lines(&error.to_string()),
                    }
                }),
            },
            ViewKind::Model => self.read(kind, move || ViewData::Models(choices::models(&app))),
            ViewKind::Layout => ViewData::Choices(choices::layouts(&app)),
            ViewKind::Agent => ViewData::Choices(choices::agents(&app)),
            ViewKind::Tools => ViewData::Choices(choices::tools(&app)),
            ViewKind::Sessions => {
                self.read(kind, move || ViewData::Sessions(session_list::sessions(&app, false)))
            }
            ViewKind::AllSessions => {
                self.read(kind, move || ViewData::Sessions(session_list::sessions(&app, true)))
            }
            ViewKind::Tree => self.read(kind, move || match app.read_session() {
                Ok(session) => ViewData::Tree(session_tree::tree(&app, &session)),
                Err(error) => lines(&error.to_string()),
            }),
            ViewKind::Changes => self.read(kind, move || ViewData::Diff(session_changes(&app))),
            ViewKind::Item(key) => {
                let key = key.clone();
                self.later(kind, async move { lines(&item_text::item_text(&app, &key).await) })
            }
            ViewKind::Why => self.command_output(kind, "/why"),
            ViewKind::RequestBytes => self.command_output(kind, "/request body"),
            ViewKind::RequestDiff => self.command_output(kind, "/diff"),
            ViewKind::Price(text) => match forecast_command(text, &app) {
                Some(act) => ViewData::Price(price_data(text, &act, &app, &model.keymap)),
                // Nothing was sent, so nothing can be lost.
                None => {
                    let (text, shown) = (text.clone(), text.clone());
                    let command = Submission { text, shown, kind: SubmissionKind::Command };
                    let _ = self.effects.send(Effect::Send(command));
                    ViewData::Nothing
                }
            },
            ViewKind::CallDiff => {
                let diff = model.approvals.front().and_then(|prompt| prompt.diff.clone());
                diff.map_or(ViewData::Nothing, |diff| ViewData::Diff(vec![(*diff).clone()]))
            }
            ViewKind::WholeCall => {
                let prompt = model.approvals.front();
                prompt.map_or(ViewData::Nothing, |prompt| ViewData::Lines(prompt.preview.clone()))
            }
            ViewKind::Full | ViewKind::LastCall => {
                let agent = &app.agent;
                let context =
                    agent.breakdown().map(|breakdown| context_layers::conversation_view(agent, &breakdown));
                ViewData::Conversation(context.map(Box::new))
            }
            ViewKind::Help => ViewData::Lines(super::face_host::help_lines(model)),
        }
    }

    /// Sends the data when it is there.
    fn later(&self, kind: &ViewKind, data: impl Future<Output = ViewData> + Send + 'static) -> ViewData {
        let (face, kind) = (self.face.clone(), kind.clone());
        drop(self.runtime.spawn(async move {
            let data = data.await;
            // Fails if the face has ended.
            let _ = face.send(FaceMessage::ViewData(kind, data));
        }));
        ViewData::Loading
    }

    /// Reads files elsewhere.
    fn read(&self, kind: &ViewKind, read: impl FnOnce() -> ViewData + Send + 'static) -> ViewData {
        let reading = self.runtime.spawn_blocking(read);
        self.later(kind, async move { reading.await.unwrap_or(ViewData::Nothing) })
    }

    /// What a slash command says, in a pager.
    fn command_output(&self, kind: &ViewKind, text: &'static str) -> ViewData {
        let app = self.app.clone();
        self.later(kind, async move {
            let Some((_, arguments, command)) = parse_call(&app.agent, text) else {
                return ViewData::Nothing;
            };
            match command.run(arguments, &app.agent).await {
                Ok(said) => lines(&said.unwrap_or_default()),
                Err(error) => lines(&error.to_string()),
            }
        })
    }
}

/// A text of others as lines that steer nothing.
fn lines(text: &str) -> ViewData {
    ViewData::Lines(safe_lines(text).lines().map(|line| Line::from(line.to_owned())).collect())
}
