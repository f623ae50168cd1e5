//! [`ServerPrompt`]: a prompt that a server writes when it is asked for it.

use hardpan_prompt::Image;
use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject, Role, ServerResult};
use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::error::ServerError;
use crate::failures::other_answer;
use crate::page_cursor::PageCursor;
use crate::plain_text::plain_text;
use crate::results::AnswerParts;

/// The most prompts of one server.
const MAX_PROMPTS: usize = 500;

/// The longest description of a prompt or an argument, in bytes.
const MAX_DESCRIPTION: usize = 300;

/// The most arguments of a prompt.
const MAX_ARGUMENTS: usize = 30;

/// The longest name of an argument that is shown, in bytes.
const MAX_SHOWN_NAME: usize = 60;

/// A prompt that a server can write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPrompt {
    /// Its name, as the server knows it.
    pub name: String,
    /// What it is for, in a line.
    pub description: String,
    /// What it is made of.
    pub arguments: Vec<PromptArgument>,
}

/// What a prompt is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// Whether the prompt is nothing without it.
    pub is_required: bool,
}

/// A prompt as a server wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptText {
    /// Its text.
    pub text: String,
    /// Its images.
    pub images: Vec<Image>,
}

impl ServerPrompt {
    /// How the arguments are shown: `NAME [NAME]`.
    pub fn argument_hint(&self) -> String {
        let hint = |argument: &PromptArgument| match argument.is_required {
            true => argument.shown_name().to_uppercase(),
            false => format!("[{}]", argument.shown_name().to_uppercase()),
        };
        self.arguments.iter().map(hint).collect::<Vec<_>>().join(" ")
    }
}

impl PromptArgument {
    /// Its name as it is shown, in one line.
    pub fn shown_name(&self) -> String {
        plain_text(&self.name, MAX_SHOWN_NAME).replace(['\n', '\t'], " ")
    }
}

impl Connection {
    /// Whether the server has prompts.
    pub fn offers_prompts(&self) -> bool {
        self.offers(|capabilities| capabilities.prompts.is_some())
    }

    /// The server's prompts, in the order of their names. Of two with one name the first is kept.
    pub async fn list_prompts(&self) -> Result<Vec<ServerPrompt>, ServerError> {
        if !self.offers_prompts() {
            return Ok(Vec::new());
        }
        let (mut prompts, mut cursor) = (Vec::new(), PageCursor::default());
        loop {
            let page = self.service.peer().list_prompts(Some(cursor.params())).await;
            let page = page.map_err(|error| self.call_error(error))?;
            let is_empty = page.prompts.is_empty();
            prompts.extend(page.prompts.into_iter().map(make_prompt));
            if prompts.len() > MAX_PROMPTS {
                return Err(ServerError::TooMuch { max: MAX_PROMPTS, what: "prompts" });
            }
            if !cursor.advance(&self.name, page.next_cursor) || is_empty {
                break;
            }
        }
        prompts.sort_by(|a, b| a.name.cmp(&b.name));
        prompts.dedup_by(|a, b| a.name == b.name);
        Ok(prompts)
    }

    /// Has the server write a prompt. What the model is to have said in it is marked as such.
    pub async fn get_prompt(&self, name: &str, arguments: JsonObject) -> Result<PromptText, ServerError> {
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            params = params.with_arguments(arguments);
        }
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let ServerResult::GetPromptResult(result) = self.request(request, &|_| {}).await? else {
            return Err(other_answer());
        };
        let mut parts = AnswerParts::default();
        for message in result.messages {
            if message.role == Role::Assistant {
                parts.add_text("(Assistant:)");
            }
            parts.add(message.content);
        }
        let (text, images) = parts.into_text_and_images();
        match text.is_empty() && images.is_empty() {
            true => Err(ServerError::Answer("the prompt is empty".into())),
            false => Ok(PromptText { text, images }),
        }
    }

    /// What the server proposes for an argument of a prompt.
    pub async fn complete_argument(&self, prompt: &str, argument: &str, typed: &str) -> Vec<String> {
        if !self.offers(|capabilities| capabilities.completions.is_some()) {
            return Vec::new();
        }
        let found = self.service.peer().complete_prompt_argument(prompt, argument, typed, None).await;
        let values = found.map(|found| found.values).unwrap_or_default();
        values.into_iter().take(50).map(|value| plain_text(&value, MAX_DESCRIPTION)).collect()
    }
}

fn make_prompt(prompt: rmcp::model::Prompt) -> ServerPrompt {
    let line = |text: Option<String>| {
        let text = plain_text(&text.unwrap_or_default(), MAX_DESCRIPTION);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let arguments = prompt.arguments.unwrap_or_default().into_iter().take(MAX_ARGUMENTS);
    let arguments = arguments.map(|argument| PromptArgument {
        name: argument.name,
        description: line(argument.description),
        is_required: argument.required.unwrap_or(false),
    });
    ServerPrompt {
        description: line(prompt.description.or(prompt.title)),
        arguments: arguments.collect(),
        name: prompt.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_arguments_are_shown_in_one_line_of_plain_text() {
        let argument = |name: &str, is_required| PromptArgument {
            name: name.to_owned(),
            description: String::new(),
            is_required,
        };
        let prompt = ServerPrompt {
            name: "p".into(),
            description: String::new(),
            arguments: vec![argument("to\u{1b}]0;x\u{7}pic\n", true), argument("b\u{202e}\nc", false)],
        };
        assert_eq!(prompt.argument_hint(), "TOPIC [B C]");
    }
}
