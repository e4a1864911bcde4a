//! That a step of the model allocates nothing once its buffers have grown.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests are tests.
#![allow(unsafe_code, reason = "a global allocator is an unsafe trait")]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{Feed, ModelOptions};
use support::{Random, tiny};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Steps after which the pool's own queue of jobs has grown by at most one block of 63.
const STEPS: usize = 60;
/// Runs of so many steps, of which that with the fewest allocations counts.
const ROUNDS: usize = 3;

#[test]
fn a_step_allocates_nothing_per_token_alone_and_in_a_batch() {
    let model = tiny(&TinyModel::default(), TinyDtype::Q8_0, &ModelOptions::default()).model;
    let rows = [1, 2, 40, 300];
    for sequences in [1, 5] {
        let mut work = model.new_workspace();
        let mut feeds: Vec<Feed> = (0..sequences)
            .map(|seed| {
                let mut cache = model.new_cache(500);
                model.forward(&Random(seed).tokens(20, 400), &mut cache).unwrap();
                Feed::new(cache)
            })
            .collect();
        let mut step = |number: usize| {
            for (index, feed) in feeds.iter_mut().enumerate() {
                feed.clear();
                feed.push(&[number as u32, 7]);
                // Forced, whole and few in turn.
                feed.want_nothing();
                match (number + index) % 3 {
                    0 => feed.want_all(),
                    1 => feed.want_rows(&rows),
                    _ => feed.want_nothing(),
                }
            }
            model.step(&mut feeds, &mut work).unwrap();
        };
        (0..6).for_each(&mut step);
        // A thread of the pool allocates once, when it first takes work from another: on a busy
        // machine that may be late. What a step allocates, each round has.
        let mut round = |number: usize| {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            (0..STEPS).for_each(|index| step(number % 2 * STEPS + index));
            ALLOCATIONS.load(Ordering::Relaxed) - before
        };
        let allocations = (0..ROUNDS).map(&mut round).min().unwrap();
        println!("{allocations} allocations in {STEPS} steps of {sequences} sequences");
        assert!(allocations <= 1, "{allocations} allocations in {STEPS} steps");
    }
}
