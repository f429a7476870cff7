//! A heap for programs that live a millisecond.
//!
//! musl's allocator gives memory back to the kernel eagerly: reading the command line and a
//! profile costs some 150 calls of mmap and munmap, and the page faults that follow them. Here
//! the first few mebibytes come from a fixed block, whose pages the kernel provides when they are
//! touched; what is beyond goes to the system's allocator. Freed memory of the block is reused
//! only if it was the last piece, so a program that runs for long loses at most the block.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than an ordinary start needs, so that it never meets the system's allocator.
const SIZE: usize = 4 << 20;

/// What reading the command line, planning and building a sandbox use up.
const PREPARED: usize = 384 << 10;

/// For `#[global_allocator]`.
pub struct Arena {
    block: Block,
    /// How much of the block has been given out.
    used: AtomicUsize,
}

#[repr(C, align(4096))]
struct Block(UnsafeCell<[u8; SIZE]>);

// SAFETY: the bytes are only reached through pointers that `alloc` gives out, each to one owner;
// `Arena` itself never reads or writes them.
unsafe impl Sync for Block {}

impl Arena {
    /// An empty one, for a static: mebibytes do not belong on a stack.
    #[expect(
        clippy::new_without_default,
        clippy::large_stack_arrays,
        reason = "only statics are made of it, at compile time"
    )]
    pub const fn new() -> Self {
        Self {
            block: Block(UnsafeCell::new([0; SIZE])),
            used: AtomicUsize::new(0),
        }
    }

    /// Has the kernel provide the pages that an ordinary start needs, all at once: a hundred page
    /// faults cost several times as much.
    pub fn prepare(&self) {
        let advice = rustix::mm::Advice::LinuxPopulateWrite;
        // SAFETY: the pages are this block's own and stay as they are. Before Linux 5.14 the
        // kernel does not know the advice, and the pages come one by one.
        let _ = unsafe { rustix::mm::madvise(self.start().cast(), PREPARED, advice) };
    }

    fn start(&self) -> *mut u8 {
        self.block.0.get().cast()
    }

    /// Where in the block the pointer is, if it is there.
    fn offset(&self, pointer: *mut u8) -> Option<usize> {
        let offset = pointer.addr().checked_sub(self.start().addr())?;
        (offset < SIZE).then_some(offset)
    }

    /// Takes a piece of the block, if there is room.
    fn take(&self, layout: Layout) -> Option<*mut u8> {
        let base = self.start().addr();
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let begin = (base + used).checked_next_multiple_of(layout.align())? - base;
            let end = begin.checked_add(layout.size())?;
            if end > SIZE {
                return None;
            }
            match self.move_end(used, end) {
                // SAFETY: `begin` is at most SIZE, so the result is inside the block or one past
                // its end.
                Ok(_) => return Some(unsafe { self.start().add(begin) }),
                Err(now) => used = now,
            }
        }
    }

    /// Moves the end of what is given out. Nothing is published through it: whoever hands a
    /// pointer to another thread synchronises that itself.
    fn move_end(&self, from: usize, to: usize) -> Result<usize, usize> {
        self.used
            .compare_exchange_weak(from, to, Ordering::Relaxed, Ordering::Relaxed)
    }
}

// SAFETY: a piece is given out once, until it was freed, with the size and alignment asked for;
// pointers outside of the block are the system's and go back to it. Nothing here unwinds.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout).unwrap_or_else(|| {
            // SAFETY: the caller's promise, handed on: the layout has a size.
            unsafe { System.alloc(layout) }
        })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if let Some(begin) = self.offset(pointer) {
            // Only the last piece can be taken back; the others stay until the program ends.
            let _ = self.move_end(begin + layout.size(), begin);
        } else {
            // SAFETY: not from the block, so from the system, with this layout.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(begin) = self.offset(pointer) else {
            // SAFETY: not from the block, so from the system; the caller's promises, handed on.
            return unsafe { System.realloc(pointer, layout, size) };
        };
        let fits = begin.checked_add(size).filter(|end| *end <= SIZE);
        if let Some(end) = fits
            && self.move_end(begin + layout.size(), end).is_ok()
        {
            return pointer;
        }
        // SAFETY: the caller promises that `size`, rounded up to the alignment, is no overflow.
        let grown = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller promises that `size` is not zero.
        let new = unsafe { self.alloc(grown) };
        if !new.is_null() {
            let kept = layout.size().min(size);
            // SAFETY: both are valid for `kept` bytes and distinct: `new` was just given out.
            unsafe { ptr::copy_nonoverlapping(pointer, new, kept) };
        }
        new
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let used = self.used.load(Ordering::Relaxed);
        f.debug_struct("Arena")
            .field("used", &used)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
