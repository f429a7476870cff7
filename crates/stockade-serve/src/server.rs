//! Reads requests and answers them.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::api;
use crate::command::{Command, MAX_INPUT_BYTES};
use crate::error::{Failure, Kind};
use crate::files::{MAX_FILE_BYTES, MAX_LIST_ENTRIES};
use crate::line::{Line, LineReader, MAX_LINE_BYTES};
use crate::message::{Incoming, parse};
use crate::methods::methods;
use crate::session::{CommandSpec, ServedSession};
use crate::wire::{Outbox, OutputNotifier};

const MAX_SESSIONS: usize = 64;
const MAX_COMMANDS: usize = 256;
const MAX_REQUESTS: usize = 64;

/// Serves one client until its side closes; then every session ends.
///
/// # Errors
/// If the client can't be read.
pub fn serve(input: impl BufRead, output: impl Write + Send + 'static) -> io::Result<()> {
    let server = Arc::new(Server {
        outbox: Outbox::new(output),
        state: Mutex::default(),
        requests: AtomicUsize::new(0),
    });
    let mut reader = LineReader::new(input);
    let outcome = loop {
        match reader.next_line() {
            Ok(Some(Line::Complete(line))) => server.take_line(line),
            Ok(Some(Line::TooLong)) => {
                let text = format!("the line is longer than {MAX_LINE_BYTES} bytes");
                let failure = Failure::new(Kind::Parse, text);
                server.outbox.answer(&Value::Null, &Err(failure));
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    server.close_all();
    outcome
}

struct Server {
    outbox: Outbox,
    state: Mutex<State>,
    requests: AtomicUsize,
}

#[derive(Default)]
struct State {
    is_initialized: bool,
    is_closing: bool,
    /// Sessions that are being opened.
    opening: usize,
    count: u64,
    sessions: HashMap<String, Arc<Served>>,
}

/// A session, and its commands that nobody has waited for.
struct Served {
    session: ServedSession,
    commands: Mutex<HashMap<String, Command>>,
}

/// What a request asks for.
macro_rules! request {
    ($($name:literal => $variant:ident: $params:ident -> $result:ident, $does:literal;)*) => {
        enum Request { $($variant(Box<api::$params>),)* }

        impl Request {
            fn read(method: &str, params: Value) -> Result<Self, Failure> {
                match method {
                    $($name => read(params).map(Box::new).map(Self::$variant),)*
                    _ => {
                        let text = format!("there is no method `{method}`");
                        Err(Failure::new(Kind::NoSuchMethod, text))
                    }
                }
            }
        }
    };
}
methods!(request);

/// Reads a line as the server does, without carrying the request out.
///
/// # Errors
/// If the line is no request, or its parameters are not those of the method.
pub fn check_line(line: &[u8]) -> Result<(), Failure> {
    let Incoming { method, params, .. } = parse(line).map_err(|bad| bad.failure)?;
    Request::read(&method, params).map(drop)
}

fn read<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, Failure> {
    serde_json::from_value(params)
        .map_err(|error| Failure::new(Kind::InvalidParams, format!("the parameters: {error}")))
}

/// Answers a request, whenever that is.
type Reply = Box<dyn FnOnce(Result<Value, Failure>) + Send>;

impl Server {
    fn take_line(self: &Arc<Self>, line: &[u8]) {
        let Incoming { id, method, params } = match parse(line) {
            Ok(message) => message,
            Err(bad) => return self.outbox.answer(&bad.id, &Err(bad.failure)),
        };
        let outbox = self.outbox.clone();
        let reply: Reply = Box::new(move |outcome| {
            if let Some(id) = &id {
                outbox.answer(id, &outcome);
            }
        });
        match Request::read(&method, params).and_then(|request| self.check_greeting(request)) {
            Ok(request) => self.carry_out(request, reply),
            Err(failure) => reply(Err(failure)),
        }
    }

    fn check_greeting(&self, request: Request) -> Result<Request, Failure> {
        if matches!(request, Request::Initialize(_)) || self.state().is_initialized {
            return Ok(request);
        }
        Err(Failure::new(
            Kind::NotInitialized,
            "the first request must be `initialize`",
        ))
    }

    /// Does at once what must keep its order and never waits; the rest goes to threads.
    fn carry_out(self: &Arc<Self>, request: Request, reply: Reply) {
        match request {
            Request::Initialize(params) => reply(self.initialize(&params).and_then(value)),
            Request::Stdin(params) => self.stdin(*params, reply),
            Request::Credit(params) => {
                let command = self.command(&params.session, &params.command);
                reply(
                    command
                        .map(|command| command.add_credit(params.bytes))
                        .and_then(done),
                );
            }
            Request::Resize(params) => {
                let command = self.command(&params.session, &params.command);
                reply(
                    command
                        .and_then(|command| command.resize(params.size))
                        .and_then(done),
                );
            }
            Request::Signal(params) => reply(self.signal(&params).and_then(done)),
            Request::Wait(params) => self.wait(*params, reply),
            slow => self.in_thread(slow, reply),
        }
    }

    fn in_thread(self: &Arc<Self>, request: Request, reply: Reply) {
        if self.requests.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            self.requests.fetch_sub(1, Ordering::Relaxed);
            let text = format!("{MAX_REQUESTS} requests are being worked on already");
            return reply(Err(Failure::new(Kind::LimitReached, text)));
        }
        let server = Arc::clone(self);
        let work = move || {
            let outcome = server.answer(request);
            server.requests.fetch_sub(1, Ordering::Relaxed);
            reply(outcome);
        };
        // Without a thread there is no answer, and nothing else can be done about it.
        let spawned = std::thread::Builder::new()
            .name("request".to_owned())
            .spawn(work);
        if spawned.is_err() {
            self.requests.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn answer(&self, request: Request) -> Result<Value, Failure> {
        match request {
            Request::Open(params) => self.open(*params).and_then(value),
            Request::Exec(params) => self.exec(*params).and_then(value),
            Request::ReadFile(params) => {
                let served = self.served(&params.session)?;
                let read = served
                    .session
                    .read_file(&params.path, params.offset, params.length);
                let (content, eof) = read?;
                value(api::FileContent {
                    data: api::Bytes::new(&content),
                    eof,
                })
            }
            Request::WriteFile(params) => {
                let served = self.served(&params.session)?;
                let content = bytes(params.data)?;
                let (append, parents) = (params.append, params.parents);
                served
                    .session
                    .write_file(&params.path, &content, append, parents, params.mode)?;
                done(())
            }
            Request::ListFiles(params) => value(
                self.served(&params.session)?
                    .session
                    .list_files(&params.path)?,
            ),
            Request::StatFile(params) => value(
                self.served(&params.session)?
                    .session
                    .stat_file(&params.path)?,
            ),
            Request::Diff(params) => {
                value(self.served(&params.session)?.session.diff(params.text)?)
            }
            Request::Commit(params) => {
                let served = self.served(&params.session)?;
                value(served.session.commit(&params.paths, params.conflicts)?)
            }
            Request::Discard(params) => done(self.served(&params.session)?.session.discard()?),
            Request::Snapshot(params) => {
                let served = self.served(&params.session)?;
                done(served.session.snapshot(&params.name)?)
            }
            Request::Restore(params) => {
                let served = self.served(&params.session)?;
                done(served.session.restore(&params.name)?)
            }
            Request::ListSnapshots(params) => {
                value(self.served(&params.session)?.session.snapshots()?)
            }
            Request::RemoveSnapshot(params) => {
                let served = self.served(&params.session)?;
                done(served.session.remove_snapshot(&params.name)?)
            }
            Request::Fork(params) => self.fork(&params).and_then(value),
            Request::Allow(params) => value(self.served(&params.session)?.session.allow(&params)?),
            Request::Report(params) => value(self.served(&params.session)?.session.report()?),
            Request::Close(params) => {
                let served = self.state().sessions.remove(&params.session);
                let served = served.ok_or_else(|| no_session(&params.session))?;
                value(served.session.close()?)
            }
            // Answered before, in their order.
            Request::Initialize(_)
            | Request::Stdin(_)
            | Request::Credit(_)
            | Request::Resize(_)
            | Request::Signal(_)
            | Request::Wait(_) => Err(Failure::new(Kind::Internal, "the request was lost")),
        }
    }

    fn initialize(&self, params: &api::Initialize) -> Result<api::Initialized, Failure> {
        if params.protocol != api::PROTOCOL {
            let text = format!(
                "the protocol has version {}, not {}",
                api::PROTOCOL,
                params.protocol
            );
            return Err(Failure::new(Kind::UnsupportedVersion, text));
        }
        self.state().is_initialized = true;
        Ok(api::Initialized {
            protocol: api::PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            limits: api::Limits {
                line_bytes: MAX_LINE_BYTES,
                sessions: MAX_SESSIONS,
                commands: MAX_COMMANDS,
                requests: MAX_REQUESTS,
                input_bytes: MAX_INPUT_BYTES,
                file_bytes: MAX_FILE_BYTES,
                list_entries: MAX_LIST_ENTRIES,
            },
        })
    }

    fn open(&self, params: api::Open) -> Result<api::Opened, Failure> {
        let (served, session) = self.add_session(|| ServedSession::open(params))?;
        let report = served.session.report()?;
        Ok(api::Opened {
            session,
            workspace: served.session.workspace()?,
            backend: report.backend,
            warnings: report.warnings,
        })
    }

    fn fork(&self, params: &api::SessionId) -> Result<api::Forked, Failure> {
        let source = self.served(&params.session)?;
        let mut overlay = String::new();
        let (_, session) = self.add_session(|| {
            let (session, name) = source.session.fork()?;
            overlay = name;
            Ok(session)
        })?;
        Ok(api::Forked { session, overlay })
    }

    /// Opens a session, if there is room for one, and gives it an id.
    fn add_session(
        &self,
        open: impl FnOnce() -> Result<ServedSession, Failure>,
    ) -> Result<(Arc<Served>, String), Failure> {
        let mut state = self.state();
        if state.sessions.len() + state.opening >= MAX_SESSIONS {
            let text = format!("{MAX_SESSIONS} sessions are open already; close one");
            return Err(Failure::new(Kind::LimitReached, text));
        }
        state.opening += 1;
        drop(state);
        let opened = open();
        let mut state = self.state();
        state.opening -= 1;
        let session = opened?;
        if state.is_closing {
            return Err(Failure::new(Kind::Ended, "the client is gone"));
        }
        state.count += 1;
        let id = format!("s{}", state.count);
        let served = Arc::new(Served {
            session,
            commands: Mutex::default(),
        });
        state.sessions.insert(id.clone(), Arc::clone(&served));
        Ok((served, id))
    }

    fn exec(&self, params: api::Exec) -> Result<api::Started, Failure> {
        let served = self.served(&params.session)?;
        let mut state = self.state();
        let sessions = state.sessions.values();
        let kept: usize = sessions.map(|served| served.commands().len()).sum();
        if kept >= MAX_COMMANDS {
            let text = format!("{MAX_COMMANDS} commands run or were not waited for; wait for one");
            return Err(Failure::new(Kind::LimitReached, text));
        }
        state.count += 1;
        let id = format!("c{}", state.count);
        drop(state);
        let sink = OutputNotifier {
            outbox: self.outbox.clone(),
            session: params.session,
            command: id.clone(),
        };
        let spec = CommandSpec {
            argv: params.argv,
            cwd: params.cwd,
            env: params.env.into_iter().collect(),
            timeout: params.timeout_ms.map(Duration::from_millis),
            terminal: params.terminal,
            stdin: params.stdin,
            credit: params.credit,
        };
        let command = served.session.start(&spec, Box::new(sink))?;
        served.commands().insert(id.clone(), command);
        Ok(api::Started { command: id })
    }

    fn stdin(&self, params: api::Stdin, reply: Reply) {
        let content = params.data.map_or_else(|| Ok(Vec::new()), bytes);
        let command = self.command(&params.session, &params.command);
        match content.and_then(|content| Ok((content, command?))) {
            Ok((content, command)) => {
                command.input(content, params.eof, |outcome| reply(outcome.and_then(done)));
            }
            Err(failure) => reply(Err(failure)),
        }
    }

    fn signal(&self, params: &api::Signal) -> Result<(), Failure> {
        let command = self.command(&params.session, &params.command)?;
        match params.signal {
            9 => command.kill(),
            signal @ 1..=64 => command.signal(signal),
            other => {
                let text = format!("there is no signal {other}");
                return Err(Failure::new(Kind::InvalidParams, text));
            }
        }
        Ok(())
    }

    /// Answers when the command has ended; then the server forgets it.
    fn wait(&self, params: api::CommandId, reply: Reply) {
        let found = self.served(&params.session).and_then(|served| {
            let command = self.command(&params.session, &params.command)?;
            Ok((served, command))
        });
        match found {
            Ok((served, command)) => command.on_end(move |ended| {
                served.commands().remove(&params.command);
                reply(ended.and_then(|finished| value(api::Waited::from(&*finished))));
            }),
            Err(failure) => reply(Err(failure)),
        }
    }

    fn served(&self, session: &str) -> Result<Arc<Served>, Failure> {
        let state = self.state();
        let served = state.sessions.get(session).cloned();
        served.ok_or_else(|| no_session(session))
    }

    fn command(&self, session: &str, command: &str) -> Result<Command, Failure> {
        let served = self.served(session)?;
        let found = served.commands().get(command).cloned();
        found.ok_or_else(|| {
            let text = format!("there is no command `{command}` in the session `{session}`");
            Failure::new(Kind::NoSuchCommand, text)
        })
    }

    fn close_all(&self) {
        let mut state = self.state();
        state.is_closing = true;
        let sessions = std::mem::take(&mut state.sessions);
        drop(state);
        for served in sessions.into_values() {
            // Whatever is left of it, this process ends now and nothing survives that.
            let _ = served.session.close();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Served {
    fn commands(&self) -> MutexGuard<'_, HashMap<String, Command>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_session(session: &str) -> Failure {
    Failure::new(
        Kind::NoSuchSession,
        format!("there is no session `{session}`"),
    )
}

fn bytes(data: api::Bytes) -> Result<Vec<u8>, Failure> {
    data.decode()
        .ok_or_else(|| Failure::new(Kind::InvalidParams, "`base64` is malformed"))
}

fn done((): ()) -> Result<Value, Failure> {
    value(api::Done {})
}

fn value(result: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(result)
        .map_err(|error| Failure::new(Kind::Internal, format!("the answer: {error}")))
}
