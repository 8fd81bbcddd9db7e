// SPDX-License-Identifier: MPL-2.0
//! Values of options as text.

use std::time::Duration;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;

/// Reads a time, such as `90`, `90s`, `1.5m` or `2h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" | "s" => 1.0,
        "m" | "min" => MINUTE,
        "h" => HOUR,
        other => return Err(format!("unknown unit `{other}`; use s, m or h")),
    };
    let duration = Duration::try_from_secs_f64(number * factor);
    let duration = duration.map_err(|error| error.to_string())?;
    if duration.is_zero() {
        return Err("it must be longer than 0".to_owned());
    }
    Ok(duration)
}

/// Reads a size, such as `500M` or `2G`, in powers of 1024.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let power = match unit.trim_end_matches('B').trim_end_matches('i') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        other => return Err(format!("unknown unit `{other}`; use K, M, G or T")),
    };
    Ok((number * (1_u64 << power) as f64) as u64)
}

/// Reads `name=value`.
pub(crate) fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as name=value")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number = number.parse().map_err(|_| "it must begin with a number")?;
    Ok((number, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        for (text, seconds) in [("90", 90.0), ("1.5m", 90.0), ("2 h", 7200.0), ("10s", 10.0)] {
            assert_eq!(duration(text).map(|it| it.as_secs_f64()), Ok(seconds));
        }
        for (text, want) in [
            ("5", 5),
            ("2K", 2048),
            ("1.5GiB", 3 << 29),
            ("800M", 800 << 20),
        ] {
            assert_eq!(bytes(text), Ok(want), "{text}");
        }
        for wrong in ["", "s", "-1s", "0s", "1 day", "1e9s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(bytes("2 apples").is_err());
    }

    #[test]
    fn a_value_may_have_an_equals_sign() {
        let pair = ("script".to_owned(), "face x=0.3".to_owned());
        assert_eq!(property("script=face x=0.3"), Ok(pair));
        assert!(property("max-faces").is_err());
    }
}
