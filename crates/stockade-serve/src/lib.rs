//! Sandboxes over JSON-RPC 2.0, one message a line: the protocol of `stockade serve --stdio`.
//!
//! One client owns the server: [`serve`] returns when the client's side closes, and every session
//! ends then. `docs/protocol.md` describes the messages; [`schema`] is made from the types in
//! [`api`].
#![cfg(target_os = "linux")]

pub mod api;
mod bytes;
mod changes;
mod command;
mod convert;
mod error;
pub mod files;
mod line;
mod message;
mod methods;
mod model_terminal;
mod open;
mod schema;
mod server;
mod session;
mod wire;

pub use command::{Command, Control, Ended, OutputSink};
pub use error::{Details, Failure, Kind};
pub use line::{Line, LineReader, MAX_LINE_BYTES};
pub use message::{Incoming, Malformed, parse};
pub use open::builder;
pub use schema::schema;
pub use server::{check_line, serve};
pub use session::{CommandSpec, ServedSession};
