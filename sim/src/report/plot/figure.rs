//! A picture for a page: its drawing in the page's own colours, and what it says as numbers.

use super::canvas::said::{self, Said};

/// A picture for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Of what, and how certain it is.
    pub subtitle: String,
    /// The `viewBox`: left, top, width, height, in units.
    pub view: [i32; 4],
    /// Units of a pixel.
    pub unit: i32,
    /// The elements of the drawing. Their classes are colours of the page's style.
    pub svg: String,
    /// What it says, panel by panel.
    pub panels: Vec<FigurePanel>,
    /// The same drawn for a phone.
    pub narrow: Narrow,
}

/// The same picture where there is little room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// The `viewBox`, as [`Figure::view`].
    pub view: [i32; 4],
    /// The elements of the drawing.
    pub svg: String,
    /// Where the values of all panels are drawn, one by one in their order; `None`: it is too small
    /// to be seen.
    pub at: Vec<Option<(i32, i32)>>,
}

/// Where each value of `wide` is drawn in `narrow`.
pub(super) fn places(wide: &[FigurePanel], narrow: &[FigurePanel]) -> Vec<Option<(i32, i32)>> {
    let mut all = Vec::new();
    for (place, panel) in wide.iter().enumerate() {
        let mut others = narrow.get(place).map_or(&[][..], |panel| &panel.values);
        for value in &panel.values {
            let same = |other: &Value| Value { at: value.at, ..other.clone() } == *value;
            let found = others.iter().position(same);
            all.push(found.map(|at| others[at].at));
            others = found.map_or(others, |at| &others[at + 1..]);
        }
    }
    all
}

/// One pair of axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FigurePanel {
    /// Its title; empty where it has none.
    pub title: String,
    /// What the horizontal axis shows.
    pub x: String,
    /// What the vertical axis shows.
    pub y: String,
    /// The series, in the order in which they were drawn.
    pub series: Vec<String>,
    /// What is drawn, in the order in which it was.
    pub values: Vec<Value>,
}

/// A value of a panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Which of [`FigurePanel::series`].
    pub series: usize,
    /// Where it is drawn, in units of the figure.
    pub at: (i32, i32),
    /// Its place on the horizontal axis, in words.
    pub x: String,
    /// The value, with its interval where it has one.
    pub text: String,
    /// The value as CSV has it.
    pub raw: String,
    /// What it is called, where it has a name of its own.
    pub name: String,
}

/// Puts in order what a picture said.
pub(super) fn panels(said: &[Said]) -> Vec<FigurePanel> {
    let mut keys: Vec<((u8, u8, u8), &String)> = Vec::new();
    let mut panels: Vec<FigurePanel> = Vec::new();
    for said in said {
        match said {
            Said::Key { rgb, name } => keys.push((*rgb, name)),
            Said::Panel { x, y } => {
                let (x, y) = (x.clone(), y.clone());
                panels.push(FigurePanel { x, y, ..FigurePanel::default() });
            }
            Said::Title(title) => {
                if let Some(panel) = panels.last_mut() {
                    panel.title.clone_from(title);
                }
            }
            Said::Value(value) => {
                let Some(panel) = panels.last_mut() else { continue };
                // A picture may say with its axis alone what its only series is.
                let key = keys.iter().rev().find(|(rgb, _)| *rgb == value.rgb);
                let name = key.map_or(&panel.y, |(_, name)| name).clone();
                panel.add(name, value);
            }
        }
    }
    panels.retain(|panel| !panel.values.is_empty());
    panels
}

impl FigurePanel {
    fn add(&mut self, series: String, value: &said::Value) {
        let place = self.series.iter().position(|known| *known == series);
        let place = place.unwrap_or_else(|| {
            self.series.push(series);
            self.series.len() - 1
        });
        let said::Value { at, x, text, raw, name, .. } = value.clone();
        self.values.push(Value { series: place, at, x, text, raw, name });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(rgb: (u8, u8, u8), raw: &str) -> Said {
        let text = raw.to_owned();
        Said::Value(said::Value {
            rgb,
            at: (1, 2),
            x: "4".into(),
            raw: text.clone(),
            text,
            name: String::new(),
        })
    }

    #[test]
    fn a_value_has_the_name_of_the_last_key_of_its_colour_or_of_its_axis() {
        let (red, blue) = ((1, 0, 0), (0, 0, 1));
        let key = |name: &str| Said::Key { rgb: red, name: name.into() };
        let panel = || Said::Panel { x: "η".into(), y: "% of samples".into() };
        let said = [
            key("mean"),
            panel(),
            value(red, "1"),
            key("p99"),
            panel(),
            value(red, "2"),
            value(blue, "3"),
        ];
        let panels = panels(&said);
        assert_eq!(panels[0].series, ["mean"]);
        assert_eq!(panels[1].series, ["p99", "% of samples"]);
        assert_eq!(panels[1].values[1].series, 1);
    }

    #[test]
    fn a_value_that_is_not_drawn_on_a_phone_has_no_place_there() {
        let panel = Said::Panel { x: String::new(), y: String::new() };
        let moved = |raw: &str| match value((1, 0, 0), raw) {
            Said::Value(value) => Said::Value(said::Value { at: (7, 7), ..value }),
            other => other,
        };
        let [one, two, three] = ["1", "2", "3"].map(|raw| value((1, 0, 0), raw));
        let wide = panels(&[panel.clone(), one, two, three]);
        let narrow = panels(&[panel, moved("1"), moved("3")]);
        assert_eq!(places(&wide, &narrow), [Some((7, 7)), None, Some((7, 7))]);
    }

    #[test]
    fn axes_without_values_say_nothing() {
        assert!(panels(&[Said::Panel { x: String::new(), y: String::new() }]).is_empty());
    }
}
