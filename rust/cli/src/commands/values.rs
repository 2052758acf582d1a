//! Values of options.

use std::env;
use std::ffi::OsString;
use std::time::Duration;

/// A time in seconds.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|e| e.to_string())
}

/// `NAME=VALUE`, or `NAME` with the value of this process's environment.
pub(super) fn variable(text: &str) -> Result<(OsString, OsString), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.into()),
        None => (text, env::var_os(text).ok_or_else(|| format!("{text} is not set here"))?),
    };
    if name.is_empty() { Err("a variable needs a name".to_owned()) } else { Ok((name.into(), value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_without_a_value_takes_that_of_the_environment() {
        assert_eq!(variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(variable("PATH").is_ok_and(|(_, value)| !value.is_empty()));
        assert!(variable("MPJDEV_NO_SUCH_VARIABLE").is_err());
        assert!(variable("=x").is_err());
    }
}
