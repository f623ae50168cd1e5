//! All of a call, as it is printed before a person decides about it.

use std::path::Path;
use std::sync::Arc;

use hardpan_agent::ApprovalRequest;
use hardpan_agent::approval::{ApprovalRule, RuleCoverage};
use hardpan_sandbox::{SandboxSupport, sandbox_support};
use hardpan_terminal::blocks::{CallState, FileDiff, Subject, ToolCall, command_lines, warning_lines};
use hardpan_terminal::model::{ApprovalPrompt, CallKind, RuleOffer};
use hardpan_terminal::text::visible;
use hardpan_terminal::theme::{Role, Theme};
use hardpan_tools::CallSubject;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::command_warnings::warnings;
use super::editable_part::EditablePart;

/// Larger files are not compared: the diff shows the changed parts alone.
const MAX_COMPARED_BYTES: u64 = 2 * 1024 * 1024;

/// Why no rule is offered for a call; empty if none would describe it.
fn no_rule_reason(subject: &CallSubject) -> &'static str {
    match subject {
        // Only commands of a known form have a rule, and without a sandbox none has.
        CallSubject::Command(_) if !matches!(sandbox_support(), SandboxSupport::Full) => "no sandbox",
        _ => "",
    }
}

/// The question about a call. `folder` is where its paths begin.
pub fn approval_prompt(
    id: u64,
    request: &ApprovalRequest,
    rule: Option<&ApprovalRule>,
    folder: &Path,
    theme: &Theme,
) -> ApprovalPrompt {
    let (columns, _) = crate::chat::screen::screen_size();
    let mut file = None;
    let (kind, mut preview, dangers) = match &request.subject {
        CallSubject::Command(command) => {
            let found = warnings(command);
            let mut lines = head(request, Subject::Text(String::new()), theme, columns);
            lines.extend(command_lines(command, columns, theme));
            lines.extend(warning_lines(&found, columns, theme));
            let dangers: Vec<String> = found.into_iter().map(|(what, _)| what).collect();
            (CallKind::Command { lines: command.trim_end().lines().count().max(1) }, lines, dangers)
        }
        CallSubject::File(path) => match file_diff(path, &request.args, folder) {
            Some(diff) => {
                let mut call = tool_call(request, Subject::Path(path.clone()));
                call.facts = diff.facts(theme);
                let mut lines = call.lines(columns, theme);
                lines.extend(diff.unified(columns, theme));
                file = Some(Arc::new(diff));
                (CallKind::Edit, lines, Vec::new())
            }
            None => (CallKind::Edit, arguments(request, theme, columns), Vec::new()),
        },
        CallSubject::Url(_) | CallSubject::ServerTool(_) | CallSubject::Other => (
            CallKind::Other { tool: request.tool_name.to_string() },
            arguments(request, theme, columns),
            Vec::new(),
        ),
    };
    // Above the call: what others wrote must not stand between it and the question.
    preview.splice(0..0, reason_lines(request, theme));
    let author = author_words(request);
    let heading = author.iter().map(|author| {
        Line::from(Span::styled(format!("  {} asks", visible(author)), theme.style(Role::Care)))
    });
    preview.splice(0..0, heading.collect::<Vec<_>>());
    let rule = match rule {
        _ if request.handler_reason.is_some() => RuleOffer::NotOffered("a hook asks".to_owned()),
        _ if !dangers.is_empty() => RuleOffer::NotOffered(dangers.join(", ")),
        None => RuleOffer::NotOffered(no_rule_reason(&request.subject).to_owned()),
        Some(rule) => RuleOffer::Offered(rule_words(rule, &request.subject)),
    };
    let model_says = request.args["description"].as_str().map(str::to_owned);
    let editable = EditablePart::of(&request.args).map(|part| part.text());
    let summary = summary(request);
    ApprovalPrompt { id, author, summary, kind, model_says, preview, diff: file, rule, editable }
}

/// Lines of a handler's reason that are shown.
const MAX_REASON_LINES: usize = 5;

/// Why a handler wants a person to decide.
fn reason_lines(request: &ApprovalRequest, theme: &Theme) -> Vec<Line<'static>> {
    let reason = request.handler_reason.as_deref().unwrap_or_default().trim();
    let mut lines: Vec<String> = reason
        .lines()
        .take(MAX_REASON_LINES)
        .map(|line| format!("  a hook says: {}", visible(line)))
        .collect();
    let more = reason.lines().count().saturating_sub(MAX_REASON_LINES);
    lines.extend((more > 0).then(|| format!("  {} {more} more", theme.glyphs.ellipsis)));
    lines.into_iter().map(|line| Line::from(Span::styled(line, theme.style(Role::Quiet)))).collect()
}

/// Who wants to make the call, if it is not the model of the conversation.
fn author_words(request: &ApprovalRequest) -> Option<String> {
    let agent = request.agent.as_deref()?;
    Some(if agent.starts_with("extension ") { agent.to_owned() } else { format!("agent {agent}") })
}

/// Tool and beginning of the call, for one row.
fn summary(request: &ApprovalRequest) -> String {
    let subject = match &request.subject {
        CallSubject::Command(text) | CallSubject::File(text) | CallSubject::Url(text) => text.clone(),
        CallSubject::ServerTool(_) | CallSubject::Other => request.args.to_string(),
    };
    let start: String = subject.chars().take(MAX_SUMMARY).collect();
    format!("{} {start}", request.tool_name)
}

/// Characters of a call that no terminal shows in one row.
const MAX_SUMMARY: usize = 1000;

