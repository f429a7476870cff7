//! The proxy of one sandbox: it answers on sockets that were made in the sandbox's own network, so
//! nobody else can reach it and nothing inside can go around it.
//!
//! A client inside that knows of no proxy asks the resolver for a name, gets an address that
//! stands for it, connects, and meets the proxy, which knows by the address what was meant.

mod drain;
mod forward;
mod names;
mod stub;
mod transparent;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use stockade_engine::network::{
    ClientSocket, CommandId, NetworkGuard, NetworkOrder, NetworkRecord, NetworkService,
    NetworkSession, OwnerLookup, SocketRole,
};
use stockade_policy::host::{Egress, EgressMode, NetworkRules};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use self::forward::Connector;
use self::names::Names;
use crate::attribution::{Attribution, ClientAddress};
use crate::config::ProxyLimits;
use crate::gate::{CurrentEgress, Gate};
use crate::ledger::{Ledger, Traffic};
use crate::log_file;
use crate::memory;
use crate::proxy::event_loop;
use crate::server;
use crate::shutdown::Shutdown;
use crate::tls::Inspector;
use crate::upstream::Upstream;

/// Filters the network of sandboxes by name: the [`NetworkService`] that the command line and the library use.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers fill it in, beginning with the default"
)]
pub struct SandboxProxy {
    /// How long and how much.
    pub limits: ProxyLimits,
    /// Another proxy through which everything goes.
    pub upstream: Option<Upstream>,
    /// A file that gets every request as a line of JSON.
    pub log_file: Option<PathBuf>,
}

/// A sandbox's proxy at work.
#[derive(Debug)]
struct Serving {
    end: Shutdown,
    thread: Option<std::thread::JoinHandle<()>>,
    gate: Arc<Gate>,
    ledger: Arc<Ledger>,
    names: Arc<Names>,
}

/// A proxy that is ready for its sandbox.
#[derive(Debug)]
struct Ready {
    proxy: SandboxProxy,
    inspector: Option<Arc<Inspector>>,
}

impl NetworkService for SandboxProxy {
    fn prepare(&self, order: &NetworkOrder) -> io::Result<Box<dyn NetworkSession>> {
        let inspector = order.opens_tls().then(Inspector::new).transpose()?;
        Ok(Box::new(Ready {
            proxy: self.clone(),
            inspector: inspector.map(Arc::new),
        }))
    }
}

impl NetworkSession for Ready {
    fn trust(&self) -> Option<&str> {
        self.inspector.as_ref().map(|inspector| inspector.trust())
    }

    fn serve(
        self: Box<Self>,
        order: &NetworkOrder,
        sockets: Vec<OwnedFd>,
    ) -> io::Result<Box<dyn NetworkGuard>> {
        let Self { proxy, inspector } = *self;
        if !order.masks.is_empty() {
            // Not before: the sandbox's first process is built from this one.
            memory::hide()?;
        }
        let file = proxy.log_file.as_ref().map(|path| log_file::open(path));
        let ledger = Arc::new(Ledger::new(0, file.transpose()?));
        let names = Arc::new(Names::new(order.addresses));
        let (end, ending) = Shutdown::new();
        let gate = Arc::new(Gate {
            egress: CurrentEgress::new(Egress {
                mode: EgressMode::Allowlist,
                rules: order.rules.clone(),
            }),
            limits: proxy.limits,
            upstream: proxy.upstream,
            ledger: Arc::clone(&ledger),
            ending: ending.clone(),
            masks: order.masks.clone(),
            inspector,
            attribution: Attribution::default(),
        });
        let served_gate = Arc::clone(&gate);
        let exposed = forward::listen(&order.expose)?;
        let runtime = event_loop()?;
        let work = Work {
            gate,
            names: Arc::clone(&names),
            places: Arc::new(Semaphore::new(proxy.limits.connections)),
        };
        let accepting = {
            let _entered = runtime.enter();
            work.begin(order, sockets, exposed)?
        };
        let thread = std::thread::Builder::new()
            .name("stockade-proxy".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    ending.wait().await;
                    drain::passed_on(&work, accepting).await;
                });
                runtime.shutdown_background();
            })?;
        Ok(Box::new(Serving {
            end,
            thread: Some(thread),
            gate: served_gate,
            ledger,
            names,
        }))
    }
}

/// What every socket's task needs.
struct Work {
    gate: Arc<Gate>,
    names: Arc<Names>,
    places: Arc<Semaphore>,
}

