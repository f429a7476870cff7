//! Every method: its name, its parameters and its result, in one table that the dispatch and the
//! schema are both made from.

/// Calls `$then!` with `name => variant: parameters -> result, what it does;` for each method.
macro_rules! methods {
    ($then:ident) => {
        $then! {
            "initialize" => Initialize: Initialize -> Initialized, "Agree on the version; the first request";
            "open" => Open: Open -> Opened, "Open a session";
            "exec" => Exec: Exec -> Started, "Start a command";
            "stdin" => Stdin: Stdin -> Done, "Write to a command's input";
            "credit" => Credit: Credit -> Done, "Let a command send more output";
            "resize" => Resize: Resize -> Done, "Change the size of a command's terminal";
            "signal" => Signal: Signal -> Done, "Send a signal to a command";
            "wait" => Wait: CommandId -> Waited, "Wait until a command has ended";
            "files.read" => ReadFile: ReadFile -> FileContent, "Read a file as the sandbox sees it";
            "files.write" => WriteFile: WriteFile -> Done, "Write a file as a command would";
            "files.list" => ListFiles: FilePath -> FileList, "List a directory";
            "files.stat" => StatFile: FilePath -> FileStat, "Describe a file";
            "diff" => Diff: Diff -> Changes, "Show what commands changed in the overlay";
            "commit" => Commit: Commit -> Committed, "Apply changes to the workspace";
            "discard" => Discard: SessionId -> Done, "Drop the changes";
            "snapshot" => Snapshot: SnapshotId -> Done, "Keep what the overlay has now under a name";
            "restore" => Restore: SnapshotId -> Done, "Return the overlay to a snapshot";
            "snapshots.list" => ListSnapshots: SessionId -> SnapshotList, "List the overlay's snapshots";
            "snapshots.remove" => RemoveSnapshot: SnapshotId -> Done, "Remove a snapshot of the overlay";
            "fork" => Fork: SessionId -> Forked, "Open a session over a copy of the overlay";
            "allow" => Allow: Allow -> Allowed, "Add grants to a session";
            "report" => Report: SessionId -> Report, "Show what the session enforces";
            "close" => Close: SessionId -> Closed, "End a session and everything in it";
        }
    };
}

pub(crate) use methods;
