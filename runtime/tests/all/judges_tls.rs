//! A judge behind HTTPS, with a certificate of a private authority (`runtime/tests/tls`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_runtime::judge::{Case, Endpoint, Judge, Trouble};
use headway_runtime::shared::config::{Layers, load_live};
use headway_runtime::store::Question;
use headway_runtime::tokenizer::Message;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// An endpoint with TLS that gives every turn a full score; its URL.
async fn endpoint() -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Who does not trust the certificate leaves here.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = vec![0; 64 << 10];
                let _ = stream.read(&mut request).await;
                let body = json!({"choices": [{"message": {"content": "\\boxed{1}"}}]}).to_string();
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                     content-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    format!("https://{address}")
}

async fn vote(url: &str, ca_file: Option<PathBuf>) -> Option<Trouble> {
    let mut text = json!({
        "api": {"base_url": url, "api_key_env": "JUDGE_KEY"}, "judge": {"model": "grader"},
    });
    if let Some(file) = ca_file {
        text["api"]["ca_file"] = json!(file);
    }
    let layers = Layers::new().json("settings.json", text.to_string());
    let settings = load_live(&layers).unwrap().settings;
    let made = Endpoint::new(&settings.api, &settings.judge, |_| Some("key".to_owned())).unwrap();
    let message = Message { role: "user".to_owned(), content: "hello".to_owned() };
    let question =
        Question { messages: vec![message], metadata: Default::default(), prompt: Arc::from([]) };
    let case = Case { question: Arc::new(question), response: "hi".into(), next_state: None };
    made.vote(case).await.trouble
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_authority_is_trusted_where_the_settings_name_it_and_nowhere_else() {
    let url = endpoint().await;
    assert_eq!(vote(&url, Some(file("ca.pem"))).await, None);
    assert_eq!(vote(&url, None).await, Some(Trouble::Unreachable));
}
