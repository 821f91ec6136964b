"""Markdown table cells with formulas as plain HTML, without scripts, or as text."""

import re
from html import escape, unescape

__all__ = ["html_of", "plain"]

MARKDOWN_PIECE = re.compile(r"\$(?P<formula>[^$]+)\$|`(?P<code>[^`]+)`|\*(?P<stressed>[^*]+)\*")
LATEX_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)

GREEK = dict(
    zip(
        "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau "
        "phi varphi varepsilon varrho chi psi omega Gamma Delta Theta Sigma Phi Psi Omega".split(),
        "αβγδεζηθκλμνξπρστφφεϱχψωΓΔΘΣΦΨΩ",
        strict=True,
    )
)
LATEX_SIGNS = {"cdot": "·", "langle": "⟨", "rangle": "⟩", "infty": "∞", "partial": "∂", "sum": "∑"}
LATEX_SIGNS |= {"circ": "∘", "ell": "ℓ", "dots": "…", "quad": "  ", "qquad": "    "}
LATEX_SIGNS |= {"lceil": "⌈", "rceil": "⌉", "lfloor": "⌊", "rfloor": "⌋", "iint": "∬"}
LATEX_SIGNS |= {"int": "∫", "nabla": "∇", "vert": "|", "lvert": "|", "rvert": "|", "ldots": "…"}
RELATIONS = {"leq": "≤", "geq": "≥", "le": "≤", "ge": "≥", "sim": "∼", "propto": "∝", "to": "→"}
RELATIONS |= {"pm": "±", "approx": "≈", "in": "∈", "times": "×", "gg": "≫", "leftarrow": "←"}
RELATIONS |= {sign: sign for sign in "=<>+"} | {"-": "−"}
ACCENTS = {"dot": "\u0307", "hat": "\u0302", "bar": "\u0304", "tilde": "\u0303"}
UPRIGHT = {"mathrm", "operatorname", "mathbb"}
LATEX_SIZES = {"left", "right", "Big", "!"}  # ignored
SMALL_DIGITS = {
    "sup": str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"),
    "sub": str.maketrans("0123456789−", "₀₁₂₃₄₅₆₇₈₉₋"),
}
HTML_INDEX = re.compile(r"<(sup|sub)>((?:(?!<sup>|<sub>).)*?)</\1>")
HTML_TAG = re.compile(r"</?(?:i|em|code|sup|sub|span)(?: [^>]*)?>")
# Tokens after which a product does not continue, or not without a sign.
END_OF_PRODUCT = {*"})],.;:!|/", r"\|", r"\vert", r"\rvert", r"\rangle", r"\rceil", r"\rfloor"}
END_OF_PRODUCT |= {r"\cdot", r"\quad", r"\qquad", r"\text", r"\ldots"}
THIN_SPACE = "\N{NARROW NO-BREAK SPACE}"


def html_of(markdown: str) -> str:
    """Convert formulas between $, `code` and *emphasis* to HTML; everything else is text.

    The LaTeX subset has Greek letters, signs, indices, exponents, fractions, roots and accents, as
    used in the table of claims; other commands are shown by name.
    """
    pieces, end = [], 0
    for match in MARKDOWN_PIECE.finditer(markdown):
        pieces.append(_text(markdown[end : match.start()]))
        if match["formula"]:
            formula = _Formula(match["formula"].replace(r"\|", "|")).html()
            pieces.append(f'<span class="formula">{formula}</span>')
        elif match["code"]:
            pieces.append(f"<code>{escape(match['code'])}</code>")
        else:
            pieces.append(f"<em>{_text(match['stressed'])}</em>")
        end = match.end()
    return "".join(pieces) + _text(markdown[end:])


def plain(markdown: str) -> str:
    """Convert to text for a terminal: indices and exponents as ρ_i, x^(1/2), or small digits."""
    text = html_of(markdown).replace(THIN_SPACE, " ")
    while match := HTML_INDEX.search(text):  # from the inside
        text = text[: match.start()] + _script(*match.groups()) + text[match.end() :]
    return unescape(HTML_TAG.sub("", text))


def _script(kind: str, html: str) -> str:
    """An exponent or an index as text; numbers in superscript or subscript digits."""
    content = HTML_TAG.sub("", html)
    if re.fullmatch("[−0-9]+", content):
        return content.translate(SMALL_DIGITS[kind])
    sign = "^" if kind == "sup" else "_"
    return sign + (content if len(content) == 1 else f"({content})")


