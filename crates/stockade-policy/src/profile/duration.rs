//! Spans of time as people write them: `30s`, `5m`, `1h`, `1500ms`, `30`.

use std::time::Duration;

/// Reads a span of time. A bare number is seconds.
///
/// # Errors
/// A text that says what is wrong, without the name of the setting.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_number(text)?;
    let millis = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => {
            return Err(format!(
                "unknown unit `{}`: times end in ms, s, m, h or d",
                unit.escape_debug()
            ));
        }
    };
    number
        .checked_mul(millis)
        .map(Duration::from_millis)
        .ok_or_else(|| "the time does not fit in 64 bits of milliseconds".to_owned())
}

/// The shortest exact spelling of whole milliseconds.
pub fn format_duration(span: Duration) -> String {
    let millis = span.as_millis();
    for (factor, unit) in [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ] {
        if millis >= factor && millis.is_multiple_of(factor) {
            return format!("{}{unit}", millis / factor);
        }
    }
    format!("{millis}ms")
}

/// A whole number and what follows it.
pub(super) fn split_number(text: &str) -> Result<(u64, &str), String> {
    let text = text.trim();
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return Err(format!(
            "`{}` does not begin with a whole number",
            text.escape_debug()
        ));
    }
    if unit.starts_with(['.', ',']) {
        return Err("fractions are not read: use a smaller unit".to_owned());
    }
    let number = digits
        .parse()
        .map_err(|_| format!("`{digits}` does not fit in 64 bits"))?;
    Ok((number, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known() {
        for (text, millis) in [
            ("1500ms", 1_500),
            ("30s", 30_000),
            ("30", 30_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for text in [
            "",
            "s",
            "-1s",
            "1.5h",
            "1y",
            "1h30m",
            "99999999999999999999s",
            "1\u{7}",
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(!error.is_empty() && !error.contains('\u{7}'), "{text:?}");
        }
    }

    #[test]
    fn spelling_is_exact() {
        for millis in [0, 1, 999, 1_000, 1_001, 90_000, 86_400_000] {
            let span = Duration::from_millis(millis);
            assert_eq!(parse_duration(&format_duration(span)), Ok(span));
        }
    }
}
