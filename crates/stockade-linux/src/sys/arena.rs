//! A heap for programs that live a millisecond.
//!
//! musl's allocator gives memory back to the kernel eagerly: reading the command line and a
//! profile costs some 150 calls of mmap and munmap, and the page faults that follow them. Here
//! the first few mebibytes come from a fixed block, whose pages the kernel provides when they are
//! touched; what is beyond goes to the system's allocator.
//!
//! A piece of the block has one of a few sizes. When it is freed it goes to the list of its size
//! and is the next to be given out, while it is still in the processor's cache. Nobody ever waits
//! for the lists: a thread that finds them taken does without them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// More than an ordinary start needs, so that it never meets the system's allocator.
const SIZE: usize = 4 << 20;

/// What reading the command line, planning and building a sandbox use up.
const PREPARED: usize = 384 << 10;

/// What is provided at once where more than that is used.
const MORE: usize = 64 << 10;

/// Of every architecture that there is a filter for.
const PAGE: usize = 4096;

/// For `#[global_allocator]`.
pub struct Arena {
    block: Block,
    /// How much of the block has been given out.
    used: AtomicUsize,
    /// Up to where the kernel was asked to provide pages. Nothing as long as it was not: with
    /// anything but zeros in it the block would be part of the program's file.
    prepared: AtomicUsize,
    freed: Freed,
    /// Whether the program is about to end, so that nothing is worth freeing.
    is_retired: AtomicBool,
}

/// Pieces to be given out again: a list for each size, linked through the pieces themselves.
struct Freed {
    is_taken: AtomicBool,
    heads: UnsafeCell<[*mut u8; SIZES]>,
}

// SAFETY: the heads and the links are only reached by whoever has set `is_taken`.
unsafe impl Sync for Freed {}

/// Up to here pieces differ by [`STEP`] bytes, beyond by a factor of two.
const SMALL: usize = 512;
const STEP: usize = 16;
/// Larger pieces than this are rare and long-lived.
const LARGE: usize = 64 << 10;
const SIZES: usize = SMALL / STEP + (LARGE / SMALL).trailing_zeros() as usize;

/// Which list a piece belongs to and how large it really is; none if to no list.
fn size_class(layout: Layout) -> Option<(usize, usize)> {
    let size = layout.size().max(1);
    if layout.align() > STEP || size > LARGE {
        None
    } else if size <= SMALL {
        let steps = size.div_ceil(STEP);
        Some((steps - 1, steps * STEP))
    } else {
        let whole = size.next_power_of_two();
        let doublings = (whole / SMALL).trailing_zeros() as usize;
        Some((SMALL / STEP - 1 + doublings, whole))
    }
}

/// What is really set aside for a piece.
fn whole(layout: Layout) -> Layout {
    match size_class(layout) {
        // SAFETY: the alignment is a power of two, and LARGE is far from overflowing.
        Some((_, size)) => unsafe { Layout::from_size_align_unchecked(size, STEP) },
        None => layout,
    }
}

impl Freed {
    /// Does something with the head of a list, unless somebody else is at the lists.
    fn with<R>(&self, class: usize, act: impl FnOnce(&mut *mut u8) -> R) -> Option<R> {
        if self.is_taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: nobody else is here until `is_taken` is reset; `class` is less than SIZES.
        let result = act(unsafe { &mut (*self.heads.get())[class] });
        self.is_taken.store(false, Ordering::Release);
        Some(result)
    }

    fn take(&self, class: usize) -> Option<*mut u8> {
        self.with(class, |head| {
            let piece = *head;
            if piece.is_null() {
                return None;
            }
            // SAFETY: a piece in a list begins with the next one, as `put` left it.
            *head = unsafe { piece.cast::<*mut u8>().read_unaligned() };
            Some(piece)
        })
        .flatten()
    }

