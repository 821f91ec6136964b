"""Markdown of a table cell, with formulas, as HTML that needs no script to be shown, or as text."""

import re
from html import escape, unescape

__all__ = ["html_of", "plain"]

PIECE = re.compile(r"\$(?P<formula>[^$]+)\$|`(?P<code>[^`]+)`|\*(?P<stressed>[^*]+)\*")
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)

GREEK = dict(
    zip(
        "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau "
        "phi varphi varepsilon varrho chi psi omega Gamma Delta Theta Sigma Phi Psi Omega".split(),
        "αβγδεζηθκλμνξπρστφφεϱχψωΓΔΘΣΦΨΩ",
        strict=True,
    )
)
SIGNS = {"cdot": "·", "langle": "⟨", "rangle": "⟩", "infty": "∞", "partial": "∂", "sum": "∑"}
SIGNS |= {"circ": "∘", "ell": "ℓ", "dots": "…", "quad": "  ", "qquad": "    "}
SIGNS |= {"lceil": "⌈", "rceil": "⌉", "lfloor": "⌊", "rfloor": "⌋", "iint": "∬"}
SIGNS |= {"int": "∫", "nabla": "∇", "vert": "|", "lvert": "|", "rvert": "|", "ldots": "…"}
RELATIONS = {"leq": "≤", "geq": "≥", "le": "≤", "ge": "≥", "sim": "∼", "propto": "∝", "to": "→"}
RELATIONS |= {"pm": "±", "approx": "≈", "in": "∈", "times": "×", "gg": "≫", "leftarrow": "←"}
RELATIONS |= {sign: sign for sign in "=<>+"} | {"-": "−"}
ACCENTS = {"dot": "\u0307", "hat": "\u0302", "bar": "\u0304", "tilde": "\u0303"}
UPRIGHT = {"mathrm", "operatorname", "mathbb"}
SIZES = {"left", "right", "Big", "!"}  # which change nothing here
SMALL = {
    "sup": str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"),
    "sub": str.maketrans("0123456789−", "₀₁₂₃₄₅₆₇₈₉₋"),
}
INDEX = re.compile(r"<(sup|sub)>((?:(?!<sup>|<sub>).)*?)</\1>")
TAG = re.compile(r"</?(?:i|em|code|sup|sub|span)(?: [^>]*)?>")
# What does not go on with a product, or not without a sign.
CLOSING = {*"})],.;:!|/", r"\|", r"\vert", r"\rvert", r"\rangle", r"\rceil", r"\rfloor"}
CLOSING |= {r"\cdot", r"\quad", r"\qquad", r"\text", r"\ldots"}
BLANK = "\N{NARROW NO-BREAK SPACE}"


def html_of(markdown: str) -> str:
    """Formulas between $, `code` and *stressed* words; everything else is text.

    Known of LaTeX are Greek letters, signs, indices, exponents, fractions, roots and accents, as
    the table of claims has them; a command beyond these is shown by its name.
    """
    pieces, at = [], 0
    for found in PIECE.finditer(markdown):
        pieces.append(_text(markdown[at : found.start()]))
        if found["formula"]:
            inside = _Formula(found["formula"].replace(r"\|", "|")).html()
            pieces.append(f'<span class="formula">{inside}</span>')
        elif found["code"]:
            pieces.append(f"<code>{escape(found['code'])}</code>")
        else:
            pieces.append(f"<em>{_text(found['stressed'])}</em>")
        at = found.end()
    return "".join(pieces) + _text(markdown[at:])


def plain(markdown: str) -> str:
    """The same as text for a terminal: indices and exponents as ρ_i, x^(1/2), or small digits."""
    text = html_of(markdown).replace(BLANK, " ")
    while found := INDEX.search(text):  # from the inside
        text = text[: found.start()] + _small(*found.groups()) + text[found.end() :]
    return unescape(TAG.sub("", text))


