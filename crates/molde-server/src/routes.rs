//! Which function answers which path.

use std::sync::Arc;

use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::anthropic::{complete, messages};
use crate::app::App;
use crate::body::collect;
use crate::error::ServerError;
use crate::fault::{Dialect, Fault, Kind};
use crate::guard::{RequestId, guard};
use crate::lint::{LintRequest, lint};
use crate::wire::read;
use crate::{ollama, openai};

type Shared = State<Arc<App>>;

/// The whole server as a service.
///
/// # Errors
/// An origin that is none.
pub(crate) fn router(app: &Arc<App>) -> Result<Router, ServerError> {
    let routes = Router::new()
        .route("/", get(playground))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(description))
        .route(
            "/v1/models",
            get(|State(app): Shared| async move { Json(openai::models::list(&app)) }),
        )
        .route("/v1/models/{*id}", get(model))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route("/v1/responses", post(responses))
        .route("/v1/responses/{id}", get(response).delete(delete_response))
        .route("/v1/messages", post(anthropic_messages))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .route("/v1/complete", post(anthropic_complete))
        .route("/api/chat", post(ollama_chat))
        .route("/api/generate", post(ollama_generate))
        .route(
            "/api/tags",
            get(|State(app): Shared| async move { Json(ollama::models::tags(&app)) }),
        )
        .route("/api/ps", get(|State(app): Shared| async move { Json(ollama::models::ps(&app)) }))
        .route("/api/version", get(|| async { Json(ollama::models::version()) }))
        .route("/api/show", post(show))
        .route("/molde/lint", post(lint_schema))
        .route("/api/embed", post(no_embeddings))
        .route("/api/embeddings", post(no_embeddings))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(|_| {
            tracing::error!("a panic ended a request");
            Fault::internal().response(Dialect::OpenAi, "")
        }))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app));
    if app.config.origins.is_empty() {
        return Ok(routes);
    }
    let origin = if app.config.origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        let origins = app.config.origins.iter().map(|origin| {
            let is_origin = origin.contains("://") && !origin.ends_with('/');
            HeaderValue::from_str(origin)
                .ok()
                .filter(|_| is_origin)
                .ok_or_else(|| ServerError::Origin { origin: origin.clone() })
        });
        AllowOrigin::list(origins.collect::<Result<Vec<_>, _>>()?)
    };
    let cors = CorsLayer::new()
        .allow_origin(origin)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request());
    Ok(routes.layer(cors))
}

fn reply(result: Result<impl IntoResponse, Fault>, dialect: Dialect, id: &RequestId) -> Response {
    match result {
        Ok(response) => response.into_response(),
        Err(fault) => fault.response(dialect, &id.0),
    }
}

async fn playground() -> Response {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src \
                          'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; \
                          form-action 'none'; frame-ancestors 'none'";
    let page = Html(include_str!("playground.html"));
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], page).into_response()
}

async fn health(State(app): Shared) -> Response {
    let status = if app.is_draining() { "stopping" } else { "ok" };
    Json(json!({"status": status, "model": app.config.model_id, "queue": app.generator.waiting(),
        "running": app.generator.running()}))
    .into_response()
}

async fn metrics(State(app): Shared) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (headers, app.metrics.write(&app)).into_response()
}

async fn description() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("openapi.json")).into_response()
}

async fn model(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    // Both SDKs ask here; Anthropic's says its version.
    let is_anthropic = request.headers().contains_key("anthropic-version");
    let dialect = if is_anthropic { Dialect::Anthropic } else { Dialect::OpenAi };
    reply(openai::models::retrieve(&app, &name).map(Json), dialect, &id)
}

async fn chat(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    reply(openai::chat::chat(app, request.into_body()).await, Dialect::OpenAi, &id)
}

async fn completions(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    reply(openai::completions::completions(app, request.into_body()).await, Dialect::OpenAi, &id)
}

async fn responses(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    reply(openai::responses::create(app, request.into_body()).await, Dialect::OpenAi, &id)
}

async fn response(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    Path(name): Path<String>,
) -> Response {
    reply(openai::responses::retrieve(&app, &name), Dialect::OpenAi, &id)
}

async fn delete_response(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    Path(name): Path<String>,
) -> Response {
    reply(openai::responses::delete(&app, &name), Dialect::OpenAi, &id)
}

async fn anthropic_messages(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    let answer = messages::messages(app, request, &id.0).await;
    reply(answer, Dialect::Anthropic, &id)
}

async fn count_tokens(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    reply(messages::count_tokens(app, request).await, Dialect::Anthropic, &id)
}

async fn anthropic_complete(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    reply(complete::complete(app, request.into_body()).await, Dialect::Anthropic, &id)
}

async fn ollama_chat(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    reply(ollama::generate::chat(app, request.into_body()).await, Dialect::Ollama, &id)
}

async fn ollama_generate(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    reply(ollama::generate::generate(app, request.into_body()).await, Dialect::Ollama, &id)
}

async fn show(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    let shown = match collect(&app, request.into_body()).await {
        Ok(body) => ollama::models::show(&app, &body).map(Json),
        Err(fault) => Err(fault),
    };
    reply(shown, Dialect::Ollama, &id)
}

async fn lint_schema(
    State(app): Shared,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Response {
    let linted = match collect(&app, request.into_body()).await {
        Ok(body) => match read::<LintRequest>(&body) {
            Ok(request) => app.blocking(move |app| lint(app, &request)).await.map(Json),
            Err(fault) => Err(fault),
        },
        Err(fault) => Err(fault),
    };
    reply(linted, Dialect::OpenAi, &id)
}

async fn no_embeddings(Extension(id): Extension<RequestId>) -> Response {
    let message = "this server makes no embeddings: its model writes text";
    Fault::new(Kind::NotImplemented, message).response(Dialect::Ollama, &id.0)
}

async fn unknown_path(Extension(id): Extension<RequestId>, request: Request) -> Response {
    let fault = Fault::new(Kind::NotFound, "there is nothing at this path: see /openapi.json");
    fault.response(Dialect::of_path(request.uri().path()), &id.0)
}

async fn wrong_method(Extension(id): Extension<RequestId>, request: Request) -> Response {
    let message = format!("this path does not answer {}", request.method());
    let fault = Fault::new(Kind::Method, message);
    fault.response(Dialect::of_path(request.uri().path()), &id.0)
}
