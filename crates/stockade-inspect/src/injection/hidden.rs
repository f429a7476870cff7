//! wip
pub(crate) fn scan(_v: &crate::normalize::View<'_>, _h: &[crate::normalize::Hidden], _f: &mut Vec<crate::finding::Finding>) {}
