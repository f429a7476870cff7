//! The command line that a process shows in `/proc`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

/// Overwrites the arguments of this process where the kernel shows them (proc(5), `cmdline`). They
/// must not be read again. `proc` has the pid namespace of this process.
pub(crate) fn overwrite(proc: &OwnedFd, title: &[u8]) -> io::Result<()> {
    let stat = read(proc, "self/stat")?;
    let Some((first, end)) = arguments(&stat) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let length = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
    let mut memory = vec![0; length.min(MAX_ARGUMENT_BYTES)];
    let shown = title.len().min(memory.len().saturating_sub(1));
    memory[..shown].copy_from_slice(&title[..shown]);
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let own = rustix::fs::openat(proc, "self/mem", flags, Mode::empty())?;
    let mut at = 0;
    while at < memory.len() {
        let place = first + u64::try_from(at).unwrap_or(0);
        match rustix::io::pwrite(&own, &memory[at..], place)? {
            0 => break,
            written => at += written,
        }
    }
    Ok(())
}

/// As many as the kernel takes in all by default: a quarter of a stack of 8 MiB.
const MAX_ARGUMENT_BYTES: usize = 2 << 20;

fn read(proc: &OwnedFd, name: &str) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(proc, name, flags, Mode::empty())?;
    let mut bytes = vec![0; 4096];
    let length = rustix::io::read(file.as_fd(), &mut bytes[..])?;
    bytes.truncate(length);
    Ok(bytes)
}

/// Where the arguments begin and end: fields 48 and 49, counted from behind the name, which may hold
/// anything.
fn arguments(stat: &[u8]) -> Option<(u64, u64)> {
    let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let text = std::str::from_utf8(&stat[behind..]).ok()?;
    let mut fields = text.split_ascii_whitespace().skip(48 - 3);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_counted_from_behind_the_name() {
        let fields: Vec<String> = (3..=52).map(|number| number.to_string()).collect();
        let stat = format!("1 (a) b) {}", fields.join(" "));
        assert_eq!(arguments(stat.as_bytes()), Some((48, 49)));
        assert_eq!(arguments(b"1 (x) 2"), None);
    }
}
