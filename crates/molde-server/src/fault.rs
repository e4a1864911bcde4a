//! The one error of the HTTP side, and how each dialect writes it.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use molde::{MoldeError, Offender, SchemaError};
use molde_infer::InferError;
use serde_json::{Value, json};

/// Seconds after which a client that met a full queue may try again.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Who is answered, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
    Ollama,
}

impl Dialect {
    /// The dialect of a path, for whatever is answered before a route is found.
    pub(crate) fn of_path(path: &str) -> Self {
        if path.starts_with("/v1/messages") || path == "/v1/complete" {
            Self::Anthropic
        } else if path.starts_with("/api/") {
            Self::Ollama
        } else {
            Self::OpenAi
        }
    }
}

/// What kind of fault: status, types and codes follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request is not what the dialect says.
    Invalid,
    /// A schema, pattern or list of choices that cannot be enforced.
    Form,
    /// The prompt does not fit.
    ContextLength,
    /// The shortest answer does not fit into the token limit.
    BudgetTooSmall,
    UnknownModel,
    NotFound,
    Method,
    Unauthorized,
    ForeignHost,
    TooLarge,
    SlowBody,
    QueueFull,
    Draining,
    Deadline,
    NotImplemented,
    Internal,
}

impl Kind {
    /// The name in metrics and in OpenAI's `code`.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Invalid => "invalid_request",
            Self::Form => "invalid_schema",
            Self::ContextLength => "context_length_exceeded",
            Self::BudgetTooSmall => "max_tokens_too_small",
            Self::UnknownModel => "model_not_found",
            Self::NotFound => "not_found",
            Self::Method => "method_not_allowed",
            Self::Unauthorized => "invalid_api_key",
            Self::ForeignHost => "foreign_host",
            Self::TooLarge => "request_too_large",
            Self::SlowBody => "request_timeout",
            Self::QueueFull => "rate_limit_exceeded",
            Self::Draining => "server_is_stopping",
            Self::Deadline => "deadline_exceeded",
            Self::NotImplemented => "not_implemented",
            Self::Internal => "internal_error",
        }
    }

    fn status(self, dialect: Dialect) -> StatusCode {
        match self {
            Self::Invalid | Self::Form | Self::ContextLength | Self::BudgetTooSmall => {
                StatusCode::BAD_REQUEST
            }
            Self::UnknownModel | Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::ForeignHost => StatusCode::FORBIDDEN,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::QueueFull if dialect == Dialect::Anthropic => {
                StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
            }
            Self::QueueFull => StatusCode::TOO_MANY_REQUESTS,
            Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
            Self::Deadline => StatusCode::GATEWAY_TIMEOUT,
            Self::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn openai_type(self) -> &'static str {
        match self {
            Self::Unauthorized => "authentication_error",
            Self::ForeignHost => "permission_error",
            Self::QueueFull => "rate_limit_error",
            Self::Draining | Self::Deadline | Self::NotImplemented | Self::Internal => {
                "server_error"
            }
            _ => "invalid_request_error",
        }
    }

    fn anthropic_type(self) -> &'static str {
        match self {
            Self::UnknownModel | Self::NotFound => "not_found_error",
            Self::Unauthorized => "authentication_error",
            Self::ForeignHost => "permission_error",
            Self::TooLarge => "request_too_large",
            Self::QueueFull | Self::Draining => "overloaded_error",
            Self::Deadline => "timeout_error",
            Self::NotImplemented | Self::Internal => "api_error",
            _ => "invalid_request_error",
        }
    }

    /// Whether the same request may succeed a little later.
    fn is_temporary(self) -> bool {
        matches!(self, Self::QueueFull | Self::Draining)
    }
}

/// A request that is not answered as asked.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    /// The field of the request that is to blame.
    pub(crate) param: Option<String>,
    /// The places in a schema that are to blame.
    offenders: Vec<Offender>,
}

impl Fault {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), param: None, offenders: Vec::new() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    pub(crate) fn internal() -> Self {
        Self::new(Kind::Internal, "the server failed on this request; others are not affected")
    }

    /// Names the field of the request that is to blame.
    pub(crate) fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// A schema that cannot be enforced; `what` says which one.
    pub(crate) fn schema(what: &str, error: &SchemaError) -> Self {
        let offenders = match error {
            SchemaError::Malformed(offenders) | SchemaError::Refused(offenders) => {
                offenders.0.clone()
            }
            SchemaError::Unsatisfiable { pointer } => vec![Offender {
                pointer: pointer.clone(),
                keyword: String::new(),
                reason: "accepts no value".to_owned(),
            }],
            SchemaError::Limit { pointer, name, .. } => vec![Offender {
                pointer: pointer.clone(),
                keyword: String::new(),
                reason: format!("exceeds the limit {name}"),
            }],
            _ => Vec::new(),
        };
        Self { offenders, ..Self::new(Kind::Form, format!("{what} cannot be enforced: {error}")) }
    }

    /// The body of the error in a dialect.
    pub(crate) fn body(&self, dialect: Dialect, request_id: &str) -> Value {
        let message = &self.message;
        let mut body = match dialect {
            Dialect::OpenAi => json!({"error": {
                "message": message,
                "type": self.kind.openai_type(),
                "param": self.param,
                "code": self.kind.code(),
            }}),
            Dialect::Anthropic => json!({
                "type": "error",
                "error": {"type": self.kind.anthropic_type(), "message": message},
                "request_id": request_id,
            }),
            Dialect::Ollama => json!({"error": message}),
        };
        if !self.offenders.is_empty() {
            let offenders: Vec<_> = self
                .offenders
                .iter()
                .map(|offender| {
                    json!({
                        "pointer": offender.pointer,
                        "keyword": offender.keyword,
                        "reason": offender.reason,
                    })
                })
                .collect();
            body["molde"] = json!({"offenders": offenders});
        }
        body
    }

    /// The response of the error in a dialect.
    pub(crate) fn response(&self, dialect: Dialect, request_id: &str) -> Response {
        let mut response = (
            self.kind.status(dialect),
            [(header::CONTENT_TYPE, "application/json")],
            self.body(dialect, request_id).to_string(),
        )
            .into_response();
        let headers = response.headers_mut();
        let should_retry = if self.kind.is_temporary() { "true" } else { "false" };
        headers.insert(
            HeaderName::from_static("x-should-retry"),
            HeaderValue::from_static(should_retry),
        );
        if self.kind.is_temporary() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
            headers.insert(
                HeaderName::from_static("retry-after-ms"),
                HeaderValue::from(RETRY_AFTER_SECONDS * 1000),
            );
        }
        if self.kind == Kind::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self.kind);
        response
    }
}

impl From<InferError> for Fault {
    fn from(error: InferError) -> Self {
        let kind = match error {
            InferError::ContextOverflow { .. } => Kind::ContextLength,
            InferError::BudgetTooSmall { .. } => Kind::BudgetTooSmall,
            InferError::TemplateTool { .. }
            | InferError::TemplateContent { .. }
            | InferError::Template { .. }
            | InferError::EmptyPrompt => Kind::Invalid,
            InferError::DeadlineExceeded => Kind::Deadline,
            _ => {
                tracing::error!(%error, "the model failed");
                return Self::internal();
            }
        };
        Self::new(kind, error.to_string())
    }
}

impl From<MoldeError> for Fault {
    fn from(error: MoldeError) -> Self {
        tracing::error!(%error, "a request could not be prepared");
        Self::internal()
    }
}