def _text(markdown: str) -> str:
    return escape(markdown.replace(r"\|", "|"))


class _Formula:
    """A parser that reads a formula from left to right; a group is one unit, as in LaTeX."""

    def __init__(self, latex: str) -> None:
        self._tokens, self._binary = LATEX_TOKEN.findall(latex), False
        self._of_function = False  # whether the argument of a function such as log follows

    def html(self) -> str:
        """The HTML of the rest of the formula, or of the open group."""
        units = []
        while self._tokens and self._tokens[0] != "}":
            units.append(self._unit())
        return "".join(units)

    def _unit(self) -> str:
        """HTML of the next unit: an index, a group in braces, a relation, or a symbol."""
        token = self._tokens.pop(0)
        name = token.removeprefix("\\")
        if token in "^_":
            tag = "sup" if token == "^" else "sub"
            content, self._binary = self._argument(), True
            return f"<{tag}>{content}</{tag}>"
        if token == "{":
            content = self.html()
            del self._tokens[:1]
            return content
        if name in RELATIONS:
            return self._relation(RELATIONS[name])
        if token == " ":
            return ""
        is_binary, self._binary = self._binary, token not in "([,"
        return self._symbol(token, name, is_binary)

    def _symbol(self, token: str, name: str, is_binary: bool) -> str:
        """HTML of a symbol or command, with thin spaces around functions and binary operators."""
        of_function, self._of_function = self._of_function, False
        if name in ("frac", "tfrac") and token != name:
            fraction = f"{_grouped(self._argument())}/{_grouped(self._argument())}"
            return f"({fraction})" if of_function or self._factor_follows() else fraction
        if name == "sqrt":
            return f"√{_grouped(self._argument())}"
        if name in ACCENTS and token != name:
            return self._argument().replace("</i>", f"{ACCENTS[name]}</i>")
        if name in LATEX_SIZES and token != name:
            return ""
        if name == "text" and token != name:
            return self._words()
        if name in UPRIGHT and token != name:
            return re.sub("</?i>", "", self._argument())
        if name in GREEK and token != name:
            return f"<i>{GREEK[name]}</i>"
        if name in LATEX_SIGNS and token != name:
            return LATEX_SIGNS[name]
        if token != name and name.isalpha():  # \log and the like
            self._binary = self._tokens[:1] in ([], ["^"], ["_"], ["("], [")"])
            self._of_function = True
            return THIN_SPACE * is_binary + name + ("" if self._binary else THIN_SPACE)
        if token != name:  # \, and other spaces
            return THIN_SPACE
        return f"<i>{token}</i>" if token.isalpha() else escape(token) + THIN_SPACE * (token == ",")

    def _relation(self, sign: str) -> str:
        """A relation with spaces around it, or without if it is the sign of a number."""
        is_binary, self._binary = self._binary, False
        return THIN_SPACE + escape(sign) + THIN_SPACE if is_binary else escape(sign)

    def _words(self) -> str:
        """The verbatim argument of a text command."""
        end = self._tokens.index("}") if "}" in self._tokens else len(self._tokens)
        words = "".join(self._tokens[1:end])
        del self._tokens[: end + 1]
        return escape(words)

    def _factor_follows(self) -> bool:
        """Whether a factor follows, which would read as part of the denominator of a/b."""
        spaces = (" ", r"\,", "\\ ", r"\right", r"\Big")
        token = next((token for token in self._tokens if token not in spaces), "}")
        return token not in END_OF_PRODUCT and token.removeprefix("\\") not in RELATIONS

    def _argument(self) -> str:
        """HTML of the argument of a command, after blanks."""
        self._binary = False
        while self._tokens and self._tokens[0] == " ":
            del self._tokens[0]
        return self._unit() if self._tokens else ""


def _grouped(html: str) -> str:
    """The expression, in parentheses unless it is one symbol or number."""
    index = r"<sub>(\d+|<i>.</i>)</sub>|<sup>[^<]*</sup>"
    is_simple = re.fullmatch(rf"(<i>.{{1,2}}</i>|ℓ|\d+)({index})?", html)
    return html if is_simple else f"({html})"
