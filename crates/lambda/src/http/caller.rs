//! The caller of a request, and why a request has none.

use lambda_http::http::HeaderName;

/// The caller that a key counts for.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) name: String,
    /// Whether several people may have this name. They must not get each other's cookies.
    pub(super) is_shared: bool,
    /// Whether something before the handler has verified who it is.
    pub(super) is_verified: bool,
}

/// Why a request has no caller. The message contains the remedy, and nothing from the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnknownCaller {
    /// All users of an identity pool have one role and one session name.
    #[error(
        "it was signed with the credentials of a Cognito identity pool and has no identity id; \
         name the caller with `.caller(..)`"
    )]
    CognitoIdentity,
    /// CloudFront signs with its own credentials, and so does a Lambda@Edge function.
    #[error(
        "it was signed by a CloudFront distribution, the same for all viewers; name the caller \
         with `.caller(..)` or `.caller_from_header(..)` or, if callers need not be distinguished, \
         use `.all_callers_are_one()`"
    )]
    Distribution,
    /// The session is named after a person, in a role that other people seem to use, too.
    #[error(
        "it was signed in a role session named like an e-mail address, so several people seem to \
         share the role; name the caller with `.caller(..)`"
    )]
    SharedRole,
    /// The authorizer accepted the request but does not name the caller. The credential does not stand in for it: it may be
    /// renewed between two attempts.
    #[error(
        "its authorizer does not name the caller (no `iss` and `sub`, no `principalId` of the \
         caller's own); let the authorizer put `principalId` into its context, or name the caller \
         with `.caller(..)`"
    )]
    Authorizer,
    #[error("it has more than one `Authorization` header")]
    Repeated,
    #[error(
        "its `Authorization` header changes with each attempt, or has a scheme that is not known \
         to stay the same; name the caller with `.caller(..)`"
    )]
    Scheme,
    #[error(
        "it has cookies and no credential, and a `Cookie` header changes between attempts; read \
         the session in `.caller(..)`"
    )]
    Cookies,
    #[error(
        "no authorizer names its caller, and it has no credential in an `Authorization` header; if another header \
         identifies the caller, set it with `.caller_from_header(..)` or read it in `.caller(..)`; \
         if callers need not be distinguished, use `.all_callers_are_one()`"
    )]
    Anonymous,
    #[error(
        "it does not have exactly one non-empty header `{0}`, from which the function takes the \
         caller"
    )]
    Header(HeaderName),
    #[error("it has a header `{0}`, which only load balancers set, but it did not come from one")]
    NotFromLoadBalancer(HeaderName),
    #[error("`.caller(..)` returned no caller")]
    NotReturned,
    #[error("`.caller(..)` panicked")]
    Panicked,
    #[error("`.verify(..)` panicked")]
    VerifyPanicked,
    /// It has no headers, and `lambda_http` gives it the method `GET`, with which it would pass unprotected.
    #[error(
        "it is a message of a WebSocket API, which has no headers; serve messages in a function of their own, with \
         the source `Invoke` and a key from the message"
    )]
    WebSocket,
}

impl UnknownCaller {
    /// Whether the cause is the function or its API, and not the client's request. A client chooses the headers that it sends
    /// and the names of its roles and sessions.
    pub(super) const fn is_server_error(&self) -> bool {
        matches!(self, Self::Authorizer | Self::Panicked | Self::VerifyPanicked | Self::WebSocket)
    }
}

impl Caller {
    /// A caller of this kind that was verified. Names of different kinds never agree.
    pub(super) fn verified(kind: &str, name: &str) -> Self {
        Self { name: format!("{kind} {name}"), is_shared: false, is_verified: true }
    }

    /// A caller of this kind as the request claims it.
    pub(super) fn claimed(kind: &str, name: &str) -> Self {
        Self { is_verified: false, ..Self::verified(kind, name) }
    }
}
