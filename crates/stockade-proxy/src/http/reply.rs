//! What a client is told.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::Counted;

/// The host's own answer, or ours.
pub(crate) type Reply = Either<Counted, Full<Bytes>>;

pub(crate) fn established() -> Response<Reply> {
    Response::new(Either::Right(Full::default()))
}

pub(crate) fn text(status: StatusCode, text: String) -> Response<Reply> {
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    // Tells this answer from one of the host.
    headers.insert("x-stockade", HeaderValue::from_static("refused"));
    response
}
