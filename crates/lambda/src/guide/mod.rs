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
//! | [Failure modes](failure_modes) | what happens when something goes wrong; diverting records; every outcome |
//! | [Testing](testing) | a handler, a function, a key, the real binary, faults |
//! | [Logs and traces](logs_and_traces) | the lines of deliveries, the span of each handler, the producer's trace |
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

/// Makes a module of each page of a folder, whose documentation is the page's text.
macro_rules! pages {
    ($folder:literal $($page:ident $({ $($inner:tt)* })?)*) => {
        $(
            pub mod $page {
                #![doc = include_str!(concat!($folder, stringify!($page), ".md"))]
                $($($inner)*)?
            }
        )*
    };
}

pages! {
    ""
    quick_start concepts keys
    sources {
        pages! {
            "sources/"
            active_mq document_db dynamodb_streams envelopes event_bridge http invoke kafka kinesis pipes rabbit_mq s3
            scheduler sns sqs
        }
    }
    settings stores own_store choosing_a_mode steps outbox recovery failure_modes testing logs_and_traces metrics cost
    performance topologies durable_functions where_it_runs security migrations operating producers
    powertools { pages! { "powertools/" options migration } }
    troubleshooting
}
