//! [`Glyphs`]: every sign of the face, in Unicode and in ASCII.

/// The signs of the face. None of them has an emoji form, which terminals draw in two columns and in
/// colours of their own.
#[derive(Debug, PartialEq, Eq)]
pub struct Glyphs {
    /// Before the input line and the chosen row.
    pub prompt: &'static str,
    /// A call that succeeded.
    pub done: &'static str,
    /// A call that failed.
    pub failed: &'static str,
    /// A warning.
    pub warning: &'static str,
    /// What turns while a call runs.
    pub spinner: [&'static str; 4],
    /// Between the parts of a line.
    pub separator: &'static str,
    /// What was cut.
    pub ellipsis: &'static str,
    /// Before a number of removed lines.
    pub minus: &'static str,
    /// From one number to another.
    pub range: &'static str,
    /// From one place to another.
    pub arrow: &'static str,
    /// Lines that are not shown between two that are.
    pub gap: &'static str,
    /// Before an item of a list.
    pub bullet: &'static str,
    /// Left of a quotation, and between columns.
    pub bar: &'static str,
    /// A horizontal line.
    pub line: &'static str,
    /// Where a horizontal line crosses a vertical one.
    pub cross: &'static str,
    /// Tokens read from the cache.
    pub read: &'static str,
    /// Tokens written to the cache.
    pub written: &'static str,
    /// Tokens sent without the cache.
    pub sent: &'static str,
    /// Tokens that are not needed any more.
    pub garbage: &'static str,
    /// A breakpoint: a cache entry is requested up to here.
    pub breakpoint: &'static str,
    /// An older cache entry that can still be read.
    pub older_entry: &'static str,
    /// Something folded that can be opened.
    pub folded: &'static str,
    /// Something that is open and can be folded.
    pub unfolded: &'static str,
    /// The place in the tree where the conversation is.
    pub here: &'static str,
    /// A branch of the tree that goes on below.
    pub branch: &'static str,
    /// The last branch of the tree.
    pub last_branch: &'static str,
    /// The label of a step.
    pub label: &'static str,
    /// Around the chosen value of a row.
    pub chosen: (&'static str, &'static str),
    /// Around a name that a person gave.
    pub name: (&'static str, &'static str),
    /// The keys left and right.
    pub left_right: &'static str,
    /// The key up.
    pub up: &'static str,
}

impl Glyphs {
    /// For terminals that show Unicode.
    pub const UNICODE: Glyphs = Glyphs {
        prompt: "›",
        done: "✓",
        failed: "✗",
        warning: "!",
        spinner: ["◐", "◓", "◑", "◒"],
        separator: "·",
        ellipsis: "…",
        minus: "−",
        range: "–",
        arrow: "→",
        gap: "⋮",
        bullet: "•",
        bar: "│",
        line: "─",
        cross: "┼",
        read: "█",
        written: "▓",
        sent: "▒",
        garbage: "░",
        breakpoint: "◆",
        older_entry: "◇",
        folded: "▸",
        unfolded: "▾",
        here: "●",
        branch: "├",
        last_branch: "└",
        label: "⚑",
        chosen: ("‹", "›"),
        name: ("«", "»"),
        left_right: "←→",
        up: "↑",
    };

    /// For the Linux console, locales that are not UTF-8, and whoever asks for it.
    pub const ASCII: Glyphs = Glyphs {
        prompt: ">",
        done: "+",
        failed: "x",
        warning: "!",
        spinner: ["-", "\\", "|", "/"],
        separator: "-",
        ellipsis: "...",
        minus: "-",
        range: "-",
        arrow: "->",
        gap: ":",
        bullet: "*",
        bar: "|",
        line: "-",
        cross: "+",
        read: "#",
        written: "=",
        sent: "-",
        garbage: ".",
        breakpoint: "*",
        older_entry: "o",
        folded: ">",
        unfolded: "v",
        here: "*",
        branch: "|",
        last_branch: "`",
        label: "!",
        chosen: ("<", ">"),
        name: ("\"", "\""),
        left_right: "<- ->",
        up: "Up",
    };

    /// Every glyph of the table.
    pub fn all(&self) -> Vec<&'static str> {
        let Glyphs {
            prompt,
            done,
            failed,
            warning,
            spinner,
            separator,
            ellipsis,
            minus,
            range,
            arrow,
            gap,
            bullet,
            bar,
            line,
            cross,
            read,
            written,
            sent,
            garbage,
            breakpoint,
            older_entry,
            folded,
            unfolded,
            here,
            branch,
            last_branch,
            label,
            chosen,
            name,
            left_right,
            up,
        } = *self;
        let single = [
            prompt,
            done,
            failed,
            warning,
            separator,
            ellipsis,
            minus,
            range,
            arrow,
            gap,
            bullet,
            bar,
            line,
            cross,
            read,
            written,
            sent,
            garbage,
            breakpoint,
            older_entry,
            folded,
            unfolded,
            here,
            branch,
            last_branch,
            label,
            chosen.0,
            chosen.1,
            name.0,
            name.1,
            left_right,
            up,
        ];
        single.into_iter().chain(spinner).collect()
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    /// The characters of the Basic Multilingual Plane with an emoji form (Unicode 17,
    /// `emoji-variation-sequences.txt`), without digits, `#` and `*`, whose form needs a keycap.
    const EMOJI: &[(u32, u32)] = &[
        (0xa9, 0xa9),
        (0xae, 0xae),
        (0x203c, 0x203c),
        (0x2049, 0x2049),
        (0x2122, 0x2122),
        (0x2139, 0x2139),
        (0x2194, 0x2199),
        (0x21a9, 0x21aa),
        (0x231a, 0x231b),
        (0x2328, 0x2328),
        (0x23cf, 0x23cf),
        (0x23e9, 0x23f3),
        (0x23f8, 0x23fa),
        (0x24c2, 0x24c2),
        (0x25aa, 0x25ab),
        (0x25b6, 0x25b6),
        (0x25c0, 0x25c0),
        (0x25fb, 0x25fe),
        (0x2600, 0x2604),
        (0x260e, 0x261d),
        (0x2620, 0x2668),
        (0x267b, 0x267f),
        (0x2692, 0x26fd),
        (0x2702, 0x2712),
        (0x2714, 0x2716),
        (0x271d, 0x27bf),
        (0x2934, 0x2935),
        (0x2b05, 0x2b07),
        (0x2b1b, 0x2b1c),
        (0x2b50, 0x2b55),
        (0x3030, 0x303d),
        (0x3297, 0x3299),
    ];

    #[test]
    fn no_glyph_has_an_emoji_form_and_all_are_narrow() {
        for glyph in Glyphs::UNICODE.all() {
            for c in glyph.chars().map(u32::from) {
                assert!(!EMOJI.iter().any(|(first, last)| (*first..=*last).contains(&c)), "{glyph}");
            }
            assert_eq!(glyph.width(), glyph.chars().count(), "{glyph}");
        }
        assert!(Glyphs::ASCII.all().iter().all(|glyph| glyph.is_ascii()));
    }
}
