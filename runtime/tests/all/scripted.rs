//! What servers that follow a script have in common: a state that tests look at and change, what was
//! called, and a life: they die with all their connections, and come back on the same port.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

/// What is answered to the ids of a prompt.
pub(crate) type Answer = dyn Fn(&[u32]) -> Vec<u32> + Send + Sync;

/// The state of a server.
pub(crate) struct Shared<T> {
    inner: Mutex<T>,
    changed: watch::Sender<()>,
    calls: Mutex<Vec<(String, Value)>>,
    pub(crate) answer: Box<Answer>,
}

impl<T> Shared<T> {
    pub(crate) fn new(inner: T, answer: Box<Answer>) -> Arc<Self> {
        let (changed, _) = watch::channel(());
        Arc::new(Self { inner: Mutex::new(inner), changed, calls: Mutex::default(), answer })
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.inner.lock().unwrap());
        self.changed.send_replace(());
        result
    }

    pub(crate) async fn until<R>(&self, mut wished: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut changes = self.changed.subscribe();
        loop {
            if let Some(found) = wished(&mut self.inner.lock().unwrap()) {
                return found;
            }
            changes.changed().await.unwrap();
        }
    }

    /// The calls of a path, in order.
    pub(crate) fn calls(&self, path: &str) -> Vec<Value> {
        let calls = self.calls.lock().unwrap();
        let calls = calls.iter().filter(|(called, _)| called == path);
        calls.map(|(_, body)| body.clone()).collect()
    }

    /// Waits for the n-th call of a path.
    pub(crate) async fn until_called(&self, path: &str, times: usize) {
        self.until(|_| (self.calls(path).len() >= times).then_some(())).await;
    }
}

/// Keeps what was called, with its query.
pub(crate) async fn remember<T>(
    State(shared): State<Arc<Shared<T>>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path_and_query().unwrap().to_string();
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    shared.calls.lock().unwrap().push((path, value));
    shared.changed.send_replace(());
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

/// Where a server lives.
pub(crate) struct Life {
    address: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Life {
    pub(crate) fn new() -> Self {
        Self { address: SocketAddr::from(([127, 0, 0, 1], 0)), running: None }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// It dies with everything that runs on it.
    pub(crate) fn die(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            thread.join().unwrap();
        }
    }

    /// It starts, on the port that it had.
    pub(crate) fn begin(&mut self, router: Router) {
        self.die();
        let (stop, stopped) = oneshot::channel();
        let (said, address) = std::sync::mpsc::channel();
        let wanted = self.address;
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind(wanted).await.unwrap();
                said.send(listener.local_addr().unwrap()).unwrap();
                tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
                let _ = stopped.await;
            });
            // Connections end with the runtime.
        });
        self.address = address.recv().unwrap();
        self.running = Some((stop, thread));
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.die();
    }
}
