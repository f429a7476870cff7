//! The end of a sandbox, as its connections learn of it: nobody inside is left to say anything more
//! or to hear an answer, so what was said already is passed on, and that is all.

use tokio::sync::watch;

/// Says that the end has come. Being dropped says the same.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct End(watch::Sender<bool>);

/// Waits for it.
#[derive(Clone, Debug)]
pub(crate) struct Ending(Option<watch::Receiver<bool>>);

#[cfg(target_os = "linux")]
impl End {
    pub(crate) fn new() -> (Self, Ending) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Ending(Some(receiver)))
    }

    pub(crate) fn say(&self) {
        self.0.send_replace(true);
    }
}

impl Ending {
    /// For a proxy that belongs to no sandbox.
    pub(crate) const NEVER: Self = Self(None);

    /// Whether there is a sandbox that will end.
    pub(crate) fn is_foreseen(&self) -> bool {
        self.0.is_some()
    }

    /// Returns when the end has come.
    pub(crate) async fn come(&self) {
        match &self.0 {
            Some(receiver) => {
                // An error says that nobody is left to say it.
                let _ = receiver.clone().wait_for(|ended| *ended).await;
            }
            None => std::future::pending().await,
        }
    }
}
