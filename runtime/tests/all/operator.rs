//! An operator whose run is not there, not theirs, or something else.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{any, get};
use headway_runtime::operator::{Remote, RemoteError};
use headway_runtime::secret::Secret;
use serde_json::json;
use tokio::net::TcpListener;

use crate::all::live::{SMALL, Setup};

fn remote(url: &str, token: &str) -> Remote {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Remote::new(url, Secret::new(token).unwrap()).unwrap()
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

/// What is said where the configuration is asked for, and where one is handed over.
async fn told(remote: &Remote) -> [String; 2] {
    let asked = remote.config().await.unwrap_err();
    let handed = remote.reconfigure("[queue]\nmax_size = 64\n", false).await.unwrap_err();
    [asked, handed].map(|error| {
        let said = error.to_string();
        assert!(
            said.contains("\nhelp: ") || matches!(error, RemoteError::Refused { .. }),
            "{said}"
        );
        said
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_asked_and_operated() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(SMALL);
    setup.gateway.admin_token = Secret::new("token");
    let live = setup.start(dir.path()).await;
    for end in ["", "/", "/v1", "/v1/"] {
        let remote = remote(&format!("{}{end}", live.url), "token");
        let text = remote.config().await.unwrap();
        let next = text.replace("max_head_off_policyness = 4", "max_head_off_policyness = 3");
        let changed = remote.reconfigure(&next, true).await.unwrap();
        assert!(!changed.applied);
        let changed = &changed.changed[0];
        assert_eq!((changed.old.as_str(), changed.new.as_str()), ("4", "3"));
    }
    let wrong = remote(&live.url, "token").reconfigure("[queue]\nmax_size = 0\n", false).await;
    let said = wrong.unwrap_err().to_string();
    assert!(
        said.contains("it refuses: nothing has changed") && said.contains("body:2:12"),
        "{said}"
    );
    for said in told(&remote(&live.url, "another")).await {
        assert!(said.contains("refuses the admin token (401)"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_the_admin_api_says_how_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let live = Setup::new(SMALL).start(dir.path()).await;
    for said in told(&remote(&live.url, "token")).await {
        assert!(said.contains("no admin API") && said.contains("HEADWAY_ADMIN_TOKEN"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_there_or_somebody_else_is_named() {
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let remote_nobody = remote(&nobody, "token");
    let [asked, handed] = told(&remote_nobody).await;
    assert!(asked.contains("nobody answers") && asked.contains("refused"), "{asked}");
    assert!(handed.contains("no answer to the new configuration"), "{handed}");
    let other = serve(Router::new().fallback(any(async || "<html>welcome</html>"))).await;
    let [asked, _] = told(&remote(&other, "token")).await;
    assert!(asked.contains("this is no Headway: it answers 200"), "{asked}");
    let locked = serve(Router::new().fallback(any(async || StatusCode::UNAUTHORIZED))).await;
    for said in told(&remote(&locked, "token")).await {
        assert!(said.contains("this is no Headway: it answers 401"), "{said}");
    }
    // A Headway, whose answer comes through something that spoils it.
    let title = axum::Json(json!({"info": {"title": "Headway gateway"}}));
    let spoilt = Router::new()
        .route("/openapi.json", get(async move || title))
        .fallback(any(async || "<html>200</html>"));
    let [asked, handed] = told(&remote(&serve(spoilt).await, "token")).await;
    assert!(asked.contains("it answers 200, and says no more"), "{asked}");
    assert!(handed.contains("no JSON"), "{handed}");
}

#[test]
fn what_is_no_address_is_not_asked() {
    for wrong in ["", "127.0.0.1:30000", "ftp://x", "http://", "run.db"] {
        let told = Remote::new(wrong, Secret::new("token").unwrap()).unwrap_err();
        assert_eq!(told, RemoteError::Url(wrong.to_owned()));
        assert!(told.to_string().contains("http://127.0.0.1:30000"));
    }
}
