use super::*;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

fn alloc(arena: &Arena, layout: Layout) -> *mut u8 {
    // SAFETY: every layout of these tests has a size.
    let pointer = unsafe { arena.alloc(layout) };
    assert!(!pointer.is_null());
    assert_eq!(pointer.addr() % layout.align(), 0);
    pointer
}

fn free(arena: &Arena, pointer: *mut u8, layout: Layout) {
    // SAFETY: each test frees what it was given, once, with its layout.
    unsafe { arena.dealloc(pointer, layout) }
}

fn fill(pointer: *mut u8, byte: u8, size: usize) {
    // SAFETY: each test fills what it was given, within its size.
    unsafe { pointer.write_bytes(byte, size) }
}

fn holds(pointer: *mut u8, byte: u8, size: usize) -> bool {
    // SAFETY: each test asks about what it was given and has filled.
    let bytes = unsafe { std::slice::from_raw_parts(pointer, size) };
    bytes.iter().all(|found| *found == byte)
}

#[test]
fn pieces_do_not_overlap() {
    static ARENA: Arena = Arena::new();
    let mut pieces = Vec::new();
    for number in 0..200u8 {
        let layout = layout(usize::from(number) % 97 + 1, 1 << (number % 7));
        let pointer = alloc(&ARENA, layout);
        fill(pointer, number, layout.size());
        pieces.push((pointer, number, layout));
    }
    for (pointer, number, layout) in pieces {
        assert!(holds(pointer, number, layout.size()), "{number}");
        free(&ARENA, pointer, layout);
    }
}

#[test]
fn the_last_piece_grows_shrinks_and_goes_in_place() {
    static ARENA: Arena = Arena::new();
    let small = layout(16, 8);
    let first = alloc(&ARENA, small);
    fill(first, 7, 16);
    // SAFETY: the piece is ours, and the new size is not zero.
    let grown = unsafe { ARENA.realloc(first, small, 64) };
    assert_eq!(grown, first);
    assert!(holds(grown, 7, 16));
    free(&ARENA, grown, layout(64, 8));
    assert_eq!(alloc(&ARENA, small), first);
}

#[test]
fn a_piece_in_the_middle_moves_when_it_grows() {
    static ARENA: Arena = Arena::new();
    let small = layout(16, 8);
    let first = alloc(&ARENA, small);
    fill(first, 1, 16);
    let second = alloc(&ARENA, small);
    fill(second, 2, 16);
    // SAFETY: the piece is ours, and the new size is not zero.
    let moved = unsafe { ARENA.realloc(first, small, 4096) };
    assert_ne!(moved, first);
    assert!(holds(moved, 1, 16));
    assert!(holds(second, 2, 16));
}

#[test]
fn beyond_the_block_the_system_helps() {
    static ARENA: Arena = Arena::new();
    let half = layout(SIZE / 2 + 1, 16);
    let inside = alloc(&ARENA, half);
    let outside = alloc(&ARENA, half);
    assert!(ARENA.offset(inside).is_some());
    assert!(ARENA.offset(outside).is_none());
    fill(outside, 9, half.size());
    // SAFETY: the piece is ours, and the new size is not zero.
    let grown = unsafe { ARENA.realloc(outside, half, SIZE * 2) };
    assert!(!grown.is_null());
    assert!(holds(grown, 9, half.size()));
    free(&ARENA, grown, layout(SIZE * 2, 16));
    let whole = layout(SIZE, 4096);
    let too_much = alloc(&ARENA, whole);
    assert!(ARENA.offset(too_much).is_none());
    free(&ARENA, too_much, whole);
}

#[test]
fn threads_get_pieces_of_their_own() {
    static ARENA: Arena = Arena::new();
    std::thread::scope(|scope| {
        for number in 1..5u8 {
            scope.spawn(move || {
                for size in 1..500 {
                    let layout = layout(size, 8);
                    let pointer = alloc(&ARENA, layout);
                    fill(pointer, number, size);
                    std::thread::yield_now();
                    assert!(holds(pointer, number, size), "{number} {size}");
                    free(&ARENA, pointer, layout);
                }
            });
        }
    });
}

#[test]
fn a_freed_piece_is_the_next_of_its_size() {
    static ARENA: Arena = Arena::new();
    for size in [1, 16, 17, 500, 513, 5000, LARGE] {
        let layout = layout(size, 8);
        let first = alloc(&ARENA, layout);
        let second = alloc(&ARENA, layout);
        fill(second, 5, size);
        free(&ARENA, first, layout);
        assert_eq!(alloc(&ARENA, layout), first, "{size}");
        assert!(holds(second, 5, size), "{size}");
    }
}

#[test]
fn every_size_has_a_list_that_is_large_enough() {
    let mut last = 0;
    for size in 1..=LARGE {
        let (class, whole) = size_class(layout(size, 8)).unwrap();
        assert!(
            class < SIZES && class >= last && class <= last + 1,
            "{size}"
        );
        assert!(whole >= size && whole.is_multiple_of(STEP), "{size}");
        last = class;
    }
    assert_eq!(last, SIZES - 1);
    assert!(size_class(layout(LARGE + 1, 8)).is_none());
    assert!(size_class(layout(8, 4096)).is_none());
}

#[test]
fn what_is_frozen_stays_as_it_is() {
    static ARENA: Arena = Arena::new();
    let small = layout(16, 8);
    let [free_before, kept, last] = [(); 3].map(|()| alloc(&ARENA, small));
    free(&ARENA, free_before, small);
    ARENA.freeze();
    for (piece, byte) in [(kept, 3), (last, 4)] {
        fill(piece, byte, 16);
        free(&ARENA, piece, small);
        assert!(holds(piece, byte, 16));
    }
    let later = alloc(&ARENA, small);
    assert!(![free_before, kept, last].contains(&later));
    free(&ARENA, later, small);
    assert_eq!(alloc(&ARENA, small), later, "what came later is as before");
}
