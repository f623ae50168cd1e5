//! [`Placeholders`]: what stands for `${NAME}` in the files of other agents.

use std::borrow::Cow;
use std::path::Path;

use super::found_servers::UnusableServer;
use crate::secrets::is_secret_variable;

/// What values are known.
pub(super) struct Placeholders<'a> {
    /// The root of the project.
    pub root: &'a Path,
    /// The variables of the user's environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Placeholders<'_> {
    /// A text with the values of its placeholders. What has no value is an error; so is a secret, which
    /// would be stored in a file.
    pub fn fill_in(&self, text: &str) -> Result<String, UnusableServer> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else { break };
            filled.push_str(&rest[..start]);
            filled.push_str(&self.value(&rest[start + 2..start + length])?);
            rest = &rest[start + length + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&self, inside: &str) -> Result<Cow<'_, str>, UnusableServer> {
        match inside {
            "workspaceFolder" | "workspaceRoot" => return Ok(self.root.to_string_lossy()),
            "workspaceFolderBasename" => {
                return Ok(self.root.file_name().unwrap_or_default().to_string_lossy());
            }
            "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR_STR.into()),
            _ => {}
        }
        let name = if inside == "userHome" { "${HOME}" } else { &*format!("${{{inside}}}") };
        let Some(variable) = Variable::parse(name) else {
            return Err(UnusableServer::Placeholder(format!("${{{inside}}}")));
        };
        match ((self.environment)(variable.name), variable.default) {
            (Some(value), _) if is_secret_variable(variable.name, &value) => {
                Err(UnusableServer::Secret(variable.name.to_owned()))
            }
            (Some(value), _) => Ok(value.into()),
            (None, Some(default)) => Ok(default.to_owned().into()),
            (None, None) => Err(UnusableServer::Placeholder(format!("${{{inside}}}"))),
        }
    }
}

/// A variable of the environment, as a placeholder names it.
pub(super) struct Variable<'a> {
    pub name: &'a str,
    /// Its value where it is not set.
    pub default: Option<&'a str>,
}

impl<'a> Variable<'a> {
    /// The variable in `${NAME}`, `${env:NAME}` or `${NAME:-default}`, if the text is nothing else.
    pub fn parse(text: &'a str) -> Option<Self> {
        let inside = text.strip_prefix("${")?.strip_suffix('}')?;
        let inside = inside.strip_prefix("env:").unwrap_or(inside);
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then_some(Variable { name, default })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_get_the_values_that_are_known_and_no_secrets() {
        let environment = |name: &str| match name {
            "HOME" => Some("/home/me".to_owned()),
            "PORT" => Some("80".to_owned()),
            "API_KEY" => Some("very-private".to_owned()),
            _ => None,
        };
        let places = Placeholders { root: Path::new("/work/shop"), environment: &environment };
        let fill_in = |text: &str| places.fill_in(text).map_err(|error| error.to_string());
        for (text, expected) in [
            ("plain $HOME {x} ${", "plain $HOME {x} ${"),
            ("${HOME}/a:${userHome}/b", "/home/me/a:/home/me/b"),
            ("${env:PORT}${PORT:-8080}${OTHER:-8081}${OTHER:-}", "80808081"),
            ("${workspaceFolder}${/}${workspaceFolderBasename}", "/work/shop/shop"),
        ] {
            assert_eq!(fill_in(text).as_deref(), Ok(expected));
        }
        for (text, missing) in
            [("a${OTHER}", "${OTHER}"), ("${input:key}", "${input:key}"), ("${env:NONE}", "${env:NONE}")]
        {
            let expected =
                format!("it needs a value for {missing}: set it, or add the server with `hardpan mcp add`");
            assert_eq!(fill_in(text), Err(expected));
        }
        let secret = "it needs the value of API_KEY here, which looks like a secret and would be stored in config.toml: add the server with `hardpan mcp add`";
        for text in ["--key=${API_KEY}", "${env:API_KEY}", "${API_KEY:-none}"] {
            assert_eq!(fill_in(text), Err(secret.to_owned()));
        }
    }
}