/// What a rule covers.
fn rule_words(rule: &ApprovalRule, subject: &CallSubject) -> String {
    match (rule.coverage(), subject) {
        (RuleCoverage::EveryCall, _) => format!("every call of {}", rule.tool()),
        (RuleCoverage::Reading { command }, _) => format!("{command} that only reads"),
        (RuleCoverage::Rule { .. }, CallSubject::Command(_)) => "this exact command".to_owned(),
        (RuleCoverage::Rule { .. }, CallSubject::File(path)) => format!("{} of {path}", rule.tool()),
        (RuleCoverage::Rule { text }, _) => text.to_owned(),
    }
}

fn tool_call(request: &ApprovalRequest, subject: Subject) -> ToolCall {
    ToolCall { tool: request.tool_name.to_string(), subject, facts: Vec::new(), state: CallState::Waiting }
}

fn head(request: &ApprovalRequest, subject: Subject, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    tool_call(request, subject).lines(columns, theme)
}

/// What a call would make of a file; none if its arguments do not say.
fn file_diff(path: &str, args: &Value, folder: &Path) -> Option<FileDiff> {
    let place = folder.join(path);
    let is_small_file = |place: &Path| {
        std::fs::metadata(place).is_ok_and(|found| found.is_file() && found.len() <= MAX_COMPARED_BYTES)
    };
    let before = is_small_file(&place).then(|| std::fs::read_to_string(&place).ok()).flatten();
    if let Some(content) = args["content"].as_str() {
        return Some(FileDiff::new(path, before.as_deref().unwrap_or(""), content));
    }
    let pair =
        |edit: &Value| Some((edit["old_text"].as_str()?.to_owned(), edit["new_text"].as_str()?.to_owned()));
    let mut edits: Vec<(String, String)> = pair(args).into_iter().collect();
    edits.extend(args["edits"].as_array().into_iter().flatten().filter_map(pair));
    if edits.is_empty() {
        return None;
    }
    let Some(before) = before else {
        let join =
            |part: fn(&(String, String)) -> &str| edits.iter().map(part).collect::<Vec<_>>().join("\n");
        return Some(FileDiff::new(path, &join(|edit| &edit.0), &join(|edit| &edit.1)));
    };
    let before = before.replace("\r\n", "\n");
    let mut after = before.clone();
    for (old, new) in &edits {
        // An edit that does not fit is refused by the tool; here it changes nothing.
        if after.matches(old.as_str()).count() == 1 {
            after = after.replacen(old.as_str(), new, 1);
        } else {
            let join =
                |part: fn(&(String, String)) -> &str| edits.iter().map(part).collect::<Vec<_>>().join("\n");
            return Some(FileDiff::new(path, &join(|edit| &edit.0), &join(|edit| &edit.1)));
        }
    }
    Some(FileDiff::new(path, &before, &after))
}

/// Every argument with all of its text.
fn arguments(request: &ApprovalRequest, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let mut lines = head(request, Subject::Text(String::new()), theme, columns);
    let whole = |name: &str, value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = visible(name);
        let mut lines = text.split('\n').map(visible).enumerate().map(|(index, line)| {
            let head = if index == 0 { format!("    {name}: ") } else { "      ".to_owned() };
            Line::from(vec![Span::styled(head, theme.style(Role::Quiet)), Span::raw(line)])
        });
        lines.by_ref().collect::<Vec<_>>()
    };
    match request.args.as_object() {
        Some(fields) => lines.extend(fields.iter().flat_map(|(name, value)| whole(name, value))),
        None => lines.extend(whole("arguments", &request.args)),
    }
    let claim = request.claim.map(|claim| format!("    {}", claim.sentence()));
    lines.extend(claim.map(|claim| Line::from(Span::styled(claim, theme.style(Role::Quiet)))));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(command: &str) -> ApprovalRequest {
        ApprovalRequest {
            call_id: "1".into(),
            tool_name: "bash".into(),
            args: json!({ "command": command }),
            subject: CallSubject::Command(command.to_owned()),
            claim: None,
            agent: None,
            handler_reason: None,
        }
    }

    fn prompt(request: &ApprovalRequest) -> ApprovalPrompt {
        approval_prompt(1, request, None, Path::new("/"), &Theme::default())
    }

    fn preview(prompt: &ApprovalPrompt) -> Vec<String> {
        prompt.preview.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_author_of_a_call_is_named_unless_it_is_the_model_of_the_conversation() {
        for (agent, author) in [
            (None, None),
            (Some("extension evil"), Some("extension evil")),
            (Some("explore"), Some("agent explore")),
        ] {
            let agent = agent.map(Into::into);
            let prompt = prompt(&ApprovalRequest { agent, ..request("touch x") });
            assert_eq!((prompt.author.as_deref(), prompt.summary.as_str()), (author, "bash touch x"));
            let heading = author.map(|author| format!("  {author} asks"));
            assert_eq!(preview(&prompt).into_iter().find(|line| line.ends_with("asks")), heading);
        }
    }

    #[test]
    fn the_reason_of_a_hook_stands_above_the_call_and_imitates_none() {
        let reason = format!("careful{}\n  bash\n    1 │ ls", "\n".repeat(45));
        let handler_reason = Some(reason.into());
        let lines = preview(&prompt(&ApprovalRequest { handler_reason, ..request("touch x") }));
        assert_eq!(lines[0], "  a hook says: careful");
        assert!(lines.last().unwrap().ends_with("1 │ touch x"), "{lines:?}");
        assert!(lines.len() < 10 && !lines.iter().any(|line| line.contains("1 │ ls")), "{lines:?}");
    }
}
