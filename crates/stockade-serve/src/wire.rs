//! The way to the client: one message a line, whole messages only.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;

use crate::api;
use crate::command::OutputSink;
use crate::error::Failure;
use crate::message::{Answer, Notification};

/// The way to the client. Whoever writes waits while the client does not read, and nobody else's
/// client does.
#[derive(Clone)]
pub(crate) struct Outbox(Arc<Mutex<dyn Write + Send>>);

impl Outbox {
    pub(crate) fn new(output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(output)))
    }

    pub(crate) fn answer(&self, id: &Value, outcome: &Result<Value, Failure>) {
        // A client that is gone closes its other side too, which ends the server.
        let _ = self.send(&Answer::new(id, outcome));
    }

    pub(crate) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(&line)?;
        output.flush()
    }
}

/// Sends the output of one command.
pub(crate) struct OutputNotifier {
    pub(crate) outbox: Outbox,
    pub(crate) session: String,
    pub(crate) command: String,
}

impl OutputSink for OutputNotifier {
    fn write(&mut self, stream: api::Stream, bytes: &[u8]) -> io::Result<()> {
        let params = api::Output {
            session: self.session.clone(),
            command: self.command.clone(),
            stream,
            data: api::Bytes::new(bytes),
        };
        self.outbox.send(&Notification::new("output", params))
    }
}
