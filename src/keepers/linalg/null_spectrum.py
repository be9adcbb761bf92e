"""The largest eigenvalue that columns without any common structure would have.

Horn's parallel analysis shuffles every column and looks at the spectrum that is left. Its limit
is known: for n samples of independent columns with variances t_1..t_d, the spectrum fills the
Marchenko-Pastur law with population spectrum {t_j}, and its upper edge solves one scalar equation
(Silverstein and Choi 1995; used for choosing components by Dobriban and Owen, JRSS B 2019). So the
answer needs the column variances only, and no random numbers.
"""

import numpy as np
from scipy.optimize import brentq

from keepers._protocols import FloatArray

__all__ = ["null_edge"]


def null_edge(variances: FloatArray, n_samples: int) -> float:
    """Upper edge of the eigenvalues of the sample covariance of independent columns.

    With all variances equal to t it is t (1 + sqrt(d/n))^2.
    """
    largest = float(variances.max())
    t = variances / largest

    def excess(x: float) -> float:
        ratio = t * x / (1.0 - t * x)
        return float(ratio @ ratio) / n_samples - 1.0

    x = brentq(excess, 0.0, 1.0 - 1e-12) if excess(1.0 - 1e-12) > 0 else 1.0 - 1e-12
    return largest * (1.0 / x + float(np.sum(t / (1.0 - t * x))) / n_samples)