impl Work {
    /// Starts a task for each socket, which run when the event loop does. Those that accept
    /// connections end with the sandbox.
    fn begin(
        &self,
        order: &NetworkOrder,
        sockets: Vec<OwnedFd>,
        exposed: Vec<(u16, std::net::TcpListener)>,
    ) -> io::Result<Vec<JoinHandle<()>>> {
        let mut accepting = Vec::new();
        let mut connector = None;
        for (role, socket) in order.roles.iter().zip(sockets) {
            if *role == SocketRole::Connector {
                connector = Some(Arc::new(Connector::new(socket)?));
            } else {
                accepting.extend(self.answer(*role, socket)?);
            }
        }
        for (port, listener) in exposed {
            let (Some(connector), gate) = (connector.clone(), Arc::clone(&self.gate)) else {
                continue;
            };
            let listener = TcpListener::from_std(listener)?;
            accepting.push(tokio::spawn(server::accept(
                listener,
                Arc::clone(&self.places),
                self.gate.ending.clone(),
                move |stream, permit| {
                    let (gate, connector) = (Arc::clone(&gate), Arc::clone(&connector));
                    forward::inwards(gate, connector, port, stream, permit)
                },
            )));
        }
        Ok(accepting)
    }

    fn answer(&self, role: SocketRole, socket: OwnedFd) -> io::Result<Option<JoinHandle<()>>> {
        let gate = Arc::clone(&self.gate);
        let names = Arc::clone(&self.names);
        let places = Arc::clone(&self.places);
        let ending = self.gate.ending.clone();
        let listener = |socket| TcpListener::from_std(std::net::TcpListener::from(socket));
        match role {
            SocketRole::Proxy => {
                let accept =
                    server::accept(listener(socket)?, places, ending, move |stream, permit| {
                        server::serve(Arc::clone(&gate), stream, permit)
                    });
                Ok(Some(tokio::spawn(accept)))
            }
            SocketRole::Port(_) => {
                let accept =
                    server::accept(listener(socket)?, places, ending, move |stream, permit| {
                        let (gate, names) = (Arc::clone(&gate), Arc::clone(&names));
                        transparent::serve(gate, names, stream, permit)
                    });
                Ok(Some(tokio::spawn(accept)))
            }
            SocketRole::HostPort(port) => {
                let accept =
                    server::accept(listener(socket)?, places, ending, move |stream, permit| {
                        forward::outwards(Arc::clone(&gate), port, stream, permit)
                    });
                Ok(Some(tokio::spawn(accept)))
            }
            SocketRole::Resolver => {
                let socket = tokio::net::UdpSocket::from_std(socket.into())?;
                tokio::spawn(stub::serve(gate, names, socket));
                Ok(None)
            }
            SocketRole::ResolverStream => {
                let accept =
                    server::accept(listener(socket)?, places, ending, move |stream, permit| {
                        let (gate, names) = (Arc::clone(&gate), Arc::clone(&names));
                        stub::serve_stream(gate, names, stream, permit)
                    });
                Ok(Some(tokio::spawn(accept)))
            }
            _ => Err(io::Error::other("a socket has a role that nobody knows")),
        }
    }
}

impl NetworkGuard for Serving {
    fn finish(mut self: Box<Self>) -> Vec<NetworkRecord> {
        self.end();
        self.ledger.traffic().into_iter().map(record).collect()
    }

    fn name_of(&self, address: IpAddr) -> Option<String> {
        self.names.name_of(address).map(|name| name.to_string())
    }

    fn set_rules(&self, rules: &NetworkRules) -> bool {
        self.gate.egress.set_rules(rules.clone());
        true
    }

    fn set_owner_lookup(&self, owners: OwnerLookup) {
        let lookup = move |client| {
            owners.owner(match client {
                ClientAddress::Datagram(local) => ClientSocket::Datagram { local },
                ClientAddress::Stream { local, remote } => ClientSocket::Stream { local, remote },
            })
        };
        self.gate.attribution.set(Box::new(lookup));
    }

    fn take_refused(&self, command: CommandId) -> Vec<NetworkRecord> {
        let taken = self.ledger.take_traffic(command);
        taken.into_iter().map(record).collect()
    }
}

impl Serving {
    fn end(&mut self) {
        self.end.trigger();
        if let Some(thread) = self.thread.take() {
            // It panicked, which has been said already.
            let _ = thread.join();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}

fn record(traffic: Traffic) -> NetworkRecord {
    NetworkRecord {
        host: traffic.host,
        port: traffic.port,
        protocol: traffic.protocol.as_str().to_owned(),
        allowed: traffic.allowed,
        rule: traffic.rule,
        reason: traffic.reason,
        grant: traffic.grant,
        count: traffic.count,
        sent: traffic.sent,
        received: traffic.received,
    }
}
