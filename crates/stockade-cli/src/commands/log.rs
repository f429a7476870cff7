//! `stockade log`: what the last runs refused.

mod file;

use crate::args::LogArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BOLD, DIM, Format, printable};

pub(crate) use file::{LoggedRun, append};

pub(crate) fn run(args: &LogArgs) -> Result<Exit, Failure> {
    let mut runs = file::read()?;
    runs.drain(..runs.len().saturating_sub(args.last));
    match Format::of(args.output.json) {
        Format::Json => output::json(serde_json::json!({ "runs": runs }))?,
        Format::Text => output::text(|out| {
            if runs.is_empty() {
                return writeln!(out, "nothing was refused");
            }
            for run in &runs {
                let command = run.command.join(" ");
                let (time, dir) = (utc(run.time_ms), printable(&run.dir));
                writeln!(out, "{BOLD}{}{BOLD:#}", printable(&command))?;
                writeln!(out, "  {DIM}{time} in {dir}, exit code {}{DIM:#}", run.exit)?;
                for refusal in &run.refused {
                    writeln!(out, "  refused: {}", printable(&refusal.what))?;
                    writeln!(out, "    allow with: {}", printable(&refusal.grant))?;
                }
                if run.more > 0 {
                    writeln!(out, "  {} more were refused", run.more)?;
                }
            }
            Ok(())
        })?,
    }
    Ok(Exit::Success)
}

/// Date and time of day, by the algorithm `civil_from_days`
/// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn utc(millis: u64) -> String {
    let seconds = millis / 1000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_those_of_date() {
        // `date -u -d @N '+%F %T UTC'`
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_399_999), "2000-02-28 23:59:59 UTC");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_017_222_300), "2026-11-18 15:53:42 UTC");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01 00:00:00 UTC");
    }
}
