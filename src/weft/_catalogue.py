"""The methods by the names that people type: one list for reports, the command line, the studio.

Plain text only: completion in a shell must not wait for NumPy to load.
"""

# name: (class in weft, what it does)
EMBEDDERS = {
    "auto": ("MixedEmbedder", "Weave for categories, numbers scaled, balanced"),
    "weave": ("Weave", "couplings of the columns at all scales"),
    "onehot": ("OneHot", "every value its own axis; the baseline"),
    "untie": ("UNTIE", "couplings, weights learned without labels"),
    "helic": ("HELIC", "couplings weighted by the classes; needs a target"),
    "ckml": ("CKML", "coupled kernel metric"),
    "cde": ("CDE", "value clusters at many resolutions"),
    "nonbend": ("NonBEND", "a table untangled into independent parts"),
    "unicorn": ("UNICORN", "couplings of a stream"),
}
SUPERVISED = ("helic", "vdm", "mtdle")  # learn from classes
NO_VECTORS = ("jia",)  # looks at two columns at a time
