//! What continuous integration reads: JUnit XML, and annotations of GitHub's workflows.

use std::fmt::Write;

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The file that it stands in.
    pub file: String,
    /// It is as it should be.
    pub passed: bool,
    /// In a line.
    pub summary: String,
    /// Everything there is to say, in lines.
    pub text: String,
}

/// A report in JUnit's XML. It holds no time, so that equal results give equal bytes.
#[must_use]
pub fn junit(cases: &[Case]) -> String {
    let failures = cases.iter().filter(|case| !case.passed).count();
    let count = cases.len();
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let totals = format!("tests=\"{count}\" failures=\"{failures}\" errors=\"0\"");
    let _ = writeln!(xml, "<testsuites {totals}>");
    let _ = writeln!(xml, "  <testsuite name=\"headway check\" {totals}>");
    for Case { name, file, passed, summary, text } in cases {
        let (name, file) = (escaped(name), escaped(file));
        let _ = write!(
            xml,
            "    <testcase classname=\"headway.check\" name=\"{name}\" file=\"{file}\""
        );
        match passed {
            true => xml += "/>\n",
            false => {
                let _ = writeln!(
                    xml,
                    ">\n      <failure message=\"{}\" type=\"difference\">{}</failure>\n    </testcase>",
                    escaped(summary),
                    escaped(text)
                );
            }
        }
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

/// Annotations for a GitHub workflow's log: a line for each case that failed.
#[must_use]
pub fn github(cases: &[Case]) -> String {
    let line = |case: &Case| {
        let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
        let title = format!("headway check: {}", case.name);
        let message = data(&format!("{}\n{}", case.summary, case.text.trim_end()));
        format!("::error file={},title={}::{message}\n", property(&case.file), property(&title))
    };
    cases.iter().filter(|case| !case.passed).map(line).collect()
}

/// A text in a workflow command: one line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A text in XML 1.0, in an element or in quotes. What XML cannot hold becomes a question mark.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' => out.push(letter),
            '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => out.push(letter),
            _ => out.push('?'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> [Case; 2] {
        let good = Case {
            name: "good".into(),
            file: "scenarios/good.toml".into(),
            passed: true,
            summary: "the same decisions".into(),
            text: String::new(),
        };
        let bad = Case {
            name: "bad <&\"\u{1}\u{ffff}>".into(),
            file: "a,b:c.toml".into(),
            passed: false,
            summary: "50% of\rit".into(),
            text: "one\ntwo & <three>\n".into(),
        };
        [good, bad]
    }

    #[test]
    fn junit_is_well_formed_and_counts() {
        let xml = junit(&cases());
        assert!(xml.contains(
            "<testsuite name=\"headway check\" tests=\"2\" failures=\"1\" errors=\"0\">"
        ));
        assert!(xml.contains("name=\"bad &lt;&amp;&quot;??&gt;\""), "{xml}");
        assert!(xml.contains("one\ntwo &amp; &lt;three&gt;\n</failure>"));
        // Every tag is closed, in order, and nothing stands between quotes that could end them.
        let mut open = Vec::new();
        for tag in xml.split('<').skip(2).map(|rest| rest.split_once('>').unwrap().0) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split_whitespace().next().unwrap()),
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn an_annotation_is_one_line_for_each_failure() {
        let lines = github(&cases());
        assert_eq!(lines.lines().count(), 1);
        let expected = "::error file=a%2Cb%3Ac.toml,title=headway check%3A bad";
        assert!(lines.starts_with(expected), "{lines}");
        assert!(lines.ends_with("::50%25 of%0Dit%0Aone%0Atwo & <three>\n"), "{lines}");
    }
}
