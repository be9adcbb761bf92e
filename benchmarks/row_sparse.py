"""FSPCA and certificates against scikit-learn's PCA, and how often streamed tables are read."""

from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD

from keepers import FSPCA, certify
from measure import side_by_side
from spcafs import topics, wide_planted

MORE_COMPONENTS = 50


def certificate(n: int, d: int, m: int, k: int, aim: float) -> dict[str, object]:
    """The certificate without the tight bound, beside PCA with 50 components more."""
    X = wide_planted(n, d, d // 100)
    features = np.argsort(-X.var(axis=0))[:k]
    measured = side_by_side(
        lambda: certify(X, features, m, tight=False),
        lambda: PCA(m + MORE_COMPONENTS, random_state=0).fit(X),
        repeats=3,
    )
    share = certify(X, features, m, tight=False).share
    return {**measured, "times": measured["ours_s"] / measured["theirs_s"], "aim": aim} | {
        "share": share
    }


def fspca(make: Callable[[], np.ndarray | sp.csr_array], k: int, m: int, aim: float) -> dict:
    """A fit beside PCA(m), or TruncatedSVD(m) where the table is sparse."""
    X = make()
    ours = FSPCA(k, n_components=m, random_state=0)
    theirs = (TruncatedSVD if sp.issparse(X) else PCA)(m, random_state=0)
    measured = side_by_side(lambda: ours.fit(X), lambda: theirs.fit(X), repeats=5)
    times = measured["ours_s"] / measured["theirs_s"]
    return {**measured, "times": times, "aim": aim}


def streamed(make: Callable[[], np.ndarray | sp.csr_array], k: int, m: int) -> dict[str, object]:
    """Passes over a table that is read again for every product, and the value beside memory's."""
    X = make()
    with patch("keepers.methods.reading.choose_route", lambda *_: "stream"):
        ours = FSPCA(k, n_components=m, random_state=0).fit_blocks(X)
    in_memory = FSPCA(k, n_components=m, random_state=0).fit(X)
    return {
        "passes": ours.n_passes_,
        "value_over_memory": ours.value_ / in_memory.value_,
        "same_features": int(np.sum(ours.support_ & in_memory.support_)),
        "k": k,
    }


planted = partial(wide_planted, 1000, 20_000, 200)
words = partial(topics, 20_000, 8000, 0.01)
CASES = {
    "certificate: planted 300 x 200,000, m = 10, k = 100": partial(
        certificate, 300, 200_000, 10, 100, 1.0
    ),
    "FSPCA: planted 1,000 x 20,000, m = 10, k = 50": partial(fspca, planted, 50, 10, 2.0),
    "FSPCA: CSR 20,000 x 8,000, m = 10, k = 50": partial(fspca, words, 50, 10, 2.0),
    "FSPCA streamed: planted 1,000 x 20,000, m = 10, k = 50": partial(streamed, planted, 50, 10),
    "FSPCA streamed: CSR 20,000 x 8,000, m = 10, k = 50": partial(streamed, words, 50, 10),
}
