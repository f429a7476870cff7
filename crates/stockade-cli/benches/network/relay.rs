//! The least that anything between a client and a host can do: `splice(2)` from one socket to the
//! other, a thread for each way, nothing looked at. What two hops cost here, whoever makes them.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// As in the proxy.
const PIPE_SIZE: usize = 1 << 20;
const WAITING: usize = 128 << 10;

/// Leads to a port of loopback; gives its own.
pub(crate) fn to(port: u16) -> u16 {
    let Ok(listener) = TcpListener::bind(("127.0.0.1", 0)) else {
        return 0;
    };
    let own = listener.local_addr().map_or(0, |address| address.port());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                return;
            };
            let pair = client
                .try_clone()
                .and_then(|c| Ok((c, server.try_clone()?)));
            if let Ok((client, server)) = pair {
                thread::spawn(move || pass(&client, &server));
            }
            thread::spawn(move || pass(&server, &client));
        }
    });
    own
}

/// Until one of them ends.
fn pass(from: &TcpStream, to: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(to, WAITING);
    let Ok((read, write)) = pipe_with(PipeFlags::CLOEXEC) else {
        return;
    };
    let _ = fcntl_setpipe_size(&write, PIPE_SIZE);
    while let Ok(taken @ 1..) = splice(from, None, &write, None, PIPE_SIZE, SpliceFlags::MOVE) {
        let mut left = taken;
        while left > 0 {
            match splice(&read, None, to, None, left, SpliceFlags::MOVE) {
                Ok(moved @ 1..) => left -= moved,
                _ => return,
            }
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
