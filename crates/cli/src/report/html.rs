//! Writing HTML: what is not written in this program is escaped.

use std::fmt::Display;

/// The longest word that a cell of a table shows on one line, in bytes.
const LONGEST_WORD: usize = 24;

/// A document that grows.
#[derive(Default)]
pub(crate) struct Html(String);

impl Html {
    /// Adds markup of this program.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds a number, for example a coordinate.
    pub(crate) fn number(&mut self, number: f64) -> &mut Self {
        self.0.push_str(&format!("{number:.1}"));
        self
    }

    /// Adds text from anywhere, also within a quoted attribute.
    pub(crate) fn text(&mut self, text: impl Display) -> &mut Self {
        for letter in text.to_string().chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // A terminal's and a browser's control characters have no place in a page.
                letter if letter.is_control() && letter != '\n' => self.0.push('\u{fffd}'),
                letter => self.0.push(letter),
            }
        }
        self
    }

    /// Adds an element with this text.
    pub(crate) fn element(
        &mut self,
        open: &'static str,
        text: impl Display,
        close: &'static str,
    ) -> &mut Self {
        self.raw(open).text(text).raw(close)
    }

    /// A table. The first row of cells is its header.
    pub(crate) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> &mut Self {
        self.raw("<div class=scroll><table><thead><tr>");
        for title in header {
            self.element("<th>", title, "</th>");
        }
        self.raw("</tr></thead><tbody>");
        for row in rows {
            self.raw("<tr>");
            for cell in row {
                // A hash has to break; words of prose and short names do not.
                let is_long = cell.split_whitespace().any(|word| word.len() > LONGEST_WORD);
                self.element(if is_long { "<td class=long>" } else { "<td>" }, cell, "</td>");
            }
            self.raw("</tr>");
        }
        self.raw("</tbody></table></div>\n")
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_are_too_long_for_a_line_are_broken_in_a_table() {
        let mut html = Html::default();
        html.table(&["outcome", "key"], &[vec!["permanently failed".to_owned(), "0f".repeat(32)]]);
        let text = html.into_string();
        assert!(text.contains("<td>permanently failed</td><td class=long>0f0f"), "{text}");
    }

    #[test]
    fn text_cannot_become_markup() {
        let mut html = Html::default();
        html.raw("<p title=\"").text("\" onclick='x' a=\"").raw("\">");
        html.text("<script>alert(1)</script>&amp;\u{1b}[2J");
        assert_eq!(
            html.into_string(),
            "<p title=\"&quot; onclick=&#39;x&#39; a=&quot;\">&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;\u{fffd}[2J"
        );
    }
}
