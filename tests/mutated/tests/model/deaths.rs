//! What a process leaves behind when it dies.

use crate::{
    explorer::Explorer,
    invocation::forget,
    world::{Invocation, Place, Request, World},
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
            forget(world, own.number);
        }
        world.processes[process].restart();
    }
}
