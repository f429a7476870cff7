//! Sizes as people write them: `512M`, `64k`, `1GiB`, `4096`.

/// Reads a size in bytes. Units are powers of 1024; a bare number is bytes.
///
/// # Errors
/// A text that says what is wrong, without the name of the setting.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = super::duration::split_number(text)?;
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => {
            return Err(format!(
                "unknown unit `{}`: sizes end in k, M, G or T",
                unit.escape_debug()
            ));
        }
    };
    1024_u64
        .checked_pow(power)
        .and_then(|factor| number.checked_mul(factor))
        .ok_or_else(|| "the size does not fit in 64 bits".to_owned())
}

/// The shortest exact spelling.
pub fn format_size(bytes: u64) -> String {
    for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "k")] {
        let factor = 1_u64 << shift;
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 64 << 10),
            ("512M", 512 << 20),
            ("1G", 1 << 30),
            ("1GiB", 1 << 30),
            ("2 MB", 2 << 20),
            ("3t", 3 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for text in [
            "",
            "M",
            "-1",
            "1.5G",
            "1X",
            "1M2",
            "99999999999999999999",
            "16777216T",
            "1\0",
        ] {
            let error = parse_size(text).unwrap_err();
            assert!(!error.is_empty() && !error.contains('\0'), "{text:?}");
        }
    }

    #[test]
    fn spelling_is_exact() {
        for bytes in [0, 1, 1023, 1024, 1025, 512 << 20, u64::MAX] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
    }
}
