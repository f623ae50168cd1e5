use std::error::Error;

/// The error as a person reads it: its text, and every cause that the text does not tell already.
/// Many of Hardpan's errors tell their cause themselves, because a remedy follows it.
pub fn error_text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let told = cause.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum TestError {
        #[error("no such file")]
        Cause,
        #[error("cannot read a.toml: no such file; create it")]
        Told(#[source] Box<TestError>),
        #[error("your settings")]
        Untold(#[source] Box<TestError>),
    }

    #[test]
    fn an_error_tells_each_of_its_causes_once() {
        let error = TestError::Untold(TestError::Told(TestError::Cause.into()).into());
        assert_eq!(error_text(&error), "your settings: cannot read a.toml: no such file; create it");
    }
}
