use proptest::prelude::*;

use super::*;

fn convert(html: &str) -> String {
    html_to_markdown(html, &Url::parse("https://a.example/docs/page").unwrap()).text
}

#[test]
fn a_page_becomes_markdown() {
    let page =
        "<html><head><title>A &amp; B</title><style>p {}</style></head><body><nav><a href=/>Home</a></nav>
        <h1>Title</h1><p>Some <b>bold</b>, <em>soft</em> and <code>code</code>,
        a <a href='../x?y=1&amp;z'>link</a>.<p>Second<br>line
        <ul><li>one<li><p>two</p><ol start=3><li>three</li><li>four</li></ol></ul>
        <pre><code>fn main() {\n    x &lt; y\n}</code></pre>
        <blockquote><p>wise</p><p>words</p></blockquote>
        <table><tr><th>k</th><th>v|w</th></tr><tr><td>1</td><td><p>2</p><p>3</p></td></tr></table>
        <img src=a.png alt='A picture'><script>alert('<p>')</script><footer>imprint</footer></body></html>";
    let converted = html_to_markdown(page, &Url::parse("https://a.example/docs/page").unwrap());
    assert_eq!(converted.title.as_deref(), Some("A & B"));
    let expected = "# Title\n\nSome **bold**, *soft* and `code`, a [link](https://a.example/x?y=1&z).\n\n\
        Second\nline\n\n- one\n- two\n  3. three\n  4. four\n\n```\nfn main() {\n    x < y\n}\n```\n\n\
        > wise\n\n> words\n\n| k | v\\|w |\n| --- | --- |\n| 1 | 2 3 |\n\n![A picture](https://a.example/docs/a.png)";
    assert_eq!(converted.text, expected);
}

#[test]
fn what_is_not_closed_or_empty_does_no_harm() {
    assert_eq!(convert("<b>bold<p>plain"), "**bold**\n\nplain");
    assert_eq!(convert("a<b></b> <a href='javascript:x'>b</a> <a href=/c></a>c"), "a b c");
    assert_eq!(convert("</p></ul></table></pre>x"), "x");
    assert_eq!(convert("<nav>only this"), "only this");
    assert_eq!(convert("<p>one</p>\n<p>two"), "one\n\ntwo");
}

#[test]
fn a_page_that_nests_without_end_takes_no_more_room_than_any_other() {
    for tag in
        ["<div>", "<blockquote>", "<ul><li>", "<b x=1><i><a href=x>", "<table><tr><td>", "<pre>", "<svg>"]
    {
        let page = tag.repeat(200_000) + "end";
        assert!(convert(&page).len() <= page.len() * 4, "{tag}");
    }
}

proptest! {
    #[test]
    fn any_page_is_converted(page in "(<(/)?(p|b|a href=x|ul|li|table|tr|td|pre|code|h1|br|nav|title|blockquote)>|[a|` &\n]){0,40}") {
        let text = convert(&page);
        prop_assert!(!text.contains('<'), "a tag is left in {:?}", text);
        prop_assert!(text.len() <= page.len() * 4, "{:?}", text);
    }
}
