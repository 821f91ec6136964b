"""Formulas of claims and of the literature: as HTML, and as text for a terminal."""

import re
from pathlib import Path

import pytest

from meanfield.app.formulas import html_of, plain
from meanfield.app.literature import in_words, read_claims, rows

ROOT = Path(__file__).resolve().parents[2]


def test_no_command_of_a_formula_is_left_as_it_is():
    for claim in read_claims(ROOT / "docs" / "reference" / "claims.md"):
        for cell in (claim.text, claim.asked, claim.measured):
            shown = html_of(cell)
            assert not re.search(r"[\\$`{}^]", shown), shown
            for tag in ("sup", "sub", "i", "span", "code"):
                assert shown.count(f"<{tag}>") + shown.count(f"<{tag} ") == shown.count(f"</{tag}>")


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("$10^{-8}$", "10<sup>−8</sup>"),
        (r"$\frac{d-1}{2}$", "(<i>d</i>~−~1)/2"),
        (r"$\sum_k\frac{2}{k^2}$", "∑<sub><i>k</i></sub>2/<i>k</i><sup>2</sup>"),
        (r"$\dot s = -2s$", "<i>s\u0307</i>~=~−2<i>s</i>"),
        (r"$2\log\tan(\varphi/2)$", "2~log~tan(<i>φ</i>/2)"),
        (r"$\langle x_i, w\rangle$", "⟨<i>x</i><sub><i>i</i></sub>,~<i>w</i>⟩"),
        (r"$a < b$ & *so*", "<i>a</i>~&lt;~<i>b</i></span> &amp; <em>so"),
    ],
)
def test_formulas_are_shown_without_scripts(markdown, html):
    assert html.replace("~", "\N{NARROW NO-BREAK SPACE}") in html_of(markdown)


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        (r"$10^{-8}$, and `x_1`", "10⁻⁸, and x_1"),
        (r"$e^{c\beta}\leq W_2$", "e^(cβ) ≤ W₂"),
        (r"$(\Sigma_0^{-1} - tM)^{-1}$", "(Σ₀⁻¹ − tM)⁻¹"),
        (r"$\operatorname{div} v$ in $\mathbb R^d$ & *so*", "divv in R^d & so"),
        (r"$x^{\alpha_k^2}$", "x^(α_k²)"),
        (r"$\min(1, \frac{d-1}2e^{-\beta})$", "min(1, ((d − 1)/2)e^(−β))"),
        (r"$c\,\frac c\beta\, \nabla f + \frac12^2$", "c (c/β) ∇f + (1/2)²"),
        (
            r"$\frac12 + \frac{1}{n} \leq (\frac a2)$, $\vert\frac ab\vert$",
            "1/2 + 1/n ≤ (a/2), |a/b|",
        ),
    ],
)
def test_formulas_are_text_on_a_terminal(markdown, text):
    assert plain(markdown) == text


def test_no_row_of_the_literature_shows_latex_on_a_terminal():
    for row in rows():
        assert not re.search(r"[\\$]|</?(sup|sub|i|span)\b", in_words(row)), row.key
