//! wip
use crate::finding::Finding;
use crate::normalize::View;
use crate::peek::{Encoding, Layer};
pub(crate) mod hidden {
    pub(crate) fn scan(_v: &crate::normalize::View<'_>, _h: &[crate::normalize::Hidden], _f: &mut Vec<crate::finding::Finding>) {}
}
pub(crate) fn scan(_view: &View<'_>, _e: Option<Encoding>, _f: &mut Vec<Finding>) -> Vec<Layer> { Vec::new() }
