//! Shutdown of a sandbox's connections: no process inside is left to send or receive, so only what
//! is already buffered is passed on.

use tokio::sync::watch;

/// Triggers the shutdown, also when it is dropped.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Shutdown(watch::Sender<bool>);

/// Waits for the shutdown.
#[derive(Clone, Debug)]
pub(crate) struct ShutdownSignal(Option<watch::Receiver<bool>>);

#[cfg(target_os = "linux")]
impl Shutdown {
    pub(crate) fn new() -> (Self, ShutdownSignal) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), ShutdownSignal(Some(receiver)))
    }

    pub(crate) fn trigger(&self) {
        self.0.send_replace(true);
    }
}

impl ShutdownSignal {
    /// For a proxy that belongs to no sandbox.
    pub(crate) const NEVER: Self = Self(None);

    /// Whether the proxy belongs to a sandbox, which will end.
    pub(crate) fn is_armed(&self) -> bool {
        self.0.is_some()
    }

    /// Returns when the shutdown was triggered.
    pub(crate) async fn wait(&self) {
        match &self.0 {
            Some(receiver) => {
                // An error: the trigger was dropped.
                let _ = receiver.clone().wait_for(|ended| *ended).await;
            }
            None => std::future::pending().await,
        }
    }
}
