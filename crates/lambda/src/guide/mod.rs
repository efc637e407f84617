//! The guide: what to know before, while and after putting this library into a function.
//!
//! Begin with [quick start](quick_start), [what makes a key](keys), the page of your [event source](sources), and
//! [failure modes](failure_modes). The others are for when you need them.
//!
//! | page | for |
//! |---|---|
//! | [Quick start](quick_start) | from an empty crate to a function in AWS |
//! | [Concepts](concepts) | how it works, and the words for it |
//! | [Keys](keys) | what makes two deliveries the same work |
//! | [Event sources](sources) | what each source delivers, orders and retries: one page each |
//! | [Policies and settings](settings) | everything that can be set, with its default |
//! | [Stores](stores) | which ones there are, what each can do, and what each may lose |
//! | [Write your own store](own_store) | the contract in five rules, and how to test it |
//! | [Choosing a mode](choosing_a_mode) | completing after the effects, committing both in one transaction, or only excluding |
//! | [Steps](steps) | parts of a handler that run once over all attempts |
//! | [The outbox](outbox) | messages that are stored with the completion and sent after it |
//! | [Recovery](recovery) | running again what nothing delivers again |
//! | [Failure modes](failure_modes) | what happens when something goes wrong; putting records aside; every outcome |
//! | [Testing](testing) | a handler, a function, a key, the real binary, faults |
//! | [Logs and traces](logs_and_traces) | the line of each delivery, the span of each handler, the producer's trace |
//! | [Metrics](metrics) | what is counted and measured, and how CloudWatch gets it |
//! | [Operating a table](operating) | what is stuck and why; having work done again; redrives |
//! | [Cost](cost) | requests, and dollars per million records |
//! | [Performance](performance) | processor time, requests, time, memory and dollars, beside a function by hand |
//! | [Topologies](topologies) | templates; what SNS FIFO, SQS FIFO and this library deduplicate, each |
//! | [Durable functions](durable_functions) | a dispatcher that starts each execution once, and what each layer deduplicates |
//! | [Where it runs](where_it_runs) | Managed Instances, VPC, tenants, global tables |
//! | [Security](security) | logs, the table, permissions, tenants, hostile payloads |
//! | [Moving work](migrations) | between sources and functions, without doing it twice |
//! | [Producers](producers) | keys and deduplication ids before sending |
//! | [Coming from Powertools](powertools) | a table that a Python or TypeScript function shares or had before |
//! | [Powertools, option by option](powertools::options) | every option and error of Powertools, and what there is here |
//! | [From Powertools, step by step](powertools::migration) | four versions of a function, without work that is done twice |
//! | [Troubleshooting](troubleshooting) | what a message means, and what to do |
//!
//! For contributors and auditors, the repository has more: [what is guaranteed, and the tests that show
//! it][guarantees], [the model][model], [the chaos rig][chaos], and the [decisions][decisions].
//!
//! [guarantees]: https://github.com/lambda-idempotency/lambda-idempotency/blob/main/docs/guarantees.md
//! [model]: https://github.com/lambda-idempotency/lambda-idempotency/blob/main/docs/model.md
//! [chaos]: https://github.com/lambda-idempotency/lambda-idempotency/blob/main/docs/chaos.md
//! [decisions]: https://github.com/lambda-idempotency/lambda-idempotency/blob/main/docs/decisions/README.md

pub mod quick_start {
    #![doc = include_str!("quick_start.md")]
}
pub mod concepts {
    #![doc = include_str!("concepts.md")]
}
pub mod keys {
    #![doc = include_str!("keys.md")]
}
pub mod sources {
    #![doc = include_str!("sources.md")]

    pub mod active_mq {
        #![doc = include_str!("sources/active_mq.md")]
    }
    pub mod document_db {
        #![doc = include_str!("sources/document_db.md")]
    }
    pub mod dynamodb_streams {
        #![doc = include_str!("sources/dynamodb_streams.md")]
    }
    pub mod envelopes {
        #![doc = include_str!("sources/envelopes.md")]
    }
    pub mod event_bridge {
        #![doc = include_str!("sources/event_bridge.md")]
    }
    pub mod http {
        #![doc = include_str!("sources/http.md")]
    }
    pub mod invoke {
        #![doc = include_str!("sources/invoke.md")]
    }
    pub mod kafka {
        #![doc = include_str!("sources/kafka.md")]
    }
    pub mod kinesis {
        #![doc = include_str!("sources/kinesis.md")]
    }
    pub mod pipes {
        #![doc = include_str!("sources/pipes.md")]
    }
    pub mod rabbit_mq {
        #![doc = include_str!("sources/rabbit_mq.md")]
    }
    pub mod s3 {
        #![doc = include_str!("sources/s3.md")]
    }
    pub mod scheduler {
        #![doc = include_str!("sources/scheduler.md")]
    }
    pub mod sns {
        #![doc = include_str!("sources/sns.md")]
    }
    pub mod sqs {
        #![doc = include_str!("sources/sqs.md")]
    }
}
pub mod settings {
    #![doc = include_str!("settings.md")]
}
pub mod stores {
    #![doc = include_str!("stores.md")]
}
pub mod own_store {
    #![doc = include_str!("own_store.md")]
}
pub mod choosing_a_mode {
    #![doc = include_str!("choosing_a_mode.md")]
}
pub mod steps {
    #![doc = include_str!("steps.md")]
}
pub mod outbox {
    #![doc = include_str!("outbox.md")]
}
pub mod recovery {
    #![doc = include_str!("recovery.md")]
}
pub mod failure_modes {
    #![doc = include_str!("failure_modes.md")]
}
pub mod testing {
    #![doc = include_str!("testing.md")]
}
pub mod logs_and_traces {
    #![doc = include_str!("logs_and_traces.md")]
}
pub mod metrics {
    #![doc = include_str!("metrics.md")]
}
pub mod cost {
    #![doc = include_str!("cost.md")]
}
pub mod performance {
    #![doc = include_str!("performance.md")]
}
pub mod topologies {
    #![doc = include_str!("topologies.md")]
}
pub mod durable_functions {
    #![doc = include_str!("durable_functions.md")]
}
pub mod where_it_runs {
    #![doc = include_str!("where_it_runs.md")]
}
pub mod security {
    #![doc = include_str!("security.md")]
}
pub mod migrations {
    #![doc = include_str!("migrations.md")]
}
pub mod operating {
    #![doc = include_str!("operating.md")]
}
pub mod producers {
    #![doc = include_str!("producers.md")]
}
pub mod powertools {
    #![doc = include_str!("powertools.md")]

    pub mod options {
        #![doc = include_str!("powertools/options.md")]
    }
    pub mod migration {
        #![doc = include_str!("powertools/migration.md")]
    }
}
pub mod troubleshooting {
    #![doc = include_str!("troubleshooting.md")]
}
