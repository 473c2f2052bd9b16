//! The page itself.

use std::fmt::Write;

use super::table::Table;
use super::{escape, figure};
use crate::answer::Answer;
use crate::report::about::About;
use crate::report::plot::Picture;

const STYLE: &str = include_str!("../../../assets/report.css");
const SCRIPT: &str = include_str!("../../../assets/report.js");

/// Nothing is fetched, and nothing runs but what stands in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

/// With so many bytes no further plot is shown: a grid can have hundreds.
const MOST: usize = 1_000_000;

/// What a page shows, in its order.
pub(super) struct Page<'a> {
    /// What made it, such as `Sweep`.
    pub(super) kind: &'a str,
    /// The scenario, or the run.
    pub(super) name: &'a str,
    /// Its title; empty where it has none.
    pub(super) title: &'a str,
    pub(super) answer: &'a Answer,
    pub(super) pictures: &'a [Picture],
    pub(super) tables: Vec<Table>,
    pub(super) about: Option<&'a About>,
    /// Its scenarios by name, where it has several; `about` then has the command alone.
    pub(super) scenarios: Vec<(&'a str, &'a About)>,
    /// What else is to be known of how it came about: names with values.
    pub(super) facts: Vec<(&'static str, String)>,
    /// What the configuration of the page does not say, in a sentence; empty: it says all.
    pub(super) varied: String,
}

impl Page<'_> {
    /// The document.
    pub(super) fn write(&self) -> String {
        let mut out = String::new();
        let question = escape(&self.answer.question);
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"generator\" content=\"Headway {}\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>{} · {} · Headway</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#answer\">Skip to the answer</a>\n",
            env!("CARGO_PKG_VERSION"),
            escape(self.name),
            escape(self.kind),
        );
        let title = match self.title {
            "" => String::new(),
            title => format!(" · {}", escape(title)),
        };
        let _ = write!(
            out,
            "<header>\n<p class=\"from\">{} · <b>{}</b>{title}</p>\n<h1>{question}</h1>\n{}</header>\n<main>\n",
            escape(self.kind),
            escape(self.name),
            self.contents(),
        );
        self.write_answer(&mut out);
        self.write_plots(&mut out);
        self.write_tables(&mut out);
        self.write_origin(&mut out);
        let _ = write!(
            out,
            "</main>\n<footer>Headway {}. This page is one file and fetches nothing.</footer>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION")
        );
        out
    }

    fn contents(&self) -> String {
        let mut parts = vec![("answer", "Answer")];
        if !self.pictures.is_empty() {
            parts.push(("plots", "Plots"));
        }
        parts.push(("tables", "Tables"));
        parts.push(("origin", "Configuration and command"));
        let parts = parts.iter().map(|(id, name)| format!("<li><a href=\"#{id}\">{name}</a></li>"));
        format!("<nav aria-label=\"Contents\"><ul>{}</ul></nav>\n", parts.collect::<String>())
    }

    fn write_answer(&self, out: &mut String) {
        let Answer { answer, is_known, because, but, .. } = self.answer;
        let class = if *is_known { "" } else { " class=\"unknown\"" };
        let _ = write!(
            out,
            "<section id=\"answer\" tabindex=\"-1\"{class} aria-labelledby=\"answered\">\n\
             <h2 id=\"answered\" class=\"unseen\">Answer</h2>\n<p class=\"answer\">{}</p>\n",
            escape(answer)
        );
        list(out, "Why", because);
        list(out, "What to know before relying on it", but);
        out.push_str("</section>\n");
    }

    fn write_plots(&self, out: &mut String) {
        if self.pictures.is_empty() {
            return;
        }
        out.push_str("<section id=\"plots\">\n<h2>Plots</h2>\n");
        out.push_str(
            "<p class=\"note\">Point at a plot, or focus it and use the arrow keys, to read its values. Each \
             has them as a table, too.</p>\n",
        );
        for (place, picture) in self.pictures.iter().enumerate() {
            if out.len() > MOST {
                let left = self.pictures.len() - place;
                let _ = writeln!(
                    out,
                    "<p class=\"note\">{left} more plots are beside this page, as SVG and PNG.</p>"
                );
                break;
            }
            figure::write(out, place + 1, &picture.name, &picture.figure);
        }
        out.push_str("</section>\n");
    }

    fn write_tables(&self, out: &mut String) {
        out.push_str("<section id=\"tables\">\n<h2>Tables</h2>\n");
        out.push_str("<p class=\"note\">A column's header sorts by it. ± is the half-width of an interval.</p>\n");
        self.tables.iter().for_each(|table| table.write(out));
        out.push_str("</section>\n");
    }

    fn write_origin(&self, out: &mut String) {
        out.push_str("<section id=\"origin\">\n<h2>Configuration and command</h2>\n");
        let command = self.about.map_or("", |about| about.command.as_str());
        if !command.is_empty() {
            let _ = writeln!(
                out,
                "<p>This command repeats it, to the same bytes:</p>\n<pre class=\"command\" tabindex=\"0\" \
                 aria-label=\"The command\"><code>{}</code></pre>",
                escape(command)
            );
        }
        out.push_str("<dl>\n");
        for (name, value) in self.facts.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
        }
        out.push_str("</dl>\n");
        if let Some(about) = self.about {
            self.write_about(out, "", about);
        }
        for (name, about) in &self.scenarios {
            self.write_about(out, name, about);
        }
        out.push_str("</section>\n");
    }

    /// What a scenario says of itself. `name`: which of several it is.
    fn write_about(&self, out: &mut String, name: &str, about: &About) {
        let heading = |text: &str| match name {
            "" => text.to_owned(),
            name => format!("{name}: {}", text.to_ascii_lowercase()),
        };
        if !about.description.is_empty() {
            let (scenario, text) = (heading("The scenario"), about.description.trim());
            let _ = writeln!(out, "<h3>{}</h3>\n<p>{}</p>", escape(&scenario), escape(text));
        }
        list(out, &heading("Where its numbers come from"), &about.sources);
        list(out, &heading("Which of them are assumed"), &about.assumed);
        if !about.configuration.is_empty() {
            let varied = match self.varied.as_str() {
                "" => String::new(),
                varied => format!(" {}", escape(varied)),
            };
            let _ = writeln!(
                out,
                "<h3>{}</h3>\n<p>What is not here is as the defaults have it.{varied}</p>\n\
                 <pre tabindex=\"0\" aria-label=\"The configuration\"><code>{}</code></pre>",
                escape(&heading("Scheduling")),
                escape(about.configuration.trim_end())
            );
        }
    }
}

/// A list with a heading; nothing of nothing.
fn list(out: &mut String, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>\n<ul>", escape(heading));
    for item in items {
        let _ = writeln!(out, "<li>{}</li>", escape(item));
    }
    out.push_str("</ul>\n");
}
