//! Tables of text, as the CSV files of a result hold them.

use std::io;

use super::number;

/// A header and rows of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Csv {
    /// The names of the columns.
    pub header: Vec<String>,
    /// The rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
}

impl Csv {
    /// A table without rows.
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Reads the text of a CSV file.
    ///
    /// # Errors
    /// It is no CSV, has no header, or a row is not as long as the header.
    pub fn parse(text: &[u8]) -> Result<Self, csv::Error> {
        let mut reader = csv::Reader::from_reader(text);
        let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let header: Vec<String> = cells(reader.headers()?);
        if header.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty").into());
        }
        let rows = reader.records().map(|record| record.map(|record| cells(&record)));
        Ok(Self { header, rows: rows.collect::<Result<_, _>>()? })
    }

    /// The text of the CSV file: lines end in a single line feed on every platform.
    ///
    /// # Errors
    /// A row is not as long as the header.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in std::iter::once(&self.header).chain(&self.rows) {
            writer.write_record(row)?;
        }
        writer.into_inner().map_err(|error| error.into_error())
    }

    /// The same as text.
    ///
    /// # Errors
    /// A row is not as long as the header.
    pub fn to_text(&self) -> io::Result<String> {
        String::from_utf8(self.to_bytes()?).map_err(io::Error::other)
    }

    /// Where a column is.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }

    /// A cell; empty where the column or the row is missing.
    #[must_use]
    pub fn text(&self, row: usize, column: &str) -> &str {
        let cell = || self.rows.get(row)?.get(self.column(column)?);
        cell().map_or("", String::as_str)
    }

    /// The number in a cell, if there is one.
    #[must_use]
    pub fn value(&self, row: usize, column: &str) -> Option<f64> {
        number::parse(self.text(row, column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut csv = Csv::new(["key", "value"]);
        csv.rows.push(vec!["a, \"b\"".into(), number::text(1.0 / 3.0)]);
        csv.rows.push(vec!["two\nlines".into(), number::text(f64::NAN)]);
        let bytes = csv.to_bytes().expect("rows are whole");
        assert_eq!(Csv::parse(&bytes).expect("it is CSV"), csv);
        assert_eq!(csv.value(0, "value"), Some(0.333_333));
        assert_eq!(csv.value(1, "value"), None);
        assert_eq!(csv.text(0, "no such column"), "");
    }

    #[test]
    fn a_row_of_another_length_is_an_error() {
        let csv = Csv { header: vec!["a".into()], rows: vec![vec!["1".into(), "2".into()]] };
        assert!(csv.to_bytes().is_err());
        assert!(Csv::parse(b"a,b\n1\n").is_err());
        assert!(Csv::parse(b"").is_err(), "a file that was cut is no table without rows");
    }
}
