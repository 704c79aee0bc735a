from studies.tables import NOT_YET, PLACE, RESULTS, Table, documents, rebuilt


def test_tables_in_documents_are_those_that_are_stored():
    for document in documents():
        text = document.read_text()
        assert rebuilt(text) == text, f"{document.name}: run `make tables`"


def test_what_is_stored_stands_somewhere():
    shown = {name for document in documents() for name in PLACE.findall(document.read_text())}
    assert shown >= {path.stem for path in RESULTS.glob("*.json")}


def test_a_changed_figure_is_noticed(tmp_path, monkeypatch):
    table = Table("python -m studies.x", "abc1234", "2026-01-01", ["problem", "z"], [["banana", "1.0"]])
    monkeypatch.setattr("studies.tables.stored", lambda name: table)
    right = f"before\n<!-- table x -->\n{table.markdown()}\n<!-- end x -->\nafter"
    assert rebuilt(right) == right
    assert rebuilt(right.replace("1.0", "0.9")) == right


def test_a_table_that_was_never_stored_shows_no_figures():
    right = f"<!-- table no-such-study -->\n{NOT_YET}\n<!-- end no-such-study -->"
    assert rebuilt(right) == right
    assert rebuilt(right.replace(NOT_YET, "| banana | 1.0 |")) == right
