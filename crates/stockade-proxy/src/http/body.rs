//! A body whose bytes are counted as they pass.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::ledger::Session;

/// Which way a body goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    ToClient,
    ToHost,
}

#[derive(Debug)]
pub(crate) struct Counted {
    body: Incoming,
    session: Session,
    way: Way,
}

impl Counted {
    pub(crate) fn new(body: Incoming, session: Session, way: Way) -> Self {
        Self { body, session, way }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            let length = data.remaining() as u64;
            match self.way {
                Way::ToClient => self.session.received(length),
                Way::ToHost => self.session.sent(length),
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
