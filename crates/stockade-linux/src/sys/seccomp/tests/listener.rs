//! The listener against the real kernel: one thread under a filter, the test as its mediator.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::*;
use crate::seccomp::{Mediation, UnixDatagrams};

/// A place that does not exist, so that only a mediator can make an open succeed.
const NOWHERE: &str = "/nonexistent/of/stockade";

#[test]
fn an_open_is_answered_with_a_descriptor() {
    let (listener, work) = mediated(Mediation::default(), || {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(NOWHERE)
            .unwrap();
        file.write_all(b"through the mediator").unwrap();
    });
    let mut target = memory_file();
    let notification = listener.receive().unwrap();
    assert_eq!(
        Arch::native().unwrap().name(notification.call.number),
        Some("openat")
    );
    assert_ne!(notification.thread, 0);
    assert!(listener.is_valid(notification.id).unwrap());
    listener
        .answer_fd(notification.id, target.as_fd(), Inherit::CloseOnExec)
        .unwrap();
    work.join().unwrap();
    assert!(!listener.is_valid(notification.id).unwrap());
    let mut text = String::new();
    target.rewind().unwrap();
    target.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through the mediator");
}

#[test]
fn a_name_is_refused_or_answered_and_reading_asks_nobody() {
    let (listener, work) = mediated(Mediation::default(), || {
        // Opens that only read never reach the listener: it would not answer them here.
        drop(File::open("/proc/self/status").unwrap());
        let refused = fs::create_dir(NOWHERE).unwrap_err().raw_os_error();
        let faked = fs::remove_file(NOWHERE).is_ok();
        // Not this thread's to decide: refused by the profile before any mediator.
        let mount = attempt("mount", [0; 3]);
        (refused, faked, mount)
    });
    for (name, errno) in [("mkdir", Some(libc::EROFS)), ("unlink", None)] {
        let notification = listener.receive().unwrap();
        let called = Arch::native()
            .unwrap()
            .name(notification.call.number)
            .unwrap();
        assert!(called.starts_with(name), "{called}");
        match errno {
            Some(errno) => listener.refuse(notification.id, errno).unwrap(),
            None => listener.answer(notification.id, 0).unwrap(),
        }
    }
    assert_eq!(
        work.join().unwrap(),
        (Some(libc::EROFS), true, i64::from(-libc::EPERM))
    );
}

#[test]
fn a_call_fails_when_the_mediator_is_gone() {
    let (listener, work) = mediated(Mediation::default(), || {
        fs::create_dir(NOWHERE).unwrap_err().raw_os_error()
    });
    drop(listener);
    assert_eq!(work.join().unwrap(), Some(libc::ENOSYS));
}

#[test]
fn there_is_one_listener() {
    let (listener, work) = mediated(Mediation::default(), || {
        // The filter says so first; the kernel would.
        attempt("seccomp", [1, 8, 0])
    });
    assert_eq!(work.join().unwrap(), i64::from(-libc::EBUSY));
    drop(listener);
}

/// What a mediated call costs. Run with `--ignored --nocapture`, on an idle machine.
#[test]
#[ignore = "a measurement, not a check"]
fn cost_of_a_round_trip() {
    const ROUNDS: u32 = 20_000;
    for mediate in [UnixDatagrams::Allow, UnixDatagrams::Mediate] {
        for wake in [false, true] {
            let options = ProfileOptions {
                unix_datagrams: mediate,
                mediation: Some(Mediation::default()),
                ..ProfileOptions::native()
            };
            let (listener, work) = filtered(&options, || {
                let (left, right) = std::os::unix::net::UnixStream::pair().unwrap();
                let mut bytes = [0; 1];
                let start = Instant::now();
                for _ in 0..ROUNDS {
                    rustix::net::sendmsg(
                        &left,
                        &[io::IoSlice::new(b"x")],
                        &mut rustix::net::SendAncillaryBuffer::default(),
                        rustix::net::SendFlags::empty(),
                    )
                    .unwrap();
                    (&right).read_exact(&mut bytes).unwrap();
                }
                start.elapsed()
            });
            if wake {
                listener.wake_synchronously().unwrap();
            }
            let mut answered = 0;
            if mediate == UnixDatagrams::Mediate {
                for _ in 0..ROUNDS {
                    let notification = listener.receive().unwrap();
                    // Only to measure: nothing is decided here.
                    listener.danger_continue(notification.id).unwrap();
                    answered += 1;
                }
            }
            let each = work.join().unwrap() / ROUNDS;
            println!("sendmsg + read, {mediate:?}, sync {wake}: {each:?} ({answered} answered)");
            assert!(each < Duration::from_millis(10));
        }
    }
}

fn mediated<T: Send + 'static>(
    mediation: Mediation,
    work: impl FnOnce() -> T + Send + 'static,
) -> (Listener, JoinHandle<T>) {
    filtered(
        &ProfileOptions {
            mediation: Some(mediation),
            ..ProfileOptions::native()
        },
        work,
    )
}

/// Runs `work` on a new thread, which alone is under the filter.
fn filtered<T: Send + 'static>(
    options: &ProfileOptions,
    work: impl FnOnce() -> T + Send + 'static,
) -> (Listener, JoinHandle<T>) {
    let program = compile(&options.filter(Arch::native().unwrap()).unwrap()).unwrap();
    let (give, take) = mpsc::channel();
    let worker = thread::spawn(move || {
        rustix::thread::set_no_new_privs(true).unwrap();
        let flags = InstallFlags::LISTENER | InstallFlags::WAIT_KILLABLE;
        let fd = install(&program, flags).unwrap().unwrap();
        give.send(fd).unwrap();
        work()
    });
    (Listener::new(take.recv().unwrap()).unwrap(), worker)
}

fn memory_file() -> File {
    let fd = rustix::fs::memfd_create("mediated", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    File::from(fd)
}
