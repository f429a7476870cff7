//! Run commands nobody vouches for: policy and command in, plan and enforcement out.

pub mod probe;
