//! The guide: what to know before, while and after putting this library into a function.
//!
//! | page | for |
//! |---|---|
//! | [Event sources](sources) | what each source delivers, orders and retries: one page each |
//! | [Moving work](migrations) | between sources and functions, without doing it twice |
//! | [Producers](producers) | keys and deduplication ids before sending |
//! | [Powertools](powertools) | a table that a Python or TypeScript function shares or had before |

pub mod migrations {
    #![doc = include_str!("migrations.md")]
}
pub mod powertools {
    #![doc = include_str!("powertools.md")]
}
pub mod producers {
    #![doc = include_str!("producers.md")]
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
