//! Makes states equal that differ in names only.
//!
//! Workers are interchangeable and tokens are only compared for equality, so both are renamed in the
//! order in which they appear. This divides the number of states by more than ten. So a trace may show
//! a worker under another number after a step that changed the order. Fences given out before the
//! current tick are renamed in their own order, because no later claim gets a lower one from its clock.

use crate::{
    packed::{Cell, Fence, Token, first_of_tick, tick_of_fence},
    request::Request,
    state::{Answer, Call, KeyWorld, World},
};

/// Renames workers, tokens and fences. Removes fences in configurations that do not check them.
pub(crate) fn canonical(mut world: World, fences: bool) -> World {
    world.key.calls.sort_by_key(|call| {
        call.map(|mut call| {
            rename_call(&mut call, &mut |_| 0);
            call
        })
    });
    let key = &mut world.key;
    if fences {
        rank_fences(key, world.time);
    } else {
        each_fence(key, &mut |_| 0);
    }
    key.strangers.sort_unstable();
    key.strays.sort_unstable_by_key(without_names);
    rename_tokens(key);
    key.strays.sort_unstable();
    if key.lingering < world.time {
        key.lingering = 0;
    }
    world
}

fn rename_tokens(key: &mut KeyWorld) {
    let mut names = [0; Token::MAX as usize];
    let mut next = 0;
    let mut name = |token: Token| {
        if token == 0 {
            return 0;
        }
        let name = &mut names[usize::from(token)];
        if *name == 0 {
            next += 1;
            *name = next;
        }
        *name
    };
    key.store = key.store.map(|cell| cell.rename(&mut name));
    for call in key.calls.iter_mut().flatten() {
        rename_call(call, &mut name);
    }
    for stray in &mut key.strays {
        stray.rename(&mut name);
    }
}

fn rename_call(call: &mut Call, name: &mut impl FnMut(Token) -> Token) {
    call.token = name(call.token);
    call.held = call.held.rename(name);
    if let Some(request) = &mut call.request {
        request.rename(name);
    }
    if let Some(Answer::Found(Some(cell))) = &mut call.answer {
        *cell = cell.rename(name);
    }
}

fn without_names(request: &Request) -> Request {
    let mut request = *request;
    request.rename(&mut |_| 0);
    request
}

/// Numbers the fences of the past 1, 2, 3 in their order, and the fences within one tick in the same way.
fn rank_fences(key: &mut KeyWorld, time: u8) {
    let mut known = [false; Fence::MAX as usize + 1];
    each_fence(key, &mut |fence| {
        known[usize::from(fence)] = true;
        fence
    });
    let mut names = [0; Fence::MAX as usize + 1];
    let mut past = 0;
    for fence in (1..=Fence::MAX).filter(|fence| known[usize::from(*fence)]) {
        let first = first_of_tick(fence).filter(|first| tick_of_fence(*first) >= Some(time));
        names[usize::from(fence)] = match first {
            None => {
                past += 1;
                past
            }
            Some(first) if first == fence => fence,
            Some(first) => {
                let between = (first + 1..fence).filter(|lower| known[usize::from(*lower)]);
                first + 1 + Fence::try_from(between.count()).expect("few claims")
            }
        };
    }
    each_fence(key, &mut |fence| names[usize::from(fence)]);
}

fn each_fence(key: &mut KeyWorld, name: &mut impl FnMut(Fence) -> Fence) {
    let mut change = |cell: &mut Cell| *cell = cell.with_fence(name(cell.fence()));
    key.store.iter_mut().for_each(&mut change);
    for call in key.calls.iter_mut().flatten() {
        change(&mut call.held);
        call.request.iter_mut().filter_map(|request| request.record.as_mut()).for_each(&mut change);
        if let Some(Answer::Found(Some(cell))) = &mut call.answer {
            change(cell);
        }
    }
    key.strays.iter_mut().filter_map(|stray| stray.record.as_mut()).for_each(&mut change);
    key.fence = name(key.fence);
}

/// A token that does not occur in this key's world.
pub(crate) fn fresh_token(key: &mut KeyWorld) -> Token {
    let mut highest = 0;
    let mut see = |token: Token| {
        highest = highest.max(token);
        token
    };
    key.store.map(|cell| cell.rename(&mut see));
    for mut call in key.working().copied() {
        rename_call(&mut call, &mut see);
    }
    for mut stray in key.strays.iter().copied() {
        stray.rename(&mut see);
    }
    highest + 1
}
