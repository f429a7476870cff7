//! Where the entry of a container hands over the sockets of its network: the launcher's side of
//! what `helper/entry.rs` does inside.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::control::{Report, Request};
use crate::helper;
use crate::plan::Network;
use crate::spawn::SpawnError;

/// The entry does nothing but make a few sockets.
const ENTRY_TIMEOUT: Duration = Duration::from_secs(30);

/// A socket that the entry of one container comes to.
#[derive(Debug)]
pub struct Door(OwnedFd);

impl Door {
    /// Makes it as `name` in a directory that must be the caller's alone: whoever is led there
    /// may come, regardless of the container's uid mapping.
    ///
    /// # Errors
    /// If the directory is not there or the name is taken.
    pub fn make(directory: &Path, name: &str) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let door =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
        // The name of a socket is at most 107 bytes long (unix(7)), that of a directory not.
        let short = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
        rustix::net::bind(&door, &SocketAddrUnix::new(short)?)?;
        rustix::fs::chmodat(
            &directory,
            name,
            Mode::from_raw_mode(0o666),
            AtFlags::empty(),
        )?;
        rustix::net::listen(&door, 1)?;
        Ok(Self(door))
    }

    /// What a container begins with in front of its command, behind the helper's own path; `line`
    /// is where the door's socket is seen inside.
    pub fn arguments(line: &str, network: &Network) -> io::Result<[String; 3]> {
        let network = serde_json::to_string(network)?;
        Ok([helper::ENTRY_MARKER.to_owned(), line.to_owned(), network])
    }

    /// What is to be waited at; whoever comes is to be shown to [`Door::meet`]. It accepts packets,
    /// which `accept(2)` does not mind.
    ///
    /// # Errors
    /// If there are too many descriptors.
    pub fn listener(&self) -> io::Result<UnixListener> {
        Ok(self.0.try_clone()?.into())
    }

    /// Hears the entry, which came on this `line`. `attach` gets the sockets before the command
    /// runs. Returns when the command was executed.
    ///
    /// # Errors
    /// If anything failed; then nothing of the command has run.
    pub fn meet(
        self,
        line: &OwnedFd,
        network: &Network,
        attach: &mut dyn FnMut(Vec<OwnedFd>) -> io::Result<()>,
    ) -> Result<(), SpawnError> {
        let channels = |error: rustix::io::Errno| SpawnError::Channels(error.into());
        rustix::io::ioctl_fionbio(line, false).map_err(channels)?;
        sockopt::set_socket_timeout(line, sockopt::Timeout::Recv, Some(ENTRY_TIMEOUT))
            .map_err(channels)?;
        // Nobody else may come.
        drop(self);
        let mut sockets = Vec::new();
        let mut proceeds = false;
        loop {
            match Report::receive(line.as_fd()).map_err(SpawnError::Channels)? {
                Some(Report::Sockets(some)) => sockets.extend(some),
                Some(Report::Failed(failure)) => return Err(failure.into()),
                Some(_) => {}
                None if proceeds => return Ok(()),
                None => return Err(SpawnError::Lost),
            }
            if sockets.len() == network.count() && !proceeds {
                attach(std::mem::take(&mut sockets)).map_err(SpawnError::Network)?;
                let proceed = Request::Proceed.send(line.as_fd());
                proceed.map_err(SpawnError::Channels)?;
                proceeds = true;
            }
        }
    }
}
