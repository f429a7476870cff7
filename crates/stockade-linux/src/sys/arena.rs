//! A heap for programs that live a millisecond.
//!
//! musl's allocator gives memory back to the kernel eagerly: reading the command line and a
//! profile costs some 150 calls of mmap and munmap, and the page faults that follow them. Here
//! the first few mebibytes come from a fixed block, whose pages the kernel provides when they are
//! touched; what is beyond goes to the system's allocator.
//!
//! A piece of the block has one of a few sizes. When it is freed it goes to the list of its size
//! and is the next to be given out, while it is still in the processor's cache. Nobody ever waits
//! long for the block: a thread that finds it taken for more than a moment does without it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// More than an ordinary start needs, so that it never meets the system's allocator.
const SIZE: usize = 4 << 20;

/// What reading the command line, planning and building a sandbox use up.
const PREPARED: usize = 208 << 10;

/// What is provided at once where more than that is used.
const MORE: usize = 64 << 10;

/// How often to look whether the block is left: some microseconds, and a piece takes some
/// nanoseconds to give out.
const MOMENT: u32 = 100;

/// Of every architecture that there is a filter for.
const PAGE: usize = 4096;

/// For `#[global_allocator]`.
pub struct Arena {
    block: Block,
    /// Whether somebody is at the state.
    is_taken: AtomicBool,
    state: UnsafeCell<State>,
}

/// What of the block is whose.
struct State {
    /// How much has been given out.
    used: usize,
    /// Up to where the kernel was asked to provide pages. Nothing as long as it was not: with
    /// anything but zeros in it the block would be part of the program's file.
    prepared: usize,
    /// Up to where pieces stay as they are when they are freed.
    frozen: usize,
    /// Pieces to be given out again: a list for each size, linked through the pieces themselves.
    freed: [*mut u8; SIZES],
}

// SAFETY: the state and the links in freed pieces are only reached by whoever has set `is_taken`;
// the other bytes of the block only through pointers that `alloc` gives out, each to one owner.
unsafe impl Sync for Arena {}

/// Up to here pieces differ by [`STEP`] bytes, beyond by a quarter of the last power of two.
const SMALL: usize = 512;
const STEP: usize = 16;
/// Larger pieces than this are rare and long-lived.
const LARGE: usize = 64 << 10;
const SIZES: usize = SMALL / STEP + 4 * (LARGE / SMALL).trailing_zeros() as usize;

/// Which list a piece belongs to and how large it really is; none if to no list.
fn size_class(layout: Layout) -> Option<(usize, usize)> {
    let size = layout.size().max(1);
    if layout.align() > STEP || size > LARGE {
        return None;
    }
    if size <= SMALL {
        let steps = size.div_ceil(STEP);
        return Some((steps - 1, steps * STEP));
    }
    let doublings = ((size - 1) / SMALL).ilog2() as usize;
    let power = SMALL << doublings;
    let quarters = (size - power).div_ceil(power / 4);
    let class = SMALL / STEP + 4 * doublings + quarters - 1;
    Some((class, power + quarters * (power / 4)))
}

/// How much is really set aside for a piece.
fn whole_size(layout: Layout) -> usize {
    size_class(layout).map_or(layout.size(), |(_, size)| size)
}

#[repr(C, align(4096))] // PAGE
struct Block(UnsafeCell<[u8; SIZE]>);

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
            is_taken: AtomicBool::new(false),
            state: UnsafeCell::new(State {
                used: 0,
                prepared: 0,
                frozen: 0,
                freed: [ptr::null_mut(); SIZES],
            }),
        }
    }

    /// Has the kernel provide the pages that an ordinary start needs, all at once: a hundred page
    /// faults cost several times as much.
    pub fn prepare(&self) {
        let _ = self.with(|state| state.provide(self.start(), 0, PREPARED));
    }

    /// What has been given out so far stays as it is even when it is freed. To free a piece is to
    /// write to it, and around a fork the kernel would have to copy its page for that.
    pub fn freeze(&self) {
        let _ = self.with(|state| {
            state.frozen = state.used;
            state.freed = [ptr::null_mut(); SIZES];
        });
    }

    /// Does something with the state, unless somebody else is at it and stays there.
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> Option<R> {
        if self.is_taken.swap(true, Ordering::Acquire) && !self.take_over() {
            return None;
        }
        // SAFETY: nobody else is here until `is_taken` is reset.
        let result = act(unsafe { &mut *self.state.get() });
        self.is_taken.store(false, Ordering::Release);
        Some(result)
    }

    /// Waits a moment for whoever is at the state to leave it; false if nobody does. A thread that the
    /// kernel took the processor from stays longer, one that a fork has left behind for ever.
    #[cold]
    fn take_over(&self) -> bool {
        (0..MOMENT).any(|_| {
            std::hint::spin_loop();
            !self.is_taken.load(Ordering::Relaxed) && !self.is_taken.swap(true, Ordering::Acquire)
        })
    }

    fn start(&self) -> *mut u8 {
        self.block.0.get().cast()
    }

    /// Where in the block the pointer is, if it is there.
    fn offset(&self, pointer: *mut u8) -> Option<usize> {
        let offset = pointer.addr().checked_sub(self.start().addr())?;
        (offset < SIZE).then_some(offset)
    }
}

