import re

import pytest

from proxy.observe.metrics import METRICS
from tests.shipped.tables import README, TABLES, marked

TEXT = README.read_text("utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_those_of_the_code(name):
    """If this fails: python -m tests.shipped.tables."""
    assert marked(TEXT, name)[0] == TABLES[name]()


def test_every_metric_is_documented():
    for row in METRICS:
        assert f"`sluicegate_{row.name}`" in TEXT


def test_every_metric_of_the_table_is_fed():
    """A metric that nothing feeds is a flat line on somebody's dashboard."""
    source = "\n".join(path.read_text("utf-8") for path in (README.parent / "proxy").rglob("*.py"))
    for row in METRICS:
        # Once in the table, once where it is counted.
        assert source.count(f'"{row.name}"') > 1, row.name


def test_links_lead_to_files_that_are_there():
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", TEXT):
        assert (README.parent / target).exists(), target
