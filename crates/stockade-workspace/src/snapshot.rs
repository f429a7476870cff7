//! Taking a snapshot.

use std::os::fd::AsFd;
use std::path::Path;

use crate::cache::Cache;
use crate::codec::{Reader, put_bytes};
use crate::error::{Error, Trying};
use crate::exclude::Excludes;
use crate::files;
use crate::id::{ObjectId, SnapshotId};
use crate::pack::Block;
use crate::progress::Progress;
use crate::state::{SCHEMA, WorkspaceState, now_ms};
use crate::store::{Session, Sink};
use crate::survey::{Survey, Surveyor};
use crate::tree::{self, Kind, Node};
use crate::workspace::{Held, Place, SnapshotRecord, to_hex, write_json};

/// Takes a snapshot of the workspace's directory.
///
/// The record is written last: until then nothing of it exists for anyone.
pub(crate) fn take(
    session: &Session,
    held: &mut Held,
    message: Option<String>,
    progress: &dyn Progress,
) -> Result<SnapshotRecord, Error> {
    let dir = held.state.dir.clone();
    let top = held.state.open_dir()?;
    let excludes = excludes(session, &held.state)?;
    let cache = usable_cache(&held.place);
    let parent = held.place.records()?.pop().map(|record| record.id);
    let sink = Sink::new(session);
    let surveyor = Surveyor {
        top: top.as_fd(),
        top_path: &dir,
        excludes: &excludes,
        xattrs: held.state.xattrs,
        cache: cache.as_ref(),
        sink: Some(&sink),
        progress,
    };
    let survey = surveyor.survey()?;
    let links = put_links(&sink, &survey, &dir)?;
    let record = record(&held.state, &survey, message, parent, links, sink.added());
    progress.begin("writing", None);
    sink.finish()?;
    files::make_private_dir(&held.place.snapshots_dir())?;
    write_json(&held.place.record_file(&record.id), &record)?;
    save_cache(&survey, &record.id, &held.place);
    held.save()?;
    Ok(record)
}

/// The workspace's cache, if the snapshot that it describes still exists.
pub(crate) fn usable_cache(place: &Place) -> Option<Cache> {
    let cache = Cache::load(&place.cache())?;
    place.record_file(&cache.snapshot).exists().then_some(cache)
}

/// A cache that can't be written costs time later, nothing else.
pub(crate) fn save_cache(survey: &Survey<'_>, id: &SnapshotId, place: &Place) {
    if survey.save_cache(id, &place.cache()).is_err() {
        let _ = std::fs::remove_file(place.cache());
    }
}

/// What is not part of the workspace; never the store itself.
pub(crate) fn excludes(session: &Session, state: &WorkspaceState) -> Result<Excludes, Error> {
    let store = files::open_top(session.store().path())?;
    let stat = files::stat_of(&store).trying("look at", session.store().path())?;
    Excludes::new(&state.excludes, vec![(stat.dev, stat.ino)])
}

fn record(
    state: &WorkspaceState,
    survey: &Survey<'_>,
    message: Option<String>,
    parent: Option<SnapshotId>,
    links: Option<ObjectId>,
    added: u64,
) -> SnapshotRecord {
    let mut root = Vec::new();
    survey.root.put(&mut root);
    let unstable = survey.unstable.iter();
    SnapshotRecord {
        schema: SCHEMA,
        id: SnapshotId::from_hash(survey.tree(0)),
        created_ms: now_ms(),
        message,
        parent,
        totals: survey.totals,
        added,
        xattrs: state.xattrs,
        excludes: state.excludes.clone(),
        tree: survey.tree(0),
        root: to_hex(&root),
        links,
        unstable: unstable.map(|path| path.display().to_string()).collect(),
    }
    .seal(&files::random_name())
}

fn put_links(sink: &Sink<'_>, survey: &Survey<'_>, dir: &Path) -> Result<Option<ObjectId>, Error> {
    if survey.links.is_empty() {
        return Ok(None);
    }
    let mut block = Block::new().trying("compress content of", dir)?;
    let id = sink.put(&mut block, &encode_links(&survey.links))?;
    sink.flush(&mut block)?;
    Ok(Some(id))
}

pub(crate) fn encode_links(links: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, first) in links {
        put_bytes(&mut bytes, path);
        put_bytes(&mut bytes, first);
    }
    bytes
}

/// Second names of files, and their first.
pub(crate) type Links = Vec<(Vec<u8>, Vec<u8>)>;

/// Those of a snapshot.
pub(crate) fn links(session: &Session, record: &SnapshotRecord) -> Result<Links, Error> {
    let Some(id) = &record.links else {
        return Ok(Vec::new());
    };
    let bytes = session.get(id)?;
    let mut from = Reader::new(&bytes);
    let mut links = Vec::new();
    while !from.is_empty() {
        let pair = from.bytes().and_then(|path| Ok((path, from.bytes()?)));
        let (path, first) = pair.map_err(|_| session.malformed(id))?;
        if !tree::is_plain_path(path) || !tree::is_plain_path(first) {
            return Err(session.malformed(id));
        }
        links.push((path.to_vec(), first.to_vec()));
    }
    Ok(links)
}

/// Finds a file of a snapshot by its path.
pub(crate) fn find(
    session: &Session,
    record: &SnapshotRecord,
    path: &[u8],
) -> Result<Option<Node>, Error> {
    let mut node = record.root_node()?;
    for name in path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
    {
        let Kind::Directory(id) = &node.kind else {
            return Ok(None);
        };
        let mut tree = session.tree(id)?;
        let Ok(at) = tree.binary_search_by(|(other, _)| other[..].cmp(name)) else {
            return Ok(None);
        };
        node = tree.swap_remove(at).1;
    }
    Ok(Some(node))
}