def _small(kind: str, html: str) -> str:
    """An exponent or an index, in digits of its own where it is a number."""
    inside = TAG.sub("", html)
    if re.fullmatch("[−0-9]+", inside):
        return inside.translate(SMALL[kind])
    sign = "^" if kind == "sup" else "_"
    return sign + (inside if len(inside) == 1 else f"({inside})")


def _text(markdown: str) -> str:
    return escape(markdown.replace(r"\|", "|"))


class _Formula:
    """Reads a formula from left to right; a group is one unit, as in LaTeX."""

    def __init__(self, latex: str):
        self._tokens, self._binary = TOKEN.findall(latex), False
        self._of_function = False  # whether what comes is the argument of log and the like

    def html(self) -> str:
        """All that is left, or what is left of the group that has been opened."""
        units = []
        while self._tokens and self._tokens[0] != "}":
            units.append(self._unit())
        return "".join(units)

    def _unit(self) -> str:
        token = self._tokens.pop(0)
        name = token.removeprefix("\\")
        if token in "^_":
            tag = "sup" if token == "^" else "sub"
            inside, self._binary = self._argument(), True
            return f"<{tag}>{inside}</{tag}>"
        if token == "{":
            inside = self.html()
            del self._tokens[:1]
            return inside
        if name in RELATIONS:
            return self._relation(RELATIONS[name])
        if token == " ":
            return ""
        between, self._binary = self._binary, token not in "([,"
        return self._symbol(token, name, between)

    def _symbol(self, token: str, name: str, between: bool) -> str:
        of_function, self._of_function = self._of_function, False
        if name in ("frac", "tfrac") and token != name:
            of = f"{_grouped(self._argument())}/{_grouped(self._argument())}"
            return f"({of})" if of_function or self._factor_follows() else of
        if name == "sqrt":
            return f"√{_grouped(self._argument())}"
        if name in ACCENTS and token != name:
            return self._argument().replace("</i>", f"{ACCENTS[name]}</i>")
        if name in SIZES and token != name:
            return ""
        if name == "text" and token != name:
            return self._words()
        if name in UPRIGHT and token != name:
            return re.sub("</?i>", "", self._argument())
        if name in GREEK and token != name:
            return f"<i>{GREEK[name]}</i>"
        if name in SIGNS and token != name:
            return SIGNS[name]
        if token != name and name.isalpha():  # \log and the like
            self._binary = self._tokens[:1] in ([], ["^"], ["_"], ["("], [")"])
            self._of_function = True
            return BLANK * between + name + ("" if self._binary else BLANK)
        if token != name:  # \, and other spaces
            return BLANK
        return f"<i>{token}</i>" if token.isalpha() else escape(token) + BLANK * (token == ",")

    def _relation(self, sign: str) -> str:
        """With spaces around it, unless it is the sign of a number."""
        between, self._binary = self._binary, False
        return BLANK + escape(sign) + BLANK if between else escape(sign)

    def _words(self) -> str:
        """What is between the braces of text, as it stands."""
        end = self._tokens.index("}") if "}" in self._tokens else len(self._tokens)
        words = "".join(self._tokens[1:end])
        del self._tokens[: end + 1]
        return escape(words)

    def _factor_follows(self) -> bool:
        """Whether what is left begins with a factor, which a/b would take into its denominator."""
        spaces = (" ", r"\,", "\\ ", r"\right", r"\Big")
        token = next((token for token in self._tokens if token not in spaces), "}")
        return token not in CLOSING and token.removeprefix("\\") not in RELATIONS

    def _argument(self) -> str:
        self._binary = False
        while self._tokens and self._tokens[0] == " ":
            del self._tokens[0]
        return self._unit() if self._tokens else ""


def _grouped(html: str) -> str:
    """In parentheses if it is more than a symbol or a number."""
    index = r"<sub>(\d+|<i>.</i>)</sub>|<sup>[^<]*</sup>"
    alone = re.fullmatch(rf"(<i>.{{1,2}}</i>|ℓ|\d+)({index})?", html)
    return html if alone else f"({html})"
