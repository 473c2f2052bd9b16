//! `GET /openapi.json`: what the gateway speaks.

use serde_json::{Map, Value};

/// The description of every route, whether it is there in this run or not.
const TEXT: &str = include_str!("openapi.json");

/// The description of the routes that this run has.
pub(super) fn description(has_admin: bool, has_trainer: bool) -> Value {
    let mut description = whole();
    description["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    let absent = |path: &str| {
        (!has_admin && path.starts_with("/admin/"))
            || (!has_trainer && path.starts_with("/trainer/"))
    };
    if let Some(paths) = description["paths"].as_object_mut() {
        paths.retain(|path, _| !absent(path));
    }
    description
}

fn whole() -> Value {
    // A test reads the file.
    serde_json::from_str(TEXT).unwrap_or_else(|_| Map::new().into())
}

#[cfg(test)]
mod tests {
    use super::super::{Routes, routes};
    use super::*;

    fn described(has_admin: bool, has_trainer: bool) -> Vec<String> {
        let description = description(has_admin, has_trainer);
        let mut paths: Vec<_> = description["paths"].as_object().unwrap().keys().cloned().collect();
        paths.sort();
        paths
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        for (has_admin, has_trainer) in [(false, false), (true, false), (false, true), (true, true)]
        {
            let Routes(routes) = routes(has_admin, has_trainer);
            let mut served: Vec<_> = routes.iter().map(|(path, _)| (*path).to_owned()).collect();
            served.sort();
            assert_eq!(described(has_admin, has_trainer), served);
        }
    }

    #[test]
    fn what_it_points_at_is_there() {
        let description = whole();
        let mut open = vec![&description];
        let mut seen = 0;
        while let Some(value) = open.pop() {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(place)) = map.get("$ref") {
                        let found = description.pointer(place.trim_start_matches('#'));
                        assert!(found.is_some(), "{place}");
                        seen += 1;
                    }
                    open.extend(map.values());
                }
                Value::Array(list) => open.extend(list),
                _ => {}
            }
        }
        assert!(seen > 50, "{seen}");
    }
}
