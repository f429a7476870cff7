//! Bytes from socket to socket without ever being in this process: `splice(2)` by way of a pipe.
//!
//! A pipe is borrowed while bytes are under way and given back when it is empty, so a tunnel in
//! which nothing moves costs two sockets and no buffer. What does not fit on the other side stays
//! in the pipe, and nothing more is read meanwhile: that is the back-pressure.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::pipe::{PipeFlags, SpliceFlags, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::ledger::Session;

/// As much as fits.
const AT_ONCE: usize = 1 << 20;
/// A pipe has a place for each page of its size, and a place takes a piece of a socket's memory of
/// up to eight pages: 16 of them, as a pipe has to begin with, make short steps.
const PIPE_SIZE: usize = 256 << 10;
/// How many empty pipes are kept.
const KEPT: usize = 64;
/// After so many pieces others get their turn.
const TURN: u32 = 64;

static POOL: Mutex<Vec<Pipe>> = Mutex::new(Vec::new());

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

pub(crate) async fn both_ways(
    session: &Session,
    client: TcpStream,
    server: TcpStream,
) -> io::Result<()> {
    let up = one_way(&client, &server, |bytes| session.sent(bytes));
    let down = one_way(&server, &client, |bytes| session.received(bytes));
    tokio::try_join!(up, down).map(|_| ())
}

/// Until `from` has ended; then `to` is told so.
async fn one_way(from: &TcpStream, to: &TcpStream, count: impl Fn(u64)) -> io::Result<()> {
    let mut turn = 0;
    loop {
        from.readable().await?;
        let pipe = Pipe::borrow()?;
        let taken = from.try_io(Interest::READABLE, || {
            step(splice(from, None, &pipe.write, None, AT_ONCE, FLAGS))
        });
        let mut left = match taken {
            Ok(0) => {
                pipe.give_back();
                // The other side may be gone already; then there is nobody to tell.
                let _ = rustix::net::shutdown(to, rustix::net::Shutdown::Write);
                return Ok(());
            }
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                pipe.give_back();
                continue;
            }
            Err(error) => return Err(error),
        };
        while left > 0 {
            let moved = to.try_io(Interest::WRITABLE, || {
                step(splice(&pipe.read, None, to, None, left, FLAGS))
            });
            match moved {
                Ok(moved) => {
                    left -= moved;
                    count(moved as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
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
