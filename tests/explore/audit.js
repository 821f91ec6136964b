// What a page lacks for those who cannot see it, or not well: a list of sentences.
() => {
    const found = [], shown = (e) => e.checkVisibility({ visibilityProperty: true });
    const name = (e) => `${e.tagName.toLowerCase()} ${(e.textContent || e.src || "").trim().slice(0, 40)}`;
    const all = (words) => [...document.querySelectorAll(words)];

    if (!document.documentElement.lang) found.push("no language");
    if (all("h1").length !== 1) found.push(`${all("h1").length} headings h1`);
    let before = 0;
    for (const heading of all("h1, h2, h3, h4, h5, h6").filter(shown)) {
        const level = +heading.tagName[1];
        if (level > before + 1) found.push(`h${level} after h${before}: ${name(heading)}`);
        before = level;
    }
    const ids = all("[id]").map((e) => e.id);
    for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i)))
        if (!id.startsWith("MJX")) found.push(`id ${id} twice`);
    for (const image of all("img")) {
        const beside = image.hasAttribute("alt") && image.parentElement.textContent.trim();
        if (!image.alt?.trim() && !beside) found.push(`no text for ${image.src.split("/").pop()}`);
        if (shown(image) && image.complete && !image.naturalWidth)
            found.push(`not loaded: ${image.src}`);
        const style = getComputedStyle(image), inner = (length, ...sides) =>
            sides.reduce((left, side) => left - parseFloat(style[`padding${side}`]), length);
        const wide = inner(image.clientWidth, "Left", "Right") / image.naturalWidth;
        const tall = inner(image.clientHeight, "Top", "Bottom") / image.naturalHeight;
        if (shown(image) && image.naturalWidth && Math.abs(wide / tall - 1) > 0.05)
            found.push(`out of proportion: ${image.src.split("/").pop()}`);
    }
    const spoken = (e) => e.textContent.trim() || e.getAttribute("aria-label") || e.title
        || e.querySelector("img[alt], svg title, [aria-label]");
    for (const link of all("a[href], button")) if (shown(link) && !spoken(link)) found.push(`unnamed ${link.outerHTML.slice(0, 80)}`);
    for (const input of all("input, select, textarea")) {
        const labelled = input.labels?.length || input.getAttribute("aria-label") || input.title;
        if (shown(input) && !labelled) found.push(`unlabelled ${input.outerHTML.slice(0, 80)}`);
    }
    for (const error of all("mjx-merror, .MathJax_Error")) found.push(`formula: ${name(error)}`);
    for (const left of all("span.math, div.math"))
        if (/^\\[([]/.test(left.textContent.trim()) && !left.querySelector("mjx-container, svg, .MathJax"))
            found.push(`not typeset: ${name(left)}`);
    const wider = document.scrollingElement.scrollWidth - innerWidth;
    if (wider > 1) found.push(`${wider} px wider than the window`);

    const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => {
        const linear = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const over = ([r, g, b, a = 1], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
    const behind = (e) => {
        const layers = [];
        for (; e; e = e.parentElement) {
            const colour = parse(getComputedStyle(e).backgroundColor);
            if (colour.length && colour[3] !== 0) layers.push(colour);
            if (colour.length === 3 || colour[3] === 1) break;
        }
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const seen = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const e = walk.currentNode.parentElement, style = getComputedStyle(e);
        if (!walk.currentNode.textContent.trim() || !shown(e) || e.closest("svg, script, style, mjx-assistive-mml")) continue;
        if (parseFloat(style.opacity) === 0 || !e.getClientRects().length) continue;
        const ground = behind(e), ink = over(parse(style.color), ground);
        const [low, high] = [light(ground), light(ink)].sort((a, b) => a - b);
        const ratio = (high + 0.05) / (low + 0.05), size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
        const kind = `${e.tagName}.${e.className} ${ratio.toFixed(2)}`;
        if (ratio < (large ? 3 : 4.5) && !seen.has(kind)) {
            seen.add(kind);
            found.push(`contrast ${ratio.toFixed(2)}: ${name(e)} (${e.className})`);
        }
    }
    return found;
}
