//! [`Plot`]: curves as SVG, coloured by the style of the page.

use std::fmt::Write as _;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 240.0;
/// Margins for the labels, in pixels.
const LEFT: f64 = 70.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 16.0;
const BOTTOM: f64 = 28.0;
/// The most points of a curve: more than a screen has columns show nothing more.
const POINTS: usize = 900;
const GRID_LINES: usize = 4;

/// A plot over the requests of a session.
pub(super) struct Plot<'a> {
    pub title: &'a str,
    /// CSS class and one value per request of each curve.
    pub curves: &'a [(&'static str, Vec<f64>)],
    /// The top of the scale. `None` fits it to the highest value.
    pub top: Option<f64>,
    /// Formats a value for the axis.
    pub unit: &'a dyn Fn(f64) -> String,
    /// Requests to mark, each with its tooltip, already escaped.
    pub marks: &'a [(usize, String)],
}

impl Plot<'_> {
    pub fn svg(&self) -> String {
        let count = self.curves.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let highest = self.curves.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
        let top = self.top.unwrap_or_else(|| round_up(highest)).max(f64::MIN_POSITIVE);
        let x = |at: usize| LEFT + (WIDTH - LEFT - RIGHT) * at as f64 / (count.max(2) - 1) as f64;
        let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / top).clamp(0.0, 1.0);
        let mut out = format!(
            "<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            self.title, self.title
        );
        for line in 0..=GRID_LINES {
            let value = top * line as f64 / GRID_LINES as f64;
            let (at, label) = (y(value), (self.unit)(value));
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0
            );
        }
        for (mark, label) in self.marks {
            let at = x(*mark);
            let _ = writeln!(
                out,
                "<g class=\"loss\"><line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{:.0}\"/>\
                 <circle cx=\"{at:.1}\" cy=\"{TOP}\" r=\"3.5\"/><title>{label}</title></g>",
                HEIGHT - BOTTOM
            );
        }
        for (class, values) in self.curves {
            let points: Vec<String> =
                thinned(values.len()).map(|at| format!("{:.1},{:.1}", x(at), y(values[at]))).collect();
            let _ = writeln!(out, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "));
        }
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{0:.0}\">request 0</text>\
             <text x=\"{1:.0}\" y=\"{0:.0}\" text-anchor=\"end\">request {2}</text>\n</svg></figure>",
            HEIGHT - 8.0,
            WIDTH - RIGHT,
            count.saturating_sub(1)
        );
        out
    }
}

/// The indices of the values to draw: all, or evenly spaced ones and the last.
fn thinned(count: usize) -> impl Iterator<Item = usize> {
    let step = count.div_ceil(POINTS).max(1);
    let last = count.checked_sub(1).filter(|last| !last.is_multiple_of(step));
    (0..count).step_by(step).chain(last)
}

/// The next number of the form 1, 2, 2.5, 5 or 10 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    steps.iter().map(|step| step * power).find(|top| *top >= value).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        assert_eq!([0.0, 1.0, 3.0, 42.0, 163_000.0].map(round_up), [1.0, 1.0, 5.0, 50.0, 200_000.0]);
    }

    #[test]
    fn long_sessions_are_thinned_and_keep_their_end() {
        assert_eq!(thinned(0).count(), 0);
        assert_eq!(thinned(5).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let many: Vec<usize> = thinned(10_000).collect();
        assert!(many.len() <= POINTS + 1 && many.last() == Some(&9999));
    }

    #[test]
    fn a_plot_of_nothing_and_of_one_request_is_drawn() {
        for values in [vec![], vec![3.0]] {
            let plot = Plot {
                title: "t",
                curves: &[("paid", values)],
                top: None,
                unit: &|value| format!("{value:.0}"),
                marks: &[],
            };
            assert!(!plot.svg().contains("NaN") && !plot.svg().contains("inf"));
        }
    }
}
