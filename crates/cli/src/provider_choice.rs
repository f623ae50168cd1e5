//! [`choose_provider`]: if several providers have a key and nothing says which one to use, the person
//! is asked once, and the answer is stored.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};
use hardpan_app::options::{OpenOptions, SessionChoice};
use hardpan_app::settings::Settings;
use hardpan_app::target::{default_model_of, undecided_providers};

use crate::chat::display;
use crate::output::safe;

/// A provider to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    provider: String,
    model: String,
    /// The variable or file with its key.
    key: String,
}

/// Asks which provider to use, if that is open, and stores the answer in `config.toml`. Both standard
/// input and output must be a terminal.
pub fn choose_provider(options: &OpenOptions, settings: &Settings) -> Result<()> {
    // A conversation that goes on keeps its model.
    if !matches!(options.session, SessionChoice::New) {
        return Ok(());
    }
    let undecided = undecided_providers(&options.target, settings, false);
    let candidates: Vec<Candidate> = undecided.into_iter().map(|id| candidate(id, settings)).collect();
    if candidates.len() < 2 {
        return Ok(());
    }
    let question = question(&candidates);
    let mut input = std::io::stdin().lock();
    let chosen = loop {
        note!("{question}");
        std::io::stderr().flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(()); // nobody is there: the first one is used, and a notice says so
        }
        if let Some(chosen) = choice(&line, &candidates) {
            break chosen;
        }
    };
    let path = settings.user_folders.store_provider(&chosen.provider).context("the choice is not stored")?;
    display::print_wrapped(&format!(
        "{} answers from now on: stored in {}. --provider or --model choose another for once.",
        safe(&chosen.provider),
        safe(&path.display().to_string())
    ));
    Ok(())
}

fn candidate(provider: String, settings: &Settings) -> Candidate {
    let profile = settings.catalogue.provider(&provider).map(|row| row.profile.clone());
    let source = profile.ok().and_then(|profile| settings.key_source(&provider, &profile).ok().flatten());
    let named = default_model_of(settings, &provider).unwrap_or_default();
    let model = settings.catalogue.model(Some(&provider), &named).map_or(named, |model| model.id);
    Candidate { model, key: source.map(|source| source.to_string()).unwrap_or_default(), provider }
}

fn question(candidates: &[Candidate]) -> String {
    let wide = |part: fn(&Candidate) -> &str| candidates.iter().map(|it| part(it).len()).max().unwrap_or(0);
    let (names, models) = (wide(|it| &it.provider), wide(|it| &it.model));
    let line = |(index, it): (usize, &Candidate)| {
        let Candidate { provider, model, key } = it;
        format!("  {}  {provider:names$}  {model:models$}  {key}\n", index + 1)
    };
    let lines: String = candidates.iter().enumerate().map(line).collect();
    let count = candidates.len();
    crate::output::safe_lines(&format!(
        "There are keys for {count} providers. Which one should answer? (asked once)\n{lines}1 to {count}, or Enter for 1:"
    ))
}

/// The candidate that a line means: by number or by name; the first for an empty line.
fn choice<'a>(line: &str, candidates: &'a [Candidate]) -> Option<&'a Candidate> {
    let line = line.trim();
    match line.parse::<usize>() {
        Ok(number) => candidates.get(number.checked_sub(1)?),
        Err(_) if line.is_empty() => candidates.first(),
        Err(_) => candidates.iter().find(|it| it.provider.eq_ignore_ascii_case(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_chosen_by_number_name_or_enter() {
        let it = |provider: &str, model: &str, key: &str| Candidate {
            provider: provider.into(),
            model: model.into(),
            key: key.into(),
        };
        let all = [it("anthropic", "sonnet", "ANTHROPIC_API_KEY"), it("xai", "grok-5", "keys.toml")];
        let chosen = |line: &str| choice(line, &all).map(|it| it.provider.as_str());
        assert_eq!(
            [chosen("\n"), chosen("2\n"), chosen(" XAI ")],
            [Some("anthropic"), Some("xai"), Some("xai")]
        );
        assert_eq!([chosen("0"), chosen("3"), chosen("maybe")], [None; 3]);
        assert_eq!(
            question(&all),
            "There are keys for 2 providers. Which one should answer? (asked once)\n  \
             1  anthropic  sonnet  ANTHROPIC_API_KEY\n  \
             2  xai        grok-5  keys.toml\n1 to 2, or Enter for 1:"
        );
    }
}
