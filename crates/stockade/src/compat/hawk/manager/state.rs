//! What is known about a sandbox.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use stockade_workspace::{Status, WorkspaceState};

use super::SandboxManagerError;
use super::{base64, files};

/// A sandbox and the files in its directory, as they were when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxState {
    /// Its id: `sb-` and twelve hexadecimal digits.
    pub id: String,
    /// Its directory.
    pub work_dir: PathBuf,
    /// Variables for what runs in it. Names that look like secrets are not kept.
    pub env_vars: BTreeMap<String, String>,
    /// The ordinary files below the directory, with their content. Links are not followed.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// `running` if a process runs in it, `suspended` if it is paused, else `idle`.
    pub process_state: String,
    /// When it was made.
    pub created_at: SystemTime,
    /// When it was paused last.
    pub paused_at: Option<SystemTime>,
    /// When it was resumed last.
    pub resumed_at: Option<SystemTime>,
    /// What it is doing.
    pub status: Status,
}

/// Hawk's document.
#[derive(Serialize)]
struct Document<'a> {
    id: &'a str,
    work_dir: &'a str,
    env_vars: &'a BTreeMap<String, String>,
    files: BTreeMap<&'a str, String>,
    process_state: &'a str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed_at: Option<String>,
    status: Status,
}

impl SandboxState {
    pub(super) fn new(state: WorkspaceState) -> Result<Self, SandboxManagerError> {
        let process_state = match state.status {
            Status::Paused => "suspended",
            Status::Running if state.is_alive() => "running",
            Status::Running | Status::Terminated => "idle",
        };
        Ok(Self {
            files: files::read(&state.dir)?,
            id: state.name.as_str().to_owned(),
            work_dir: state.dir,
            env_vars: state.env,
            process_state: process_state.to_owned(),
            created_at: time(state.created_ms),
            paused_at: state.paused_ms.map(time),
            resumed_at: state.resumed_ms.map(time),
            status: state.status,
        })
    }

    /// As Hawk writes it.
    pub(super) fn to_json(&self) -> Result<Vec<u8>, SandboxManagerError> {
        let text = |path: &'_ PathBuf| SandboxManagerError::NotText(path.clone());
        let files = self.files.iter().map(|(path, content)| {
            let name = path.to_str().ok_or_else(|| text(path))?;
            Ok((name, base64::encode(content)))
        });
        let document = Document {
            id: &self.id,
            work_dir: self.work_dir.to_str().ok_or_else(|| text(&self.work_dir))?,
            env_vars: &self.env_vars,
            files: files.collect::<Result<_, SandboxManagerError>>()?,
            process_state: &self.process_state,
            created_at: rfc3339(self.created_at),
            paused_at: self.paused_at.map(rfc3339),
            resumed_at: self.resumed_at.map(rfc3339),
            status: self.status,
        };
        serde_json::to_vec(&document).map_err(|error| SandboxManagerError::Io {
            act: "write the document",
            source: error.into(),
        })
    }
}

fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}

/// A time in UTC, as Go reads it from JSON. The civil date is counted from March of year 0 in eras
/// of 400 years, so that the leap day is the last day of a year.
fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::{rfc3339, time};

    #[test]
    fn times_are_written_as_go_reads_them() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(time(millis)), text);
        }
    }
}