impl State {
    /// A piece that was freed, or a new one if there is room.
    fn take(&mut self, start: *mut u8, layout: Layout) -> Option<*mut u8> {
        let Some((class, size)) = size_class(layout) else {
            return self.extend(start, layout.size(), layout.align());
        };
        let piece = self.freed[class];
        if piece.is_null() {
            return self.extend(start, size, STEP);
        }
        // SAFETY: a piece in a list begins with the next one, as `put` left it.
        self.freed[class] = unsafe { piece.cast::<*mut u8>().read_unaligned() };
        Some(piece)
    }

    /// A piece that was never given out.
    fn extend(&mut self, start: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
        let base = start.addr();
        let begin = (base + self.used).checked_next_multiple_of(align)? - base;
        let end = begin.checked_add(size).filter(|end| *end <= SIZE)?;
        self.used = end;
        // A large piece is a stack or a buffer, little of which is ever touched.
        if self.prepared > 0 && end > self.prepared && size <= LARGE {
            let from = self.prepared.max(begin - begin % PAGE);
            self.provide(start, from, end.next_multiple_of(MORE));
        }
        // SAFETY: `begin` is at most SIZE, so the result is inside the block or one past its end.
        Some(unsafe { start.add(begin) })
    }

    /// Takes a piece back.
    fn put(&mut self, piece: *mut u8, begin: usize, layout: Layout) {
        if begin < self.frozen {
            return;
        }
        let Some((class, size)) = size_class(layout) else {
            if begin + layout.size() == self.used {
                self.used = begin;
            }
            return;
        };
        if begin + size == self.used {
            self.used = begin;
        } else {
            // SAFETY: the piece is at least STEP long, and free.
            unsafe { piece.cast::<*mut u8>().write_unaligned(self.freed[class]) };
            self.freed[class] = piece;
        }
    }

    /// Whether a piece can have another size where it is.
    fn resize(&mut self, begin: usize, has: usize, needs: usize) -> bool {
        let end = begin + needs;
        let fits = has == needs || (begin + has == self.used && end <= SIZE);
        if fits && has != needs {
            self.used = end;
        }
        fits
    }

    /// Has the kernel provide the pages between two places.
    fn provide(&mut self, start: *mut u8, from: usize, to: usize) {
        self.prepared = to;
        // SAFETY: both are at most SIZE.
        let begin = unsafe { start.add(from) };
        let advice = rustix::mm::Advice::LinuxPopulateWrite;
        // SAFETY: the pages are this block's own and stay as they are. Before Linux 5.14 the
        // kernel does not know the advice, and the pages come one by one.
        let _ = unsafe { rustix::mm::madvise(begin.cast(), to - from, advice) };
    }
}

// SAFETY: a piece is given out once, until it was freed, with the size and alignment asked for;
// pointers outside of the block are the system's and go back to it. Nothing here unwinds.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let piece = self.with(|state| state.take(self.start(), layout));
        piece.flatten().unwrap_or_else(|| {
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
        // If somebody else is there the piece is lost until the program ends.
        let _ = self.with(|state| state.put(pointer, begin, layout));
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(begin) = self.offset(pointer) else {
            // SAFETY: not from the block, so from the system; the caller's promises, handed on.
            return unsafe { System.realloc(pointer, layout, size) };
        };
        // SAFETY: the caller promises that `size`, rounded up to the alignment, is no overflow.
        let grown = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (has, needs) = (whole_size(layout), whole_size(grown));
        let stays = self.with(|state| state.resize(begin, has, needs));
        if stays == Some(true) {
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
        f.debug_struct("Arena")
            .field("used", &self.with(|state| state.used))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
