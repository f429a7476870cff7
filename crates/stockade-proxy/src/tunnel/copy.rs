//! Elsewhere than on Linux: through a buffer.

use std::io;

use tokio::net::TcpStream;

use crate::ledger::Session;

pub(crate) async fn both_ways(
    session: &Session,
    mut client: TcpStream,
    mut server: TcpStream,
) -> io::Result<()> {
    let (sent, received) = tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    session.sent(sent);
    session.received(received);
    Ok(())
}
