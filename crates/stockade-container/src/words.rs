//! What a container is said to enforce, and by what.

use stockade_engine::backend::foundation::{Hosts, Words};
use stockade_engine::network::Addresses;

/// The words for a container with this runtime: another than the engine's own is gVisor.
pub(crate) fn words(runtime: Option<&str>) -> Words {
    let is_guest = runtime.is_some();
    Words {
        files: "the container's mounts",
        devices: "a /dev of its own",
        processes: "pid namespace; a guard ends it with its launcher",
        privileges: "no capabilities, no_new_privs, no set-id modes",
        privileges_gap: Some(if is_guest {
            "a file with a set-id bit can be made, unless the engine starts runsc with --oci-seccomp"
        } else {
            // runc leaves out calls that its libseccomp has no name for.
            "an engine whose libseccomp does not know fchmodat2 (Linux 6.6) lets that call set \
             set-id bits"
        }),
        seccomp: if is_guest {
            "gVisor's kernel, which the host's filters"
        } else {
            "seccomp filter as the engine takes it"
        },
        seccomp_gap: Some(if is_guest {
            "the filter itself is not installed inside"
        } else {
            "rules that need an order (clone, unshare, personality, socket) are left to the \
             container's namespaces; process 1 inside is the engine's"
        }),
        network: "network namespace with a loopback only",
        // A socket of gVisor's own network can't be handed out.
        hosts: (!is_guest).then_some(HOSTS),
        ipc: "ipc namespace, hidden sockets",
        ipc_gap: (!is_guest).then_some(
            "Unix sockets of the host that lie in a readable directory can be connected to",
        ),
    }
}

/// How listed hosts are reached from inside.
const HOSTS: Hosts = Hosts {
    mechanism: "network namespace with a loopback only, on which the filtering proxy answers",
    addresses: Addresses::LOOPBACK,
    expose: false,
    opens_tls: true,
};
