//! Sandboxes for agents over the Model Context Protocol: the server of `stockade mcp`.
//!
//! One session serves one client. The policy is that of whoever starts the server; a model can't
//! widen it, and a grant needs the user's consent, which the client asks for (elicitation).
#![cfg(target_os = "linux")]

mod advice;
mod background;
mod grants;
mod output;
mod tools;

use std::io;

use rmcp::ServiceExt;
use stockade_serve::{Failure, ServedSession, api};

pub use tools::Server;

/// Serves one client on standard input and output until it leaves; then the session ends.
///
/// `policy_flags` are the flags by which `stockade explain` knows the same policy.
///
/// # Errors
/// If the session can't be opened, or the client can't be served.
pub fn serve(params: api::Open, policy_flags: Vec<String>) -> Result<(), Failure> {
    let session = ServedSession::open(params)?;
    let server = Server::new(session, policy_flags);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome: Result<(), io::Error> = runtime.block_on(async {
        let service = server.clone().serve(rmcp::transport::stdio()).await;
        let service = service.map_err(io::Error::other)?;
        service.waiting().await.map_err(io::Error::other)?;
        Ok(())
    });
    // A thread that waits for standard input must not keep the session open.
    runtime.shutdown_background();
    server.close();
    Ok(outcome?)
}
