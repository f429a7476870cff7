//! Bytes from socket to socket without ever being in this process: `splice(2)` by way of a pipe.
//!
//! A pipe is borrowed while bytes are under way and given back when it is empty, so a tunnel in
//! which nothing moves costs two sockets and no buffer. What does not fit on the other side stays
//! in the pipe, and nothing more is read meanwhile: that is the back-pressure.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::pipe::{PipeFlags, SpliceFlags, splice};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// As much as fits.
const AT_ONCE: usize = 1 << 20;
/// A pipe has a place for each page of its size, and a place takes a piece of a socket's memory of
/// up to eight pages: 16 of them, as a pipe has to begin with, make short steps. This is what
/// anybody may have (`pipe-max-size`, pipe(7)).
const PIPE_SIZE: usize = 1 << 20;
/// What waits in a connection that does not leave the machine; see [`keep_short`].
const WAITING: usize = 128 << 10;
/// How many empty pipes are kept.
const KEPT: usize = 64;
/// After so many pieces others get their turn.
const TURN: u32 = 64;

static POOL: Mutex<Vec<Pipe>> = Mutex::new(Vec::new());

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// Until `from` has ended; then `to` is told so.
pub(crate) async fn one_way(
    from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    count: impl Fn(u64),
) -> io::Result<()> {
    let mut turn = 0;
    let source = from.as_ref();
    loop {
        source.readable().await?;
        let pipe = Pipe::borrow()?;
        let taken = source.try_io(Interest::READABLE, || {
            step(splice(source, None, &pipe.write, None, AT_ONCE, FLAGS))
        });
        let mut left = match taken {
            Ok(0) => {
                pipe.give_back();
                // The other side may be gone already; then there is nobody to tell.
                let _ = to.shutdown().await;
                return Ok(());
            }
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                pipe.give_back();
                continue;
            }
            Err(error) => return Err(error),
        };
        let sink = to.as_ref();
        while left > 0 {
            let moved = sink.try_io(Interest::WRITABLE, || {
                step(splice(&pipe.read, None, sink, None, left, FLAGS))
            });
            match moved {
                Ok(moved) => {
                    left -= moved;
                    count(moved as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sink.writable().await?,
                Err(error) => return Err(error),
            }
        }
        pipe.give_back();
        turn += 1;
        if turn % TURN == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// Lets few bytes wait on their way to somebody on this machine.
///
/// Left to itself the kernel lets megabytes wait there, because a network far away needs them. Over
/// loopback they are only pushed out of the processor's cache before anybody has read them: with a
/// short queue one connection moves up to twice as many bytes (`bench network`).
pub(crate) fn keep_short(to: &TcpStream) {
    // A wish: as it is, it works too.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(to, WAITING);
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

fn step(result: rustix::io::Result<usize>) -> io::Result<usize> {
    result.map_err(io::Error::from)
}

impl Pipe {
    fn borrow() -> io::Result<Self> {
        let kept = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(pipe) = kept {
            return Ok(pipe);
        }
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Beyond `pipe-user-pages-soft` (pipe(7)) it stays as it is, and steps are shorter.
        let _ = rustix::pipe::fcntl_setpipe_size(&write, PIPE_SIZE);
        Ok(Self { read, write })
    }

    /// Only when it is empty; one that is not is dropped, and its bytes with it.
    fn give_back(self) {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < KEPT {
            pool.push(self);
        }
    }
}
