//! `GET /metrics`, in Prometheus' text format.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use headway_shared::guard::Found;
use headway_shared::metrics::Summary;
use serde_json::{Map, Value};

use super::Gate;
use super::admin::{discarded, refused};
use super::error::ApiError;
use crate::driver::Status;
use crate::judge::Trouble;

/// Counters and gauges of now, and the metrics of the run since it was started.
pub(super) async fn metrics(State(gate): State<Arc<Gate>>) -> Result<Response, ApiError> {
    let summary = gate.driver.summary().await.ok_or_else(ApiError::ending)?;
    let text = page(&gate.driver.status(), &summary);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

fn page(status: &Status, summary: &Summary) -> String {
    let mut page = Page(String::new());
    let (ledger, gauges) = (&status.ledger, &status.gauges);
    let counters = [
        ("offered", "Main requests that arrived.", ledger.offered),
        ("admitted", "Requests that became samples.", ledger.admitted),
        ("served_only", "Main requests served without being recorded.", ledger.served_only),
        ("side_offered", "Side requests that arrived.", ledger.side_offered),
        ("side_refused", "Side requests refused.", ledger.side_refused),
        ("trained", "Samples trained.", ledger.trained),
        ("trained_above_bound", "Samples trained above the bound.", ledger.trained_above_bound),
        ("bound_raised", "Times the adaptive bound was raised.", ledger.bound_raised),
        ("bound_lowered", "Times the adaptive bound was lowered.", ledger.bound_lowered),
        ("ignored", "Inputs that were late, double or unknown.", ledger.ignored),
        ("steps", "Train steps that made a version.", ledger.steps),
        ("failed_steps", "Train steps that failed.", ledger.failed_steps),
        ("publications", "Publications that reached every replica.", ledger.publications),
        ("failed_publications", "Publications that failed.", ledger.failed_publications),
        ("votes", "Votes started.", ledger.votes),
        ("inputs", "Inputs handled.", status.inputs),
        ("committed_inputs", "Inputs on disk.", status.committed),
    ];
    for (name, about, value) in counters {
        page.head(&format!("{name}_total"), "counter", about);
        page.line(&format!("{name}_total"), "", value as f64);
    }
    page.by_reason("refused_total", "Main requests refused, by reason.", &refused(ledger));
    page.by_reason("discarded_total", "Samples discarded, by reason.", &discarded(ledger));
    let failed = Trouble::NAMES.iter().zip(status.failed_votes);
    let failed = failed.map(|(kind, count)| ((*kind).to_owned(), count.into())).collect();
    page.by_reason("failed_votes_total", "Votes without a score, by kind.", &failed);
    let levels = [
        ("learner_version", "The learner's version.", status.learner.number()),
        ("running", "Turns being generated.", gauges.running),
        ("held", "Requests waiting for a place.", gauges.held),
        ("rollout_queue", "Samples in the rollout queue.", gauges.rollout_queue),
        ("output_queue", "Samples in the output queue.", gauges.output_queue),
        ("votes_in_flight", "Votes in flight.", gauges.votes),
        ("outstanding", "Samples outstanding.", gauges.outstanding),
        ("parked", "Samples parked.", gauges.parked),
        ("training", "A train step is running.", u32::from(gauges.training)),
        ("closed", "New requests are answered with 503.", u32::from(gauges.closed)),
        ("replicas_up", "Replicas that hold whole weights.", gauges.replicas_up),
        ("bound", "What the gate binds now, in learner versions.", gauges.bound),
        ("failed", "The run cannot go on.", u32::from(status.error.is_some())),
    ];
    for (name, about, value) in levels {
        page.head(name, "gauge", about);
        page.line(name, "", f64::from(value));
    }
    if let Some(found) = &status.guard {
        page.guard(found);
    }
    for (metric, value) in summary.values() {
        if let Some(value) = value {
            let name = format!("run_{}", metric.name);
            page.head(&name, "gauge", metric.about);
            page.line(&name, "", value);
        }
    }
    page.0
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, about: &str) {
        let about = about.replace('\\', "\\\\").replace('\n', " ");
        let _ = writeln!(self.0, "# HELP headway_{name} {about}\n# TYPE headway_{name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: f64) {
        let _ = writeln!(self.0, "headway_{name}{labels} {value}");
    }

    fn guard(&mut self, found: &Found) {
        let counters = [
            ("guard_windows_total", "Windows held against the envelope.", found.judged),
            ("guard_windows_outside_total", "Windows outside of it.", found.outside),
            ("guard_deviations_total", "Times the run left it.", found.deviations),
        ];
        for (name, about, value) in counters {
            self.head(name, "counter", about);
            self.line(name, "", value as f64);
        }
        let levels = [
            ("guard_deviating", "The run is outside its envelope.", found.deviating),
            ("guard_rolled_back", "The guard has gone back.", found.rolled_back),
        ];
        for (name, about, value) in levels {
            self.head(name, "gauge", about);
            self.line(name, "", f64::from(u8::from(value)));
        }
    }

    fn by_reason(&mut self, name: &str, about: &str, counts: &Map<String, Value>) {
        self.head(name, "counter", about);
        for (reason, count) in counts {
            let value = count.as_u64().unwrap_or(0) as f64;
            self.line(name, &format!("{{reason=\"{reason}\"}}"), value);
        }
    }
}
