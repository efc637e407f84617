//! The trace that a record or an invocation belongs to.

use std::fmt;

/// The span that caused a record to be sent, as its producer or AWS noted it beside the payload.
///
/// It is read from a `traceparent` of [W3C Trace Context] or from an X-Ray trace header, and can be written
/// as both. Only its numbers are kept: a text that is malformed or too long counts as missing, and no text of a
/// producer gets into a log.
///
/// ```
/// use lambda_idempotency_engine::call::TraceContext;
///
/// let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
/// let context = TraceContext::parse(header).unwrap();
/// let traceparent = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";
/// assert_eq!(context.traceparent(), traceparent);
/// assert_eq!(TraceContext::parse(traceparent), Some(context));
/// assert_eq!(context.x_ray(), header);
/// ```
///
/// [W3C Trace Context]: https://www.w3.org/TR/trace-context/
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    is_sampled: bool,
}

/// X-Ray and its tools add fields to the header, but no more than a few.
const LONGEST: usize = 1024;

impl TraceContext {
    /// Reads a `traceparent` or an X-Ray trace header. `None` if the text is neither, or names no span.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > LONGEST {
            return None;
        }
        Self::from_w3c(text).or_else(|| Self::from_x_ray(text))
    }

    fn from_w3c(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace_id = hex(parts.next()?, 32)?;
        let span_id = hex(parts.next()?, 16)?;
        let flags = hex(parts.next()?, 2)?;
        // Later versions may add parts. Version 255 is invalid.
        let is_version = version < 0xff && (version > 0 || parts.next().is_none());
        let new = Self::new(trace_id, u64::try_from(span_id).ok()?, flags & 1 == 1);
        new.filter(|_| is_version)
    }

    fn from_x_ray(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let fields = text.split(';').filter_map(|field| field.trim().split_once('='));
            fields.into_iter().find_map(|(found, value)| (found == name).then_some(value))
        };
        let (time, rest) = field("Root")?.strip_prefix("1-")?.split_once('-')?;
        let trace_id = (hex(time, 8)? << 96) | hex(rest, 24)?;
        let span_id = u64::try_from(hex(field("Parent")?, 16)?).ok()?;
        Self::new(trace_id, span_id, field("Sampled") == Some("1"))
    }

    fn new(trace_id: u128, span_id: u64, is_sampled: bool) -> Option<Self> {
        (trace_id != 0 && span_id != 0).then_some(Self { trace_id, span_id, is_sampled })
    }

    /// The trace; never 0.
    #[must_use]
    pub const fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// The span of the trace in which the record was sent; never 0.
    #[must_use]
    pub const fn span_id(&self) -> u64 {
        self.span_id
    }

    /// Whether the producer recorded its span.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// As a `traceparent` of W3C Trace Context.
    #[must_use]
    pub fn traceparent(&self) -> String {
        self.to_string()
    }

    /// As an X-Ray trace header.
    #[must_use]
    pub fn x_ray(&self) -> String {
        let (time, rest) = (self.trace_id >> 96, self.trace_id & ((1 << 96) - 1));
        let (span_id, is_sampled) = (self.span_id, u8::from(self.is_sampled));
        format!("Root=1-{time:08x}-{rest:024x};Parent={span_id:016x};Sampled={is_sampled}")
    }
}

/// As a `traceparent` of W3C Trace Context.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, span_id, is_sampled } = self;
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{:02x}", u8::from(*is_sampled))
    }
}

/// A number of exactly so many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != digits || !is_hex {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::TraceContext;

    const W3C: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_of_a_later_version_is_read_as_far_as_it_is_known() {
        let context = TraceContext::parse(W3C).unwrap();
        assert_eq!(context.trace_id(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.span_id(), context.is_sampled()), (0x00f0_67aa_0ba9_02b7, true));
        let later = W3C.replacen("00", "cc", 1) + "-what-comes-later";
        assert_eq!(TraceContext::parse(&later), Some(context));
    }

    #[test]
    fn fields_of_an_x_ray_header_come_in_any_order() {
        let header = "Self=1-2; Sampled=0; Parent=53995c3f42cd8ad8;Lineage=a:1|b:0; \
                      Root=1-5759e988-bd862e3fe1be46a994272793";
        let context = TraceContext::parse(header).unwrap();
        assert_eq!(
            context.traceparent(),
            "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-00"
        );
    }

    #[test]
    fn a_text_that_names_no_span_is_none() {
        let long = format!("{W3C};{}", "x".repeat(2000));
        for text in [
            "",
            "ann@example.com",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1",
            "Root=1-5759e988-bd862e3fe1be46a99427279;Parent=53995c3f42cd8ad8",
            "Parent=53995c3f42cd8ad8",
            &long,
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }
}
