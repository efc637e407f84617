//! States that differ in names only are one state.
//!
//! Workers are interchangeable and tokens are compared for equality alone, so both are renamed in
//! the order in which they appear. This divides the number of states by more than ten. A trace
//! therefore shows a worker under another number after a step that changed the order.

use crate::{
    packed::{Request, Token},
    state::{Call, KeyWorld, World},
};

/// Renames workers and tokens.
pub(crate) fn canonical(mut world: World) -> World {
    sort_workers(&mut world);
    for key in &mut world.keys {
        key.strays.sort_unstable_by_key(without_names);
        rename_tokens(key);
        key.strays.sort_unstable();
    }
    world
}

fn sort_workers(world: &mut World) {
    let blank = |call: &Option<Call>| {
        call.map(|mut call| {
            rename_call(&mut call, &mut |_| 0);
            call
        })
    };
    if let [key] = world.keys.as_mut_slice() {
        key.calls.sort_by_key(blank);
        return;
    }
    let workers = world.keys.first().map_or(0, |key| key.calls.len());
    let mut order: Vec<usize> = (0..workers).collect();
    order.sort_by_key(|&w| world.keys.iter().map(|key| blank(&key.calls[w])).collect::<Vec<_>>());
    for key in &mut world.keys {
        key.calls = order.iter().map(|&w| key.calls[w]).collect();
    }
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
    use crate::state::Answer;

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

/// A token that nobody in this key's world knows.
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
