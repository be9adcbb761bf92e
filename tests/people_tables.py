"""Tables with the columns of well-known ones, and made-up values."""

import numpy as np
import pandas as pd


def flights(n=3000, seed=0):
    """Columns as in nycflights13."""
    rng = np.random.default_rng(seed)
    left = rng.integers(5, 24, n) * 100 + rng.integers(0, 60, n)
    hours = pd.Timestamp("2013-01-01") + pd.to_timedelta(rng.integers(0, 8760, n), "h")
    return pd.DataFrame(
        {
            "year": 2013,
            "month": hours.month,
            "day": hours.day,
            "dep_time": np.where(rng.random(n) < 0.03, np.nan, left),
            "dep_delay": rng.integers(-20, 200, n),
            "carrier": rng.choice(["UA", "AA", "B6", "DL", "EV", "MQ", "US", "WN"], n),
            "flight": rng.integers(1, 8500, n),
            "tailnum": [f"N{number}AA" for number in rng.integers(100, 4000, n)],
            "origin": rng.choice(["JFK", "LGA", "EWR"], n),
            "dest": rng.choice([f"D{number:02d}" for number in range(105)], n),
            "air_time": rng.integers(20, 690, n),
            "distance": rng.integers(17, 4983, n),
            "time_hour": hours.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    )


def bikes(n=2924, seed=0):
    """Columns as in the bike sharing data of Washington."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2011-01-01") + pd.to_timedelta(np.arange(n) // 24, "D")
    warmth = rng.random(n)
    return pd.DataFrame(
        {
            "instant": np.arange(1, n + 1),
            "dteday": days.strftime("%Y-%m-%d"),
            "season": rng.integers(1, 5, n),
            "yr": rng.integers(0, 2, n),
            "mnth": rng.integers(1, 13, n),
            "hr": np.arange(n) % 24,
            "temp": warmth,
            "atemp": warmth + 0.02 * rng.standard_normal(n),
            "hum": rng.random(n),
            "casual": rng.integers(0, 300, n),
            "registered": rng.integers(0, 800, n),
            "cnt": rng.integers(1, 977, n),
        }
    )


def colleges(n=777, seed=0):
    """Columns as in the College data of ISLR."""
    rng = np.random.default_rng(seed)

    def amounts(middle, spread):
        return np.rint(middle * np.exp(spread * rng.standard_normal(n)))

    return pd.DataFrame(
        {
            "Unnamed: 0": [f"College {number}" for number in range(n)],
            "Private": rng.choice(["Yes", "No"], n),
            "Apps": amounts(1558, 1.1),
            "Accept": amounts(1110, 1.0),
            "Enroll": amounts(434, 0.9),
            "Top10perc": rng.integers(1, 96, n),
            "F.Undergrad": amounts(1707, 1.0),
            "P.Undergrad": amounts(353, 1.4),
            "Outstate": amounts(9990, 0.4),
            "Room.Board": amounts(4200, 0.25),
            "Books": amounts(500, 0.3),
            "Personal": amounts(1200, 0.5),
            "PhD": rng.integers(8, 103, n),
            "S.F.Ratio": rng.normal(14, 4, n).round(1),
            "perc.alumni": rng.integers(0, 64, n),
            "Expend": amounts(8377, 0.4),
        }
    )


def gene_counts(n_samples=12, n_genes=3000, seed=0):
    """Counts of genes: every gene with a level of its own, more spread than Poisson."""
    rng = np.random.default_rng(seed)
    levels = np.exp(rng.normal(3.0, 2.0, n_genes))
    rates = levels * rng.gamma(5.0, 0.2, (n_samples, n_genes))
    return rng.poisson(rates).astype(float)


def houses(n=600, seed=0):
    """Columns as in the Ames housing data: numbers, words, grades, and gaps in up to 99 % of rows.

    ``MEASURED`` follow the size and age of a house; the last seven are noise.
    """
    rng = np.random.default_rng(seed)
    size, age = rng.standard_normal(n), rng.standard_normal(n)

    def near(cause, noise=0.5):
        return cause + noise * rng.standard_normal(n)

    def graded(cause, words):
        ranks = np.argsort(np.argsort(near(cause)))
        return np.array(words, dtype=object)[ranks * len(words) // n]

    def holed(values, share):
        values = np.array(values, dtype=object)
        values[rng.permutation(n)[: round(share * n)]] = None
        return values

    grades = ["Po", "Fa", "TA", "Gd", "Ex"]
    table = pd.DataFrame(
        {
            "Id": np.arange(1, n + 1),
            "SaleDate": pd.date_range("2006-01-01", periods=n, freq="2D").strftime("%Y-%m-%d"),
            "GrLivArea": (1500 + 400 * near(size)).round(),
            "TotalBsmtSF": (1000 + 300 * near(size)).round(),
            "GarageCars": np.clip(np.rint(2 + near(size)), 0, 4).astype(int),
            "TotRmsAbvGrd": np.clip(np.rint(6 + 1.5 * near(size)), 2, 14).astype(int),
            "LotFrontage": holed((70 + 20 * near(size)).round(1), 0.18),
            "YearBuilt": np.rint(1970 - 25 * near(age)).astype(int),
            "YearRemodAdd": np.rint(1985 - 15 * near(age)).astype(int),
            "ExterQual": graded(-age, grades),
            "KitchenQual": graded(-age, grades),
            "Foundation": graded(age, ["PConc", "CBlock", "BrkTil"]),
            "FireplaceQu": holed(graded(size, grades), 0.47),
            "CentralAir": rng.choice(["Y", "N"], n),
            "MoSold": rng.integers(1, 13, n),
            "PoolQC": holed(rng.choice(grades, n), 0.99),
            "Alley": holed(rng.choice(["Grvl", "Pave"], n), 0.93),
            "Fence": holed(rng.choice(["GdPrv", "MnPrv", "GdWo", "MnWw"], n), 0.81),
            "PoolArea": holed(rng.normal(500, 90, n).round(), 0.99),
            "MiscVal": holed(rng.gamma(2, 300, n).round(), 0.96),
        }
    )
    return table.infer_objects()


MEASURED = (
    *("GrLivArea", "TotalBsmtSF", "GarageCars", "TotRmsAbvGrd", "LotFrontage", "YearBuilt"),
    *("YearRemodAdd", "ExterQual", "KitchenQual", "Foundation", "FireplaceQu"),
)
