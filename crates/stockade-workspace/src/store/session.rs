//! Being in a store: reading objects while nobody can remove them.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Lock, Store};
use crate::error::Error;
use crate::id::ObjectId;
use crate::pack::{EXTENSION, Found, Pack};
use crate::tree::{self, Content, Extent, Tree};

/// A stay in the store. What is found in it stays until it ends.
#[derive(Debug)]
pub(crate) struct Session {
    store: Store,
    _lock: Lock,
    packs: OnceLock<Packs>,
    recent: Mutex<Recent>,
}

/// Those that can be read, and what is wrong with the others.
#[derive(Debug, Default)]
pub(crate) struct Packs {
    pub(crate) whole: Vec<Pack>,
    pub(crate) damaged: Vec<(PathBuf, Error)>,
}

/// Blocks that were read last: neighbours are usually wanted next.
#[derive(Debug, Default)]
struct Recent {
    blocks: VecDeque<(usize, u32, Arc<Vec<u8>>)>,
}

const RECENT_BLOCKS: usize = 6;

impl Session {
    pub(super) fn new(store: Store, lock: Lock) -> Self {
        Self {
            store,
            _lock: lock,
            packs: OnceLock::new(),
            recent: Mutex::default(),
        }
    }

    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    /// All packs. They are read when they are first asked for.
    pub(crate) fn packs(&self) -> Result<&Packs, Error> {
        if let Some(packs) = self.packs.get() {
            return Ok(packs);
        }
        let mut packs = Packs::default();
        for path in super::list(&self.store.packs())? {
            if path.extension().is_some_and(|end| end == EXTENSION) {
                match Pack::open(path.clone()) {
                    Ok(pack) => packs.whole.push(pack),
                    Err(error) => packs.damaged.push((path, error)),
                }
            }
        }
        Ok(self.packs.get_or_init(|| packs))
    }

    pub(crate) fn contains(&self, id: &ObjectId) -> Result<bool, Error> {
        Ok(self
            .packs()?
            .whole
            .iter()
            .any(|pack| pack.find(id).is_some()))
    }

    /// An object's content, checked against its identity.
    pub(crate) fn get(&self, id: &ObjectId) -> Result<Vec<u8>, Error> {
        let packs = self.packs()?;
        let mut complaint = None;
        for (number, pack) in packs.whole.iter().enumerate() {
            let Some(place) = pack.find(id) else { continue };
            match self.read(number, pack, place, id) {
                Ok(content) => return Ok(content),
                // Another pack may have it whole.
                Err(error) => complaint = complaint.or(Some(error)),
            }
        }
        // A pack that can't be read may have had it; that is the better complaint.
        Err(match (complaint, packs.damaged.first()) {
            (Some(error), _) => error,
            (None, Some((path, error))) => Error::damaged(path, error.to_string()),
            (None, None) => Error::Missing(*id),
        })
    }

    /// Whether the pack of this number has the object, as it should be.
    pub(crate) fn is_whole_in(&self, number: usize, id: &ObjectId) -> Result<bool, Error> {
        let pack = self.packs()?.whole.get(number);
        let place = pack.and_then(|pack| Some((pack, pack.find(id)?)));
        Ok(place.is_some_and(|(pack, place)| self.read(number, pack, place, id).is_ok()))
    }

    fn read(
        &self,
        number: usize,
        pack: &Pack,
        place: Found,
        id: &ObjectId,
    ) -> Result<Vec<u8>, Error> {
        let block = self.block(number, pack, place.block)?;
        let start = place.offset as usize;
        let content = block.get(start..start + place.length as usize);
        match content {
            Some(content) if ObjectId::of(content) == *id => Ok(content.to_vec()),
            _ => Err(Error::damaged(
                pack.path(),
                format!("the content of object {id} was changed"),
            )),
        }
    }

    fn block(&self, number: usize, pack: &Pack, block: u32) -> Result<Arc<Vec<u8>>, Error> {
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, content)) = recent()
            .blocks
            .iter()
            .find(|(in_pack, at, _)| *in_pack == number && *at == block)
        {
            return Ok(Arc::clone(content));
        }
        let content = Arc::new(pack.block(block)?);
        let mut recent = recent();
        if recent.blocks.len() >= RECENT_BLOCKS {
            recent.blocks.pop_front();
        }
        recent
            .blocks
            .push_back((number, block, Arc::clone(&content)));
        Ok(content)
    }

    /// A directory.
    pub(crate) fn tree(&self, id: &ObjectId) -> Result<Tree, Error> {
        tree::decode(&self.get(id)?).map_err(|_| self.malformed(id))
    }

    /// The pieces of a file.
    pub(crate) fn extents(&self, content: &Content) -> Result<Vec<Extent>, Error> {
        match content {
            Content::Inline(extents) => Ok(extents.clone()),
            Content::Listed(id) => {
                let bytes = self.get(id)?;
                let mut from = crate::codec::Reader::new(&bytes);
                tree::take_extents(&mut from).map_err(|_| self.malformed(id))
            }
        }
    }

    /// An object that is what it should be by its identity and still makes no sense.
    pub(crate) fn malformed(&self, id: &ObjectId) -> Error {
        Error::damaged(&self.store.packs(), format!("object {id} makes no sense"))
    }
}
