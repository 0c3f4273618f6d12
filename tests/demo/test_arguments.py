"""The arguments of `gnomon demo`."""

import pytest

from gnomon.cli import main


@pytest.mark.parametrize("text", ["0", "-1", "abc", "nan", "inf", "1e999", ""])
@pytest.mark.parametrize("option", ["--seconds", "--rate"])
def test_what_is_no_length_of_time_is_refused_in_words(
    option: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing starts, and no name of a function is shown."""
    with pytest.raises(SystemExit) as caught:
        main(["demo", f"{option}={text}"])

    assert caught.value.code == 2
    assert f"{text!r} is no number above zero" in capsys.readouterr().err
