//! `GET /openapi.json`: what the gateway speaks.

use serde_json::{Map, Value};

use super::Has;

/// The description of every route, whether it is there in this run or not.
const TEXT: &str = include_str!("openapi.json");

/// Where a request offers tools, or tells of their calls.
const TOOLS: [&str; 4] = [
    "/components/schemas/ChatRequest/properties/tools",
    "/components/schemas/Message/properties/tool_calls",
    "/components/schemas/Tools",
    "/components/schemas/AssistantMessage/properties/content/oneOf/1/items/oneOf",
];

/// The description of the routes that this run has.
pub(super) fn description(has: Has) -> Value {
    let mut description = whole();
    description["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    let absent = |path: &str| {
        (!has.admin && path.starts_with("/admin/"))
            || (!has.trainer && path.starts_with("/trainer/"))
            || (!has.dashboard && path.starts_with("/dashboard"))
    };
    if let Some(paths) = description["paths"].as_object_mut() {
        paths.retain(|path, _| !absent(path));
    }
    if !has.tools {
        for place in TOOLS {
            if let Some(found) = description.pointer_mut(place) {
                without_tools(found);
            }
        }
    }
    description
}

/// There may be none: of a list no element, of alternatives not the last.
fn without_tools(place: &mut Value) {
    match place {
        Value::Object(list) => drop(list.insert("maxItems".to_owned(), 0.into())),
        Value::Array(alternatives) => drop(alternatives.pop()),
        _ => {}
    }
}

fn whole() -> Value {
    // A test reads the file.
    serde_json::from_str(TEXT).unwrap_or_else(|_| Map::new().into())
}

#[cfg(test)]
mod tests {
    use super::super::{Routes, routes};
    use super::*;

    fn described(has: Has) -> Vec<String> {
        let description = description(has);
        let mut paths: Vec<_> = description["paths"].as_object().unwrap().keys().cloned().collect();
        paths.sort();
        paths
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        for which in 0..8_u8 {
            let (admin, trainer, dashboard) = (which & 1 > 0, which & 2 > 0, which & 4 > 0);
            let has = Has { admin, trainer, dashboard, tools: false };
            let Routes(routes) = routes(has);
            let mut served: Vec<_> = routes.iter().map(|(path, _)| (*path).to_owned()).collect();
            served.sort();
            assert_eq!(described(has), served);
        }
    }

    #[test]
    fn tools_are_described_where_there_are_some() {
        for tools in [false, true] {
            let description = description(Has { tools, ..Has::default() });
            for place in TOOLS {
                let found = description.pointer(place).unwrap();
                let none =
                    found["maxItems"] == 0 || found.as_array().is_some_and(|all| all.len() == 2);
                assert_eq!(none, !tools, "{place}");
            }
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
