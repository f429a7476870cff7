//! Checking everything in a store: every byte of content, every snapshot, every state.

use std::collections::HashSet;

use serde::Serialize;

use crate::error::Error;
use crate::id::ObjectId;
use crate::mark::mark;
use crate::overlay;
use crate::pack::Pack;
use crate::progress::Progress;
use crate::store::{Session, Store};
use crate::workspace::{Place, read_record};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FsckReport {
    /// Workspaces that were checked.
    pub workspaces: u64,
    /// Snapshots that were checked.
    pub snapshots: u64,
    /// Objects whose content was checked.
    pub objects: u64,
    /// Restores that were interrupted; whoever uses the workspace next will finish them.
    pub interrupted: u64,
    /// What is wrong.
    pub problems: Vec<String>,
}

impl FsckReport {
    /// Whether all is well.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

pub(crate) fn check(store: &Store, progress: &dyn Progress) -> Result<FsckReport, Error> {
    let session = store.enter()?;
    let mut report = FsckReport::default();
    let packs = session.packs()?;
    let bytes = packs.whole.iter().map(Pack::len).sum();
    progress.begin("checking", Some(bytes));
    for (_, error) in &packs.damaged {
        report.problems.push(tell(error));
    }
    let mut present = HashSet::new();
    for pack in &packs.whole {
        check_pack(pack, &mut report, &mut present);
        progress.advance(pack.len());
    }
    for name in store.names()? {
        let Ok(place) = Place::find(&session, &name) else {
            continue;
        };
        check_workspace(&session, &place, &present, &mut report);
    }
    Ok(report)
}

fn check_pack(pack: &Pack, report: &mut FsckReport, present: &mut HashSet<ObjectId>) {
    let mut places: Vec<_> = pack.objects().collect();
    places.sort_unstable_by_key(|(_, place)| (place.block, place.offset));
    let mut open: Option<(u32, Vec<u8>)> = None;
    for (id, place) in places {
        report.objects += 1;
        if open
            .as_ref()
            .is_none_or(|(number, _)| *number != place.block)
        {
            let raw = pack.block(place.block).unwrap_or_else(|error| {
                report.problems.push(tell(&error));
                Vec::new()
            });
            open = Some((place.block, raw));
        }
        let Some((_, raw)) = &open else { continue };
        let start = place.offset as usize;
        let content = raw.get(start..start + place.length as usize);
        if content.is_some_and(|content| ObjectId::of(content) == id) {
            present.insert(id);
        } else if !raw.is_empty() {
            let reason = format!("the content of object {id} was changed");
            report
                .problems
                .push(tell(&Error::damaged(pack.path(), reason)));
        }
    }
}

fn check_workspace(
    session: &Session,
    place: &Place,
    present: &HashSet<ObjectId>,
    report: &mut FsckReport,
) {
    report.workspaces += 1;
    report.interrupted += u64::from(place.journal().exists());
    for checked in [place.state().map(drop), overlay::check(place)] {
        if let Err(error) = checked {
            report.problems.push(tell(&error));
        }
    }
    let paths = match place.record_files() {
        Ok(paths) => paths,
        Err(error) => return report.problems.push(tell(&error)),
    };
    for path in paths {
        let record = match read_record(&path) {
            Ok(record) => record,
            Err(error) => {
                report.problems.push(tell(&error));
                continue;
            }
        };
        report.snapshots += 1;
        let mut live = HashSet::new();
        let mut problems = Vec::new();
        mark(session, &record, &mut live, &mut problems);
        let missing = live.difference(present).count();
        let told = |text: String| format!("{}: snapshot {}: {text}", place.name, record.id);
        let problems = problems.iter().map(|error| told(tell(error)));
        report.problems.extend(problems);
        if missing > 0 {
            let text = told(format!("{missing} objects are missing or damaged"));
            report.problems.push(text);
        }
    }
}

/// An error with its reason.
fn tell(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(reason) => format!("{error}: {reason}"),
        None => error.to_string(),
    }
}
