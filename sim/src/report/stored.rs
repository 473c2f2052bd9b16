//! Results as files of a folder: tables, and what they are about.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::csv::Csv;
use super::results::ReadError;

/// The files of a result, by name. What it is about comes last: whoever finds it finds the others.
///
/// # Errors
/// A table's row is not as long as its header.
pub(crate) fn files<'a>(
    tables: impl IntoIterator<Item = (&'a str, &'a Csv)>,
    (name, meta): (&str, &impl Serialize),
) -> io::Result<Vec<(String, Vec<u8>)>> {
    let table = |(name, table): (&str, &Csv)| Ok((name.to_owned(), table.to_bytes()?));
    let mut files: Vec<_> = tables.into_iter().map(table).collect::<io::Result<_>>()?;
    let mut meta = serde_json::to_vec_pretty(meta)?;
    meta.push(b'\n');
    files.push((name.to_owned(), meta));
    Ok(files)
}

/// What a result of a folder is about; `None`: the folder holds none of this kind.
///
/// # Errors
/// The file cannot be read, or is malformed.
pub(crate) fn meta<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, ReadError> {
    let path = folder.join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let meta = serde_json::from_slice(&bytes(&path)?);
    meta.map(Some).map_err(|error| ReadError::Malformed { path, message: error.to_string() })
}

/// A table of a folder.
///
/// # Errors
/// It is missing or malformed.
pub(crate) fn table(folder: &Path, name: &str) -> Result<Csv, ReadError> {
    let path = folder.join(name);
    let table = Csv::parse(&bytes(&path)?);
    table.map_err(|error| ReadError::Malformed { path, message: error.to_string() })
}

fn bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    fs::read(path).map_err(|source| ReadError::Io { path: path.into(), source })
}
