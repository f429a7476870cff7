//! A refusal for a client that believes it talks to the host.

use std::convert::Infallible;

use hyper::StatusCode;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{MAX_HEAD, MAX_HEADERS, reply};
use crate::gate::Denial;

/// Tells a client that believes it talks to a host why it may not; gives back its connection, to be
/// closed with care.
pub(crate) async fn refuse(stream: TcpStream, denial: &Denial) -> Option<TcpStream> {
    let service = service_fn(|_| async {
        let mut response = reply::text(StatusCode::FORBIDDEN, denial.text());
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        Ok::<_, Infallible>(response)
    });
    let served = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .without_shutdown();
    Some(served.await.ok()?.io.into_inner())
}
