//! Traffic as it happens: a table on a terminal, lines elsewhere.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, SystemTime};

use stockade_proxy::{NetworkProxy, ProxyLogEntry};

use crate::failure::Failure;
use crate::output::{self, BAD, BOLD, DIM, Format, GOOD, SO_SO, printable};

/// How often one looks.
const PAUSE: Duration = Duration::from_millis(250);
/// How many requests the table has.
const ROWS: usize = 20;

/// SIGINT and SIGTERM, as something to wait for.
pub(super) struct End {
    #[cfg(target_os = "linux")]
    signals: stockade_linux::Signals,
}

#[cfg(target_os = "linux")]
impl End {
    pub(super) fn catch() -> Result<Self, Failure> {
        const INT: i32 = 2;
        const TERM: i32 = 15;
        let signals = stockade_linux::Signals::catch(&[INT, TERM])?;
        Ok(Self { signals })
    }

    pub(super) fn wait(&self) -> Result<(), Failure> {
        while !self.within(Duration::from_secs(3600))? {}
        Ok(())
    }

    /// Whether the end comes in this time.
    fn within(&self, time: Duration) -> Result<bool, Failure> {
        Ok(self.signals.next_within(time)?.is_some())
    }
}

#[cfg(not(target_os = "linux"))]
impl End {
    /// There the system's own handling ends the program.
    pub(super) fn catch() -> Result<Self, Failure> {
        Ok(Self {})
    }

    pub(super) fn wait(&self) -> Result<(), Failure> {
        while !self.within(Duration::from_secs(3600))? {}
        Ok(())
    }

    fn within(&self, time: Duration) -> Result<bool, Failure> {
        std::thread::sleep(time);
        Ok(false)
    }
}

pub(super) fn show(proxy: &NetworkProxy, end: &End, format: Format) -> Result<(), Failure> {
    let table = io::stdout().is_terminal() && format == Format::Text;
    let mut printed = Printed::default();
    loop {
        let over = end.within(PAUSE)?;
        let entries = proxy.get_log();
        if table {
            draw(proxy, &entries)?;
        } else {
            printed.print(&entries, format)?;
        }
        if over {
            return Ok(());
        }
    }
}

/// Which of the closed requests were printed already.
#[derive(Default)]
struct Printed(HashSet<(SystemTime, String, u16)>);

impl Printed {
    fn print(&mut self, entries: &[ProxyLogEntry], format: Format) -> Result<(), Failure> {
        let key = |entry: &ProxyLogEntry| (entry.timestamp, entry.host.clone(), entry.port);
        let closed = entries.iter().filter(|entry| !entry.open);
        let fresh: Vec<_> = closed
            .filter(|entry| !self.0.contains(&key(entry)))
            .collect();
        match format {
            Format::Json => {
                for entry in &fresh {
                    let mut line = serde_json::to_vec(entry).map_err(io::Error::from)?;
                    line.push(b'\n');
                    output::raw(&line)?;
                }
            }
            Format::Text => output::text(|out| fresh.iter().try_for_each(|entry| row(entry, out)))?,
        }
        // What has left the log can't come again.
        self.0 = entries
            .iter()
            .filter(|entry| !entry.open)
            .map(key)
            .collect();
        Ok(())
    }
}

fn draw(proxy: &NetworkProxy, entries: &[ProxyLogEntry]) -> Result<(), Failure> {
    let stats = proxy.get_stats();
    output::text(|out| {
        // From the upper left corner, over what was there.
        write!(out, "\x1b[H\x1b[J")?;
        let address = proxy.address().map(|address| address.to_string());
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}  {GOOD}{} allowed{GOOD:#}  {BAD}{} blocked{BAD:#}  {}  {} hosts  {} open",
            address.unwrap_or_default(),
            stats.allowed_requests,
            stats.blocked_requests,
            size(stats.total_bytes),
            stats.unique_hosts.len(),
            entries.iter().filter(|entry| entry.open).count(),
        )?;
        let skipped = entries.len().saturating_sub(ROWS);
        entries[skipped..]
            .iter()
            .try_for_each(|entry| row(entry, out))
    })
}

fn row(entry: &ProxyLogEntry, out: &mut dyn Write) -> io::Result<()> {
    let (style, word) = match (&entry.error, entry.allowed, entry.open) {
        (Some(_), ..) => (SO_SO, "failed"),
        (None, false, _) => (BAD, "blocked"),
        (None, true, true) => (GOOD, "open"),
        (None, true, false) => (GOOD, "done"),
    };
    let why = match (&entry.error, &entry.grant) {
        (Some(error), _) => error.clone(),
        (None, Some(grant)) => format!("{}; {grant}", entry.reason),
        (None, None) if entry.allowed => entry.rule.clone().unwrap_or_default(),
        (None, None) => entry.reason.clone(),
    };
    let place = format!("{}:{}", entry.host, entry.port);
    writeln!(
        out,
        "{style}{word:<8}{style:#} {:<8} {:<40} {:>9} {:>9}  {DIM}{}{DIM:#}",
        printable(&entry.method),
        printable(&place),
        size(entry.sent),
        size(entry.received),
        printable(&why)
    )
}

/// Bytes in a few letters.
#[expect(clippy::cast_precision_loss, reason = "a rounded figure for people")]
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(5 << 30), "5.0 GiB");
    }
}
