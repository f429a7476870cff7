//! Freeing what no snapshot needs. Done alone in the store: whoever adds content counts on what
//! is there.

use std::collections::{HashMap, HashSet};
use std::fs;

use serde::Serialize;

use crate::error::{Error, Trying};
use crate::files;
use crate::id::ObjectId;
use crate::mark::mark;
use crate::pack::{Block, Pack};
use crate::store::{Session, Sink, Store};
use crate::workspace::Place;

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GcReport {
    /// Objects that some snapshot needs.
    pub live: u64,
    /// Objects that none needed.
    pub dead: u64,
    /// Bytes of packs before.
    pub before: u64,
    /// Bytes of packs after.
    pub after: u64,
    /// Things that interrupted work had left.
    pub left_behind: u64,
}

/// A pack is written anew if less than this share of its objects, in percent, is needed.
const WORTH_KEEPING: usize = 70;
/// Packs below this length are put together if there are many.
const SHORT: u64 = 16 * 1024 * 1024;
const MANY: usize = 8;

pub(crate) fn collect(store: &Store) -> Result<GcReport, Error> {
    let session = store.enter_alone()?;
    let mut report = GcReport::default();
    for path in store.left_behind()? {
        if path.is_dir() {
            files::remove_tree_of_others(&path)?;
        } else {
            files::remove_file(&path)?;
        }
        report.left_behind += 1;
    }
    let live = live_objects(&session)?;
    let packs = session.packs()?;
    if let Some((path, error)) = packs.damaged.first() {
        // Whatever is in it can't be judged.
        return Err(Error::damaged(path, error.to_string()));
    }
    for id in &live {
        if !session.contains(id)? {
            return Err(Error::Missing(*id));
        }
    }
    let short = packs.whole.iter().filter(|pack| pack.len() < SHORT).count();
    let sink = Sink::new(&session);
    let mut block = Block::new().trying("compress content for", store.packs())?;
    let mut kept = HashMap::new();
    let mut replaced = Vec::new();
    for (number, pack) in packs.whole.iter().enumerate() {
        report.before += pack.len();
        let mut total = 0;
        // What another pack has already is not needed twice, if it is whole there.
        let mut wanted = Vec::new();
        for (id, _) in pack.objects() {
            total += 1;
            let is_kept = match kept.get(&id) {
                Some(earlier) => session.is_whole_in(*earlier, &id)?,
                None => false,
            };
            if live.contains(&id) && !is_kept {
                wanted.push(id);
            }
        }
        report.live += wanted.len() as u64;
        report.dead += (total - wanted.len()) as u64;
        let scattered = pack.len() < SHORT && short > MANY;
        if wanted.len() * 100 < total * WORTH_KEEPING || scattered {
            copy(pack, &wanted, &sink, &mut block)?;
            replaced.push(pack.path().to_owned());
        } else {
            report.after += pack.len();
        }
        kept.extend(wanted.into_iter().map(|id| (id, number)));
    }
    sink.flush(&mut block)?;
    report.after += sink.written();
    sink.finish()?;
    // Only now: everything in them that is needed is in others.
    for path in &replaced {
        fs::remove_file(path).trying("remove", path)?;
    }
    if let Some(path) = replaced.first() {
        files::sync_parent(path)?;
    }
    Ok(report)
}

/// All that any snapshot needs. If one can't be read nothing is freed.
fn live_objects(session: &Session) -> Result<HashSet<ObjectId>, Error> {
    let mut live = HashSet::new();
    for name in session.store().names()? {
        let place = match Place::find(session, &name) {
            Err(Error::NoWorkspace(_)) => continue,
            place => place?,
        };
        for record in place.records()? {
            let mut problems = Vec::new();
            mark(session, &record, &mut live, &mut problems);
            if let Some(problem) = problems.pop() {
                return Err(problem);
            }
        }
    }
    Ok(live)
}

fn copy(pack: &Pack, wanted: &[ObjectId], sink: &Sink<'_>, block: &mut Block) -> Result<(), Error> {
    let wanted: HashSet<&ObjectId> = wanted.iter().collect();
    let mut places: Vec<_> = pack
        .objects()
        .filter(|(id, _)| wanted.contains(id))
        .collect();
    places.sort_unstable_by_key(|(_, place)| (place.block, place.offset));
    let mut open: Option<(u32, Vec<u8>)> = None;
    for (id, place) in places {
        if open
            .as_ref()
            .is_none_or(|(number, _)| *number != place.block)
        {
            open = Some((place.block, pack.block(place.block)?));
        }
        let Some((_, raw)) = &open else { continue };
        let start = place.offset as usize;
        match raw.get(start..start + place.length as usize) {
            Some(content) if ObjectId::of(content) == id => sink.copy(block, id, content)?,
            _ => {
                let reason = format!("the content of object {id} was changed");
                return Err(Error::damaged(pack.path(), reason));
            }
        }
    }
    Ok(())
}
