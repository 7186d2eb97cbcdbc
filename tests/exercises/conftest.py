import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    """No test touches the progress of whoever runs it."""
    monkeypatch.setenv("ZEROGRAD_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
