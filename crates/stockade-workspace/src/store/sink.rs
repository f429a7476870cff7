//! Adding objects to a store, from several threads.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use super::Session;
use crate::error::{Error, Trying};
use crate::id::ObjectId;
use crate::pack::{Block, PackWriter};

/// Takes objects and writes those that the store does not have.
///
/// Nothing of it is part of the store before [`Sink::finish`]; dropped, it leaves nothing.
pub(crate) struct Sink<'s> {
    session: &'s Session,
    seen: Mutex<HashSet<ObjectId>>,
    open: Mutex<Open>,
    added: AtomicU64,
}

#[derive(Default)]
struct Open {
    pack: Option<PackWriter>,
    full: Vec<PackWriter>,
    /// How much of the open pack the disk has been told to write.
    synced: u64,
    syncing: Option<JoinHandle<()>>,
}

/// A pack of this length is closed.
const LONG: u64 = 128 * 1024 * 1024;
/// The disk is told to begin whenever there is this much more.
const SYNC_EVERY: u64 = 32 * 1024 * 1024;

impl<'s> Sink<'s> {
    pub(crate) fn new(session: &'s Session) -> Self {
        Self {
            session,
            seen: Mutex::default(),
            open: Mutex::default(),
            added: AtomicU64::new(0),
        }
    }

    /// Bytes of content that the store did not have.
    pub(crate) fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// Adds an object, unless it is there already. `block` is the calling thread's own.
    pub(crate) fn put(&self, block: &mut Block, content: &[u8]) -> Result<ObjectId, Error> {
        let id = ObjectId::of(content);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = seen.insert(id);
        drop(seen);
        if !is_new || self.session.contains(&id)? {
            return Ok(id);
        }
        self.copy(block, id, content)?;
        Ok(id)
    }

    /// Adds an object whether or not it is there.
    pub(crate) fn copy(
        &self,
        block: &mut Block,
        id: ObjectId,
        content: &[u8],
    ) -> Result<(), Error> {
        self.added
            .fetch_add(content.len() as u64, Ordering::Relaxed);
        if !block.has_room_for(content.len()) {
            self.flush(block)?;
        }
        block.push(id, content);
        if block.is_full() {
            self.flush(block)?;
        }
        Ok(())
    }

    /// Bytes of packs that were written so far.
    pub(crate) fn written(&self) -> u64 {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let packs = open.full.iter().chain(&open.pack);
        packs.map(PackWriter::len).sum()
    }

    /// Writes out what a thread has collected.
    pub(crate) fn flush(&self, block: &mut Block) -> Result<(), Error> {
        if block.is_empty() {
            return Ok(());
        }
        let packs = self.session.store().packs();
        block.compress().trying("compress content for", &packs)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pack = match open.pack.take() {
            Some(pack) => pack,
            None => PackWriter::new(&packs)?,
        };
        pack.append(block)?;
        if pack.len() >= LONG {
            open.full.push(pack);
            open.synced = 0;
        } else {
            if pack.len() - open.synced >= SYNC_EVERY {
                open.synced = pack.len();
                open.sync_in_background(&pack);
            }
            open.pack = Some(pack);
        }
        Ok(())
    }

    /// Makes everything part of the store, for good.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = std::mem::take(&mut *open);
        for pack in open.full.into_iter().chain(open.pack) {
            pack.finish()?;
        }
        Ok(())
    }
}

impl Open {
    /// Has the disk begin, so that less is left when everything must be there. Whether it worked
    /// is seen when the pack is finished.
    fn sync_in_background(&mut self, pack: &PackWriter) {
        if self
            .syncing
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            return;
        }
        if let Ok(file) = pack.duplicate() {
            let sync = move || {
                let _ = file.sync_data();
            };
            self.syncing = std::thread::Builder::new().spawn(sync).ok();
        }
    }
}
