//! A calibration as one JSON document.

use serde_json::{Value, json};

use super::Calibrated;
use crate::report::number;

/// All that was fitted, with what could not be seen.
#[must_use]
pub fn document(found: &Calibrated) -> Value {
    let number = |value: Option<f64>| number::json(value);
    let items = found.items.iter().filter(|item| item.family != "setting").map(|item| {
        let parameters: Vec<Value> = item
            .parameters
            .iter()
            .map(|(key, parameter)| {
                let [value, low, high] =
                    [parameter.value, parameter.low, parameter.high].map(|n| number(Some(n)));
                json!({"key": key, "value": value, "low": low, "high": high})
            })
            .collect();
        json!({
            "what": item.what,
            "table": item.table,
            "law": item.family,
            "parameters": parameters,
            "count": item.count,
            "cut": item.cut,
            "mean": number(item.mean()),
            "distance": number(item.distance.map(|distance| distance.0)),
            "p_value": number(item.distance.map(|distance| distance.1)),
            "r_squared": number(item.r_squared),
        })
    });
    json!({"fitted": items.collect::<Vec<_>>(), "notes": found.notes})
}
