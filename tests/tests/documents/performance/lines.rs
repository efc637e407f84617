//! A plot of lines over the size of the batch, with logarithmic axes.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::plots::{Colour, FONT, GRID, TEXT, TOP, written};
use super::tables::grouped;

pub(crate) struct Line {
    pub(crate) label: &'static str,
    pub(crate) colour: Colour,
    pub(crate) dashed: bool,
    /// Records at a time, and the figure.
    pub(crate) points: Vec<(f64, f64)>,
}

/// The room for the labels at the ends of lines.
const RIGHT: u32 = 165;

pub(crate) fn plot(title: &str, unit: &str, lines: &[Line]) -> String {
    written(title, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(12)
            .margin_top(TOP)
            .margin_right(RIGHT)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d((1.0..10_000.0).log_scale(), decades(lines).log_scale())?;
        let small = (FONT, 17).into_font().color(&TEXT);
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(TEXT)
            .label_style(small.clone())
            .axis_desc_style(small)
            .x_desc("records at a time (logarithmic)")
            .y_desc(format!("{unit} (logarithmic)"))
            .x_label_formatter(&|x| label(*x))
            .y_label_formatter(&|y| label(*y))
            .draw()?;
        let mut ends = Vec::new();
        for line in lines {
            let style = ShapeStyle { color: line.colour.to_rgba(), filled: true, stroke_width: 2 };
            let points = line.points.iter().copied();
            if line.dashed {
                chart.draw_series(DashedLineSeries::new(points.clone(), 10, 8, style))?;
            } else {
                chart.draw_series(LineSeries::new(points.clone(), style))?;
            }
            chart.draw_series(points.map(|point| Circle::new(point, 4, style)))?;
            if let Some(last) = line.points.last() {
                ends.push((chart.backend_coord(last), line));
            }
        }
        label_ends(root, ends)
    })
}

/// Writes the name of each line at its end, below each other where ends are near.
fn label_ends(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    mut ends: Vec<((i32, i32), &Line)>,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    ends.sort_by_key(|((_, y), _)| *y);
    let mut free = i32::MIN;
    for ((x, y), line) in ends {
        let y = (y - 8).max(free);
        free = y + 18;
        let style = (FONT, 17).into_font().color(&line.colour);
        root.draw_text(line.label, &style, (x + 12, y))?;
    }
    Ok(())
}

/// The powers of ten around all figures.
fn decades(lines: &[Line]) -> Range<f64> {
    let values = || lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
    let least = values().fold(f64::INFINITY, f64::min).log10().floor();
    let most = values().fold(0.0, f64::max).log10().ceil();
    // A little below, or the lowest decade would have no label.
    10_f64.powf(least) * 0.999..10_f64.powf(most)
}

/// A power of ten without needless digits.
fn label(value: f64) -> String {
    if value < 1.0 { format!("{value}") } else { grouped(&format!("{value:.0}")) }
}
