"""Which two settings tell what a mechanism gains."""

from dataclasses import dataclass

from experiments.mechanism_settings import AS_IS

SEVERAL = ("Epilepsy", "Libras", "NATOPS", "RacketSports", "finger")  # channels
# Settings of mechanisms that were removed; their rows are kept, so that the table shows why.
REMOVED = (
    "random splits",
    "patches, random splits",
    "SPORF, random splits",
    "steps and squares",
    "steps and squares for pairs",
)


@dataclass(frozen=True)
class Comparison:
    mechanism: str
    group: str
    on: str
    off: str
    data: tuple[str, ...] = ()  # all of the group's, if empty


def on(group, *lines):
    return tuple(Comparison(mechanism, group, *rest) for mechanism, *rest in lines)


COMPARISONS = (
    *on(
        "series, ridge",
        ("kernels that compete", AS_IS, "no kernels"),
        ("kernels that compete", AS_IS, "MiniRocket's kernels"),
        ('`Kernel("rocket")`', "MiniRocket's kernels", "no kernels"),
        ('`Kernel("rocket")`', "MiniRocket's kernels", "triple kernels"),
        ('`Kernel("triple")`', "triple kernels", "no kernels"),
        ('`Kernel("sign")`', "sign kernels", "no kernels"),
        ('`Kernel("sign")`, competing', "competing signs", AS_IS),
        ('`Kernel("gaussian")`', "Gaussian kernels", "no kernels"),
        ('`Kernel("gabor")`', "Gabor kernels", "no kernels"),
        ('`pool="lose"`', AS_IS, "kernels that win"),
        ("`rivals=5`", AS_IS, "one rival"),
        ("`rivals=5`", AS_IS, "20 rivals"),
        ('`dilation="log"`', AS_IS, "kernels without dilation"),
        ("`Difference`", AS_IS, "raw values alone"),
        ("`Pair`", AS_IS, "no pairs"),
        ("`Pair`", AS_IS, "steps for pairs"),
        ("`Pair` across sensors", AS_IS, "pairs within sensors", SEVERAL),
        ("intervals, pooled", AS_IS, "no intervals"),
        ("sizes by logarithm", AS_IS, "uniform sizes"),
        ("pooled proportion", AS_IS, "extremes alone"),
        ("pooled maximum and minimum", AS_IS, "proportions alone"),
        ("pooled maximum", AS_IS, "no maxima"),
        ("pooled minimum", AS_IS, "no minima"),
        ("pooled mean", "means too", AS_IS),
        ("pooled mean", "means alone", "proportions alone"),
        ("windows of all positions", AS_IS, "drawn windows"),
    ),
    *on(
        "series, forest",
        ("learned combinations", AS_IS, "no combinations"),
        ("`Variance`", AS_IS, "no variances"),
        ("`Haar`", AS_IS, "no steps"),
        ("atoms in place", AS_IS, "no atoms in place"),
        ("pooled atoms", AS_IS, "no pooled atoms"),
        ("atoms shared by a forest", "atoms of a forest", "atoms of a tree"),
        ("atoms shared by a tree", "atoms of a tree", "atoms of a node"),
        ("copies of series, forest", "patches, copies", "patches"),
        ("copies of series, boosting", "boosting, copies", "boosting"),
        ("exact splits", "exact splits", AS_IS),
        ("random splits", "random splits", AS_IS),
    ),
    *on(
        "simulations",
        ("learned combinations", AS_IS, "no combinations", ("A", "D")),
        ("learned combinations", AS_IS, "no combinations", ("C",)),
        ("`Variance`", AS_IS, "no variances", ("D",)),
        ("atoms in place", AS_IS, "no atoms in place", ("C",)),
        ("pooled atoms", AS_IS, "no pooled atoms", ("A",)),
        ("pooled atoms", AS_IS, "no pooled atoms", ("D",)),
    ),
    *on(
        "images",
        ("`Gradient`", AS_IS, "no gradients"),
        ("`Magnitude`", AS_IS, "no magnitudes"),
        ("raw values", AS_IS, "no raw values"),
        ("`Pair`", AS_IS, "no pairs"),
        ("`Pair`", AS_IS, "steps for pairs"),
        ("patches", AS_IS, "no patches"),
        ("`Haar`", "steps for pairs", "no pairs"),
        ('`Haar(lobes="square")`', "steps and squares for pairs", "steps for pairs"),
        ("atoms shared by a tree", AS_IS, "atoms of a node"),
        ("atoms shared by a forest", "atoms of a forest", AS_IS),
        ("learned combinations", "combinations", "atoms of a forest"),
        ("copies of images, forest", "copies", AS_IS),
        ("copies of images, boosting", "boosting, copies", "boosting"),
        ("exact splits", "exact splits", AS_IS),
        ("random splits", "random splits", AS_IS),
        ("exact splits", "patches, exact splits", "patches"),
        ("random splits", "patches, random splits", "patches"),
        ("sizes by logarithm", "patches, sizes by logarithm", "patches"),
        ("patches over the border", "patches", "patches, inside"),
        ("pooled patches", "patches, pooled", "patches"),
        ('`Kernel("gaussian")`', "Gaussian kernels", "patches to 7 x 7"),
        ('`Kernel("gabor")`', "Gabor kernels", "patches to 7 x 7"),
        ('`Kernel("sign")`', "sign kernels", "patches to 7 x 7"),
        ("`Haar`", "steps", "patches to 7 x 7"),
        ('`Haar(lobes="square")`', "steps and squares", "steps"),
        ("`Pair`", "pairs", "steps"),
        ("best-first growth", "boosting, best first", "boosting, depth 4"),
    ),
    *on(
        "patches",
        ("patches that wrap", "wrapping", AS_IS, ("A",)),
        ("patches over the border", AS_IS, "inside", ("C",)),
        ("sizes by logarithm", "sizes by logarithm", AS_IS, ("A",)),
        ("sizes by logarithm", "sizes by logarithm", AS_IS, ("C",)),
        ("no bootstrap", "no bootstrap", AS_IS, ("A",)),
        ("no bootstrap", "no bootstrap", AS_IS, ("C",)),
        ("single features among patches", "with single features", AS_IS, ("C",)),
        ("`Square`", "squares", AS_IS, ("D",)),
        ("`Square`", "squares alone", AS_IS, ("D",)),
        ("`Square`", "squares", AS_IS, ("C",)),
        ("`Variance`", "variances", AS_IS, ("D",)),
        ("`Variance`", "variances", "squares", ("D",)),
        ("`Difference`", "differences", AS_IS, ("D",)),
        ("exact splits", "exact splits", AS_IS),
        ("random splits", "random splits", AS_IS),
    ),
    *on(
        "sensors",
        ("patches over several sensors", "neighbouring sensors", "one sensor"),
        ("`contiguous=False`", "any sensors", "one sensor"),
        ("`contiguous=False`", "any sensors", "neighbouring sensors"),
    ),
    *on(
        "tables",
        ("guided sums", "guided sums", "sums"),
        ("guided sums", "guided sums", "sums", ("few informative among 100",)),
        ("sparse sums in boosting", "sums", "single features"),
        ("sparse sums in forests (SPORF)", "SPORF", "RF"),
        ("exact splits", "SPORF, exact splits", "SPORF"),
        ("random splits", "SPORF, random splits", "SPORF"),
        ("best-first growth", "best first", "depth 4"),
    ),
)
