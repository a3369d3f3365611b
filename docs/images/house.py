"""Draw house.svg, the picture of docs/design.md: python docs/images/house.py."""

from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 980, 846
LEFT, GAP, COLUMN = 96, 16, 280
X = [LEFT + i * (COLUMN + GAP) for i in range(3)]
FOREST, BOOSTING, RIDGE, SHARED, CORE = "#dbe9f6", "#fde5cf", "#dff0d8", "#f3f3f3", "#e8e1f3"
FULL = 3 * COLUMN + 2 * GAP
TREES = 2 * COLUMN + GAP

parts: list[str] = []


def box(x, y, width, height, fill, title, *lines):
    """Draw a rounded box with a title and lines of text in its middle."""
    parts.append(
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" fill="{fill}" '
        'stroke="#555" stroke-width="1"/>'
    )
    middle = x + width / 2
    top = y + height / 2 - 8.5 * len(lines) + 5
    parts.append(f'<text x="{middle}" y="{top}" class="title">{escape(title)}</text>')
    for i, line in enumerate(lines, 1):
        parts.append(f'<text x="{middle}" y="{top + 17 * i}" class="line">{escape(line)}</text>')


def arrow(x, y, end):
    """Draw an arrow downwards, from `y` to `end`."""
    parts.append(f'<path d="M{x} {y}V{end - 7}" class="arrow" marker-end="url(#head)"/>')


def label(y, height, text):
    """Draw a bar at the left with text turned upwards."""
    parts.append(f'<rect x="14" y="{y}" width="60" height="{height}" rx="7" fill="#555"/>')
    middle = y + height / 2
    parts.append(
        f'<text x="44" y="{middle}" class="side" transform="rotate(-90 44 {middle})">{text}</text>'
    )


centres = [x + COLUMN / 2 for x in X]

label(12, 580, "fit(X, y)")
box(X[0], 12, COLUMN, 56, FOREST, "forest.py, tree.py", "forests and single trees")
box(X[1], 12, COLUMN, 56, BOOSTING, "boosting.py", "boosted trees")
box(X[2], 12, COLUMN, 56, RIDGE, "ridge.py, features.py", "ridge models; atoms as columns")
for c in centres:
    arrow(c, 68, 90)
box(
    X[0],
    90,
    FULL,
    56,
    SHARED,
    "_validation.py",
    "samples of any rank, targets, weights, parameters",
)
for c in centres:
    arrow(c, 146, 168)
box(
    X[0],
    168,
    FULL,
    56,
    SHARED,
    "dictionary/",
    'a dictionary object, or a name such as "series", resolved for the shape of a sample; '
    '_auto.py chooses for "auto"',
)
for c in centres:
    arrow(c, 224, 246)
box(
    X[0],
    246,
    FULL,
    56,
    SHARED,
    "_training.py, _table.py, _fixed_point.py",
    "a training task; its table holds each sample as exact integers, with views and prefix sums",
)
for c in centres:
    arrow(c, 302, 324)
box(
    X[0],
    324,
    COLUMN,
    92,
    FOREST,
    "_grow.py, _bagging.py",
    "a bag for each tree (copies: augment.py);",
    "trees grow in parallel (_parallel.py)",
)
box(
    X[1],
    324,
    COLUMN,
    92,
    BOOSTING,
    "_rounds.py, _losses.py",
    "gradients of the loss; one tree per round",
    "on a subsample (copies: augment.py)",
)
box(
    X[2],
    324,
    COLUMN,
    92,
    RIDGE,
    "features.py",
    "n_atoms atoms are drawn once",
    "(core/atoms/)",
)
for c in centres:
    arrow(c, 416, 438)
box(
    X[0],
    438,
    TREES,
    76,
    CORE,
    "core/growth/: one tree, node by node",
    "draw atoms (core/atoms/), project the rows (core/projection/),",
    "find the best threshold (core/splitting/), partition the rows",
)
box(
    X[2],
    438,
    COLUMN,
    76,
    CORE,
    "core/projection/",
    "values of all atoms, standardised",
    "in ridge.py",
)
for c in centres:
    arrow(c, 514, 536)
box(
    X[0],
    536,
    TREES,
    56,
    SHARED,
    "_model.py: the fitted forest",
    "flat arrays, which _pickling.py writes and reads",
)
box(X[2], 536, COLUMN, 56, SHARED, "ridge regression", "coef_, alpha_, leave-one-out values")

label(624, 208, "predict(X)")
for c in centres:
    arrow(c, 592, 624)
box(
    X[0],
    624,
    FULL,
    56,
    SHARED,
    "_validation.py, _fixed_point.py",
    "the same shape, the same units: new samples as exact integers",
)
for c in centres:
    arrow(c, 680, 702)
box(
    X[0],
    702,
    TREES,
    56,
    CORE,
    "core/forest/",
    "rows walk down the trees; _importance.py, _attribution.py and _splits.py explain",
)
box(X[2], 702, COLUMN, 56, CORE, "core/projection/", "values of the same atoms")
for c in centres:
    arrow(c, 758, 776)
box(X[0], 776, COLUMN, 56, FOREST, "mean of the leaves", "predict_proba, predict")
box(
    X[1],
    776,
    COLUMN,
    56,
    BOOSTING,
    "sum of the leaves",
    "decision_function, predict_proba, predict",
)
box(X[2], 776, COLUMN, 56, RIDGE, "weighted sum", "decision_function, predict_proba, predict")

svg = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" \
width="{WIDTH}" height="{HEIGHT}" role="img" \
aria-label="Data flow of fit and predict for forests, boosting and the ridge estimators">
<style>
text {{ font-family: "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif }}
text {{ text-anchor: middle; fill: #111 }}
.title {{ font-size: 14px; font-weight: bold }}
.line {{ font-size: 12.5px }}
.side {{ font-size: 16px; font-weight: bold; fill: #fff; dominant-baseline: central }}
.arrow {{ stroke: #555; stroke-width: 1.6; fill: none }}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="6" markerHeight="6" \
orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
{chr(10).join(parts)}
</svg>
"""
Path(__file__).with_name("house.svg").write_text(svg)
