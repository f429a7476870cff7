//! A body whose bytes are counted as they pass, and looked through if they must be.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::mask::Scrubber;
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
    scrubber: Option<Scrubber>,
}

impl Counted {
    pub(crate) fn new(body: Incoming, session: Session, way: Way) -> Self {
        Self {
            body,
            session,
            way,
            scrubber: None,
        }
    }

    /// The same, with values of masked variables taken out.
    pub(crate) fn scrubbed(mut self, scrubber: Option<Scrubber>) -> Self {
        self.scrubber = scrubber;
        self
    }

    /// What of a frame can be passed on; none if it must wait for the next.
    fn look_through(&mut self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        let Some(scrubber) = &mut self.scrubber else {
            return Some(frame);
        };
        match frame.into_data() {
            Ok(data) => {
                let clean = scrubber.pass(&data);
                (!clean.is_empty()).then(|| Frame::data(clean))
            }
            // Fields behind a body are headers that nobody looked through; few clients read them.
            Err(_) => None,
        }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                let rest = self.scrubber.as_mut().map(Scrubber::rest);
                let rest = rest.filter(|rest| !rest.is_empty());
                return Poll::Ready(rest.map(|rest| Ok(Frame::data(rest))));
            };
            let frame = frame?;
            if let Some(data) = frame.data_ref() {
                let length = data.remaining() as u64;
                match self.way {
                    Way::ToClient => self.session.received(length),
                    Way::ToHost => self.session.sent(length),
                }
            }
            if let Some(frame) = self.look_through(frame) {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let held = self.scrubber.as_ref().map_or(0, Scrubber::held);
        held == 0 && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.scrubber {
            None => self.body.size_hint(),
            Some(scrubber) if !scrubber.keeps_length() => SizeHint::default(),
            Some(scrubber) => match self.body.size_hint().exact() {
                Some(left) => SizeHint::with_exact(left + scrubber.held() as u64),
                None => SizeHint::default(),
            },
        }
    }
}
