//! Tables that sort.

use std::fmt::Write;

use super::escape;
pub(super) use crate::report::cell::Cell;

/// More rows than this scroll below their header.
const TALL: usize = 24;

/// A table.
#[derive(Default)]
pub(super) struct Table {
    /// What it is called.
    pub(super) caption: String,
    /// What is to be known of it; empty: nothing.
    pub(super) note: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// It is behind a line that opens it.
    pub(super) folded: bool,
}

/// A column.
pub(super) struct Column {
    /// Its heading.
    pub(super) name: String,
    /// What it is, for who points at it; empty: its heading says it.
    pub(super) about: String,
    pub(super) kind: Cells,
}

/// What the cells of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cells {
    Number,
    Word,
    /// Words that need several lines.
    Long,
}

/// A row. Its first cell names it.
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    pub(super) chosen: bool,
}

impl Column {
    pub(super) fn number(name: impl Into<String>) -> Self {
        Self { name: name.into(), about: String::new(), kind: Cells::Number }
    }

    pub(super) fn word(name: impl Into<String>) -> Self {
        Self { name: name.into(), about: String::new(), kind: Cells::Word }
    }

    pub(super) fn long(name: impl Into<String>) -> Self {
        Self { name: name.into(), about: String::new(), kind: Cells::Long }
    }

    const fn class(&self) -> &'static str {
        match self.kind {
            Cells::Number => "",
            Cells::Word => " class=\"word\"",
            Cells::Long => " class=\"word long\"",
        }
    }
}

impl Row {
    pub(super) fn of(cells: impl IntoIterator<Item = Cell>) -> Self {
        Self { cells: cells.into_iter().collect(), chosen: false }
    }
}

impl Table {
    pub(super) fn write(&self, out: &mut String) {
        let caption = escape(&self.caption);
        // Writing to a string cannot fail.
        if self.folded {
            let _ = writeln!(out, "<details>\n<summary>{caption}</summary>");
        }
        let tall = if self.rows.len() > TALL { " tall" } else { "" };
        let _ = writeln!(
            out,
            "<div class=\"scroll{tall}\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\n\
             <table class=\"sorts\">\n<caption>{caption}</caption>\n<thead><tr>{}</tr></thead>\n<tbody>",
            self.columns.iter().map(head).collect::<String>()
        );
        for row in &self.rows {
            self.write_row(out, row);
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
        if !self.note.is_empty() {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(&self.note));
        }
        if self.folded {
            out.push_str("</details>\n");
        }
    }

    fn write_row(&self, out: &mut String, row: &Row) {
        out.push_str(if row.chosen { "<tr class=\"chosen\">" } else { "<tr>" });
        for (place, (cell, column)) in row.cells.iter().zip(&self.columns).enumerate() {
            let value = match cell.raw == cell.text {
                true => String::new(),
                false => format!(" data-v=\"{}\"", escape(&cell.raw)),
            };
            let (text, class) = (escape(&cell.text), column.class());
            let _ = match place {
                0 => write!(out, "<th scope=\"row\"{class}{value}>{text}</th>"),
                _ => write!(out, "<td{class}{value}>{text}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
}

fn head(column: &Column) -> String {
    let about = match column.about.as_str() {
        "" => String::new(),
        about => format!(" title=\"{}\"", escape(about)),
    };
    format!("<th scope=\"col\"{}{about}>{}</th>", column.class(), escape(&column.name))
}
