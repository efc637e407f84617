//! What an invocation leaves behind when it ends, and a process when it dies.

use crate::{
    explorer::Explorer,
    setup::Setup,
    world::{Fate, Invocation, Own, Place, Request, World},
};

impl Explorer {
    pub(crate) fn kill(&self, world: &mut World, process: usize) {
        self.setup.witness.saw("death");
        let (dead, alive) = std::mem::take(&mut world.invocations)
            .into_iter()
            .partition(|one| one.own.process == process);
        world.invocations = alive;
        let dead: Vec<Invocation> = dead;
        for invocation in dead {
            let own = invocation.own;
            for record in &own.records {
                let delivery = &mut world.source[*record];
                if let Place::InFlight(visible) = delivery.place {
                    delivery.place = Place::Source(visible);
                }
            }
            for handler in &own.running {
                let key = self.setup.messages[own.records[handler.at]].key;
                if self.setup.poison && key > 0 {
                    self.setup.witness.saw("harmed handler");
                    world.harmed[key] += 1;
                    self.setup.witness.harmed(world.harmed[key]);
                }
            }
            for call in own.calls {
                if let Request::Write(writes) = call.request {
                    let now = world.now;
                    world.strays.extend(writes.into_iter().map(|write| (write, now)));
                }
            }
        }
        world.processes[process].restart();
    }
}

/// The invocation has returned its response: its messages are acknowledged, or received again.
pub(crate) fn end(setup: &Setup, world: &mut World, own: &Own) {
    let mut is_behind = false;
    for (record, fate) in own.records.iter().zip(&own.outcomes) {
        let delivery = &mut world.source[*record];
        let fate = fate.expect("each record has an outcome");
        is_behind |= setup.whole && fate == Fate::Returned;
        let fate = if is_behind { Fate::Returned } else { fate };
        delivery.place = match (fate, delivery.place) {
            (Fate::Acknowledged, _) => Place::Acknowledged,
            (Fate::Permanent, _) => Place::Permanent,
            (Fate::Returned, Place::InFlight(visible)) => Place::Source(visible),
            (Fate::Returned, place) => place,
        };
    }
}