    fn put(&self, class: usize, piece: *mut u8) {
        // If somebody else is at the lists the piece is lost until the program ends.
        let _ = self.with(class, |head| {
            // SAFETY: the piece is at least STEP long, and free.
            unsafe { piece.cast::<*mut u8>().write_unaligned(*head) };
            *head = piece;
        });
    }
}

#[repr(C, align(4096))] // PAGE
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
            prepared: AtomicUsize::new(0),
            freed: Freed {
                is_taken: AtomicBool::new(false),
                heads: UnsafeCell::new([ptr::null_mut(); SIZES]),
            },
            is_retired: AtomicBool::new(false),
        }
    }

    /// What is freed from here on stays as it is, because the program is about to end. A piece
    /// that is freed is written to, and after a fork the kernel would have to copy its page.
    pub fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Has the kernel provide the pages that an ordinary start needs, all at once: a hundred page
    /// faults cost several times as much.
    pub fn prepare(&self) {
        self.provide(0, PREPARED);
    }

    /// Has the kernel provide the pages between two places.
    fn provide(&self, from: usize, to: usize) {
        self.prepared.store(to, Ordering::Relaxed);
        // SAFETY: both are at most SIZE.
        let begin = unsafe { self.start().add(from) };
        let advice = rustix::mm::Advice::LinuxPopulateWrite;
        // SAFETY: the pages are this block's own and stay as they are. Before Linux 5.14 the
        // kernel does not know the advice, and the pages come one by one.
        let _ = unsafe { rustix::mm::madvise(begin.cast(), to - from, advice) };
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
                Ok(_) => {
                    let prepared = self.prepared.load(Ordering::Relaxed);
                    // A large piece is a stack or a buffer, little of which is ever touched.
                    if prepared > 0 && end > prepared && layout.size() <= LARGE {
                        let from = prepared.max(begin - begin % PAGE);
                        self.provide(from, end.next_multiple_of(MORE));
                    }
                    // SAFETY: `begin` is at most SIZE, so the result is inside the block or one
                    // past its end.
                    return Some(unsafe { self.start().add(begin) });
                }
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
        let again = size_class(layout).and_then(|(class, _)| self.freed.take(class));
        again
            .or_else(|| self.take(whole(layout)))
            .unwrap_or_else(|| {
                // SAFETY: the caller's promise, handed on: the layout has a size.
                unsafe { System.alloc(layout) }
            })
    }

    // Written out at each of its thousands of callers it would be a fifth of the program.
    #[inline(never)]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(begin) = self.offset(pointer) else {
            // SAFETY: not from the block, so from the system, with this layout.
            return unsafe { System.dealloc(pointer, layout) };
        };
        if self.is_retired.load(Ordering::Relaxed) {
            return;
        }
        let is_last = self.move_end(begin + whole(layout).size(), begin).is_ok();
        if let (false, Some((class, _))) = (is_last, size_class(layout)) {
            self.freed.put(class, pointer);
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(begin) = self.offset(pointer) else {
            // SAFETY: not from the block, so from the system; the caller's promises, handed on.
            return unsafe { System.realloc(pointer, layout, size) };
        };
        // SAFETY: the caller promises that `size`, rounded up to the alignment, is no overflow.
        let grown = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (has, needs) = (whole(layout).size(), whole(grown).size());
        let fits = begin.checked_add(needs).filter(|end| *end <= SIZE);
        let stays = has == needs || fits.is_some_and(|end| self.move_end(begin + has, end).is_ok());
        if stays {
            return pointer;
        }
        // SAFETY: the caller promises that `size` is not zero.
        let new = unsafe { self.alloc(grown) };
        if !new.is_null() {
            let kept = layout.size().min(size);
            // SAFETY: both are valid for `kept` bytes and distinct: `new` was just given out.
            unsafe { ptr::copy_nonoverlapping(pointer, new, kept) };
            // SAFETY: it is the caller's piece, with its layout, and nobody's from here on.
            unsafe { self.dealloc(pointer, layout) };
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
