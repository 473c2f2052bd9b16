//! JSON documents that are written from structs, and the JSON schemas of those structs.
//!
//! A schema is made of what the code that writes has: the fields, their types, and their comments. So it
//! cannot differ from what is written.

use headway_shared::config::Config;
use headway_shared::config::schema::plain;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::number;

/// A type with a JSON schema.
pub(crate) trait Described {
    /// The schema of its values.
    fn schema() -> Value;
}

/// A field of a document.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Its comment, line by line.
    pub(crate) about: &'static [&'static str],
    /// What serde is told of it.
    pub(crate) serde: &'static str,
    pub(crate) schema: Value,
}

/// Defines a struct that serde reads and writes, with its schema.
macro_rules! described {
    (
        $(#[doc = $about:literal])+
        #[derive($($derived:ident),+)]
        pub struct $name:ident {
            $($(#[doc = $said:literal])+ $(#[serde($($serde:tt)+)])? pub $field:ident: $kind:ty,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derived),+, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[doc = $said])+ $(#[serde($($serde)+)])? pub $field: $kind,)+
        }

        impl $crate::report::described::Described for $name {
            fn schema() -> serde_json::Value {
                $crate::report::described::object(&[$($about),+], vec![$(
                    $crate::report::described::Field {
                        name: stringify!($field),
                        about: &[$($said),+],
                        serde: concat!($(stringify!($($serde)+))?),
                        schema: <$kind as $crate::report::described::Described>::schema(),
                    },
                )+])
            }
        }
    };
}
pub(crate) use described;

/// The schema of a struct: what has no default is there always, and nothing else is there.
pub(crate) fn object(about: &[&str], fields: Vec<Field>) -> Value {
    let always = fields.iter().filter(|field| !field.serde.contains("default"));
    let required: Vec<&str> = always.map(|field| field.name).collect();
    let mut properties = Map::new();
    for Field { name, about, mut schema, .. } in fields {
        schema["description"] = text(about).into();
        properties.insert(name.to_owned(), schema);
    }
    json!({
        "type": "object",
        "description": text(about),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The lines of a comment as one, without marks of code and links.
fn text(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    plain(&lines.join(" "))
}

/// A document's schema, as a file of its own.
pub(crate) fn schema<T: Described>(title: &str) -> Value {
    let mut document = Map::new();
    document.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
    document.insert("title".to_owned(), title.into());
    if let Value::Object(schema) = T::schema() {
        document.extend(schema);
    }
    Value::Object(document)
}

/// A number as a result has it: rounded, null where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounded(pub Option<f64>);

impl Serialize for Rounded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number::json(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

/// An object whose keys are names, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Named(entries))
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}

/// A number, a text, or nothing: a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Setting(pub Value);

impl Described for Setting {
    fn schema() -> Value {
        json!({ "type": ["number", "string", "null"] })
    }
}

impl<T: Described> Described for Named<T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl<T: Described> Described for Option<T> {
    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "type": "null" }] })
    }
}

impl Described for Rounded {
    fn schema() -> Value {
        json!({ "type": ["number", "null"] })
    }
}

/// The scheduling sections as the core has them: their keys are those of the core, and no file has them.
impl Described for Config {
    fn schema() -> Value {
        json!({ "type": "object" })
    }
}

macro_rules! simple {
    ($($kind:ty: $schema:tt),+) => {
        $(impl Described for $kind {
            fn schema() -> Value {
                json!($schema)
            }
        })+
    };
}

simple!(
    String: { "type": "string" },
    bool: { "type": "boolean" },
    f64: { "type": "number" },
    u32: { "type": "integer", "minimum": 0 },
    u64: { "type": "integer", "minimum": 0 },
    usize: { "type": "integer", "minimum": 0 }
);

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro defines what others read")]
mod tests {
    use super::*;

    described! {
        /// What is written,
        /// for [a test](nowhere).
        #[derive(Debug, PartialEq)]
        pub struct Written {
            /// `one`
            pub name: String,
            /// How many.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub count: Option<u32>,
            /// Numbers by name.
            pub values: Named<Rounded>,
        }
    }

    #[test]
    fn a_schema_has_the_fields_of_the_struct_and_what_their_comments_say() {
        let schema = schema::<Written>("Something");
        assert_eq!(schema["title"], "Something");
        assert_eq!(schema["description"], "What is written, for a test.");
        assert_eq!(schema["required"], json!(["name", "values"]));
        assert_eq!(schema["properties"]["name"], json!({ "type": "string", "description": "one" }));
        let values = &schema["properties"]["values"]["additionalProperties"];
        assert_eq!(values, &json!({ "type": ["number", "null"] }));
    }

    #[test]
    fn what_is_written_reads_back_in_its_order() {
        let values = [("b", Some(0.5)), ("a", None)];
        let values = values.map(|(name, value)| (name.to_owned(), Rounded(value)));
        let written = Written { name: "one".into(), count: None, values: Named(values.to_vec()) };
        let text = serde_json::to_string(&written).unwrap();
        assert_eq!(text, r#"{"name":"one","values":{"b":0.5,"a":null}}"#);
        assert_eq!(serde_json::from_str::<Written>(&text).unwrap(), written);
    }
}
