from proxy.admin.page.markup import tag, text


def test_what_is_no_markup_is_escaped_wherever_it_stands():
    made = tag("p", "<script>", tag("b", "a & b"), None, ["<i>", 3], title='"><script>')
    assert made == '<p title="&quot;&gt;&lt;script&gt;">&lt;script&gt;<b>a &amp; b</b>&lt;i&gt;3</p>'
    assert text(made) == made


def test_attributes_that_are_false_are_left_out():
    assert tag("option", "x", selected=False, value="", disabled=True, for_="y") == (
        '<option value="" disabled for="y">x</option>'
    )
