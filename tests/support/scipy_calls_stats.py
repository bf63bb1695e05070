"""Calls of scipy.stats: see scipy_calls.py. Those of univariate distributions are written from tables."""

from __future__ import annotations

# Shape parameters of distributions; a trailing "i" marks those that must be whole numbers.
_CONTINUOUS = """
alpha 3.57; anglit; arcsine; argus 1.0; beta 2.31 0.63; betaprime 5 6; bradford 0.3; burr 10.5 4.3; burr12 10 4
cauchy; chi 78; chi2 55; cosine; crystalball 2.0 3.0; dgamma 1.1; dpareto_lognorm 3 1.2 1.5 2; dweibull 2.07
erlang 10i; expon; exponnorm 1.5; exponpow 2.7; exponweib 2.89 1.95; f 29 18; fatiguelife 29; fisk 3.09
foldcauchy 4.72; foldnorm 1.95; gamma 1.99; gausshyper 13.8 3.12 2.51 5.18; genexpon 9.13 16.2 3.28
genextreme 0.1; gengamma 4.42 3.12; genhalflogistic 0.77; genhyperbolic 0.5 1.5 0.5; geninvgauss 2.3 1.5
genlogistic 0.41; gennorm 1.3; genpareto 0.1; gibrat; gompertz 0.95; gumbel_l; gumbel_r; halfcauchy
halfgennorm 0.67; halflogistic; halfnorm; hypsecant; invgamma 4.07; invgauss 0.145; invweibull 10.6
irwinhall 10i; jf_skew_t 8 4; johnsonsb 4.32 3.18; johnsonsu 2.55 2.25; kappa3 1.0; kappa4 0.1 0.2; ksone 10i
kstwo 10i; kstwobign; landau; laplace; laplace_asymmetric 2.0; levy; levy_l; levy_stable 1.8 -0.5; loggamma 0.41
logistic; loglaplace 3.25; lognorm 0.95; loguniform 0.01 1.25; lomax 1.88; maxwell; mielke 10.4 4.6; moyal
nakagami 4.97; ncf 27 27 0.416; nct 14 0.24; ncx2 21 1.06; norm; norminvgauss 1.25 0.5; pareto 2.62; pearson3 -0.1
powerlaw 1.66; powerlognorm 2.14 0.45; powernorm 4.45; rayleigh; rdist 1.6; recipinvgauss 0.63; reciprocal 0.01 1.25
rel_breitwigner 36.5; rice 0.775; semicircular; skewcauchy 0.5; skewnorm 4.0; studentized_range 3.0 10.0; t 2.74
trapezoid 0.2 0.8; triang 0.158; truncexpon 4.69; truncnorm -1.1 2.75; truncpareto 1.8 5.3
truncweibull_min 2.5 0.25 1.75; tukeylambda 3.13; uniform; vonmises 3.99; vonmises_line 3.99; wald; weibull_max 2.87
weibull_min 1.79; wrapcauchy 0.031
"""
_DISCRETE = """
bernoulli 0.3; betabinom 5i 2.3 0.63; betanbinom 5i 9.3 1; binom 5i 0.4; boltzmann 1.4 19i; dlaplace 0.8; geom 0.5
hypergeom 30i 12i 6i; logser 0.6; nbinom 5 0.5; nchypergeom_fisher 140i 80i 60i 0.5
nchypergeom_wallenius 140i 80i 60i 0.5; nhypergeom 20i 7i 12i; planck 0.51; poisson 0.6; poisson_binom; randint 7i 31i
skellam 15 8; yulesimon 11; zipf 6.5; zipfian 1.25 10i
"""
CONTINUOUS_METHODS = ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"]
DISCRETE_METHODS = ["pmf", "logpmf", "cdf", "sf"]
# The most used distributions: frozen ones and moments are shown for them, too.
COMMON = [
    "norm",
    "uniform",
    "expon",
    "gamma",
    "beta",
    "t",
    "chi2",
    "f",
    "lognorm",
    "laplace",
    "logistic",
    "cauchy",
    "weibull_min",
    "pareto",
    "rayleigh",
    "maxwell",
    "halfnorm",
    "gumbel_r",
    "gumbel_l",
    "invgamma",
    "genextreme",
    "genpareto",
    "truncnorm",
    "skewnorm",
    "vonmises",
    "triang",
    "powerlaw",
    "invgauss",
    "dweibull",
    "halfcauchy",
    "loggamma",
    "exponweib",
    "weibull_max",
]


def _distributions(table):
    for entry in table.replace("\n", ";").split(";"):
        if entry.strip():
            name, *shapes = entry.split()
            yield name, shapes


def _traced(shapes):
    """The shape parameters as source: those that may vary are scaled by r, which is near 1."""
    return [s[:-1] if s.endswith("i") else f"{s} * r" for s in shapes]


def continuous() -> str:
    import scipy.stats as stats

    lines = []
    for name, shapes in _distributions(_CONTINUOUS):
        made = getattr(stats, name, None)
        if made is None:
            continue
        numbers = [float(s.rstrip("i")) for s in shapes]
        points = [float(f"{made.ppf(q, *numbers):.3g}") for q in (0.35, 0.7)]
        parameters = ", ".join([*_traced(shapes), "loc=0.1 * t", "scale=r"])
        points_source = f"0.1 * t + r * np.array({points})"
        for method in CONTINUOUS_METHODS:
            first = "0.2 + 0.6 * u[:2]" if method in ("ppf", "isf") else points_source
            lines.append(f"{name} | stats.{name}.{method}({first}, {parameters})")
        if name in COMMON:
            frozen = f"stats.{name}({parameters})"
            lines.append(f"{name} | {frozen}.logpdf({points_source})")
            if "cauchy" not in name:  # which have no moments
                lines.append(f"{name} | {frozen}.mean(), {frozen}.std()")
            lines.append(f"{name} | stats.{name}.entropy({parameters})")
    return "\n".join(lines)


def discrete() -> str:
    import scipy.stats as stats

    lines = []
    for name, shapes in _distributions(_DISCRETE):
        made = getattr(stats, name, None)
        if made is None or name == "poisson_binom":
            continue
        numbers = [float(s.rstrip("i")) for s in shapes]
        points = sorted({int(made.ppf(q, *numbers)) for q in (0.3, 0.8)})
        parameters = ", ".join(_traced(shapes)) if shapes else ""
        for method in DISCRETE_METHODS:
            if "* r" in parameters:
                lines.append(f"{name} | stats.{name}.{method}({points}, {parameters})")
        if "* r" not in parameters:
            lines.append(f"{name} | stats.{name}.pmf(np.asarray(k), {parameters})")
    return "\n".join(lines)


MULTIVARIATE = """
multivariate_normal | stats.multivariate_normal.logpdf(M, b, A @ A.T)
multivariate_normal | stats.multivariate_normal.pdf(b, np.zeros(3), A @ A.T)
multivariate_normal | stats.multivariate_normal(b, A @ A.T).logpdf(M)
multivariate_normal | stats.multivariate_normal(np.zeros(3), np.eye(3)).logpdf(M)
multivariate_normal | stats.multivariate_normal.entropy(b, A @ A.T)
multivariate_normal | stats.multivariate_normal.cdf(b, np.zeros(3), np.eye(3) * r)
multivariate_t | stats.multivariate_t.logpdf(M, b, A @ A.T, 3.0 * r)
dirichlet | stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), p[:3])
dirichlet | stats.dirichlet.mean(p[:3])
wishart | stats.wishart.logpdf(A @ A.T, 4.0, B @ B.T)
invwishart | stats.invwishart.logpdf(A @ A.T, 4.0, B @ B.T)
matrix_normal | stats.matrix_normal.logpdf(A, B)
matrix_t | stats.matrix_t.logpdf(A, B)
multinomial | stats.multinomial.logpmf([2, 1, 3], 6, p[:3] / np.sum(p[:3]))
dirichlet_multinomial | stats.dirichlet_multinomial.logpmf([2, 1, 3], p[:3], 6)
multivariate_hypergeom | stats.multivariate_hypergeom.logpmf(k[:2], [10, 20], np.sum(k[:2]))
normal_inverse_gamma | stats.normal_inverse_gamma.logpdf(t, r, 0.1, 1.0, 2.0, 3.0)
vonmises_fisher | stats.vonmises_fisher.logpdf(b / np.sqrt(b @ b), np.array([1.0, 0.0, 0.0]), 2.0)
random_table | stats.random_table.logpmf(np.array([[1, 2], [3, 4]]), k[:2], k[:2])
poisson_binom | stats.poisson_binom.pmf(2, u)
Normal | stats.Normal(mu=t, sigma=r).logpdf(x)
Logistic | stats.Logistic().logpdf(x)
Uniform | stats.Uniform(a=0.0, b=2 * r).pdf(u)
Binomial | stats.Binomial(n=5, p=0.4 * r).pmf(2)
Mixture | stats.Mixture([stats.Normal(mu=0.0), stats.Normal(mu=1.0)]).pdf(x)
Covariance | stats.Covariance.from_cholesky(np.eye(3) * r).whiten(b)
rv_histogram | stats.rv_histogram(np.histogram(np.arange(9.0), bins=3)).pdf(u)
abs | stats.abs(stats.Normal(mu=t)).pdf(p)
exp | stats.exp(stats.Normal(mu=t)).pdf(p)
log | stats.log(stats.Uniform(a=1.0, b=2.0 + t)).pdf(0.3)
truncate | stats.truncate(stats.Normal(mu=t), lb=0.0).pdf(p)
order_statistic | stats.order_statistic(stats.Normal(mu=t), r=2, n=4).pdf(x)
make_distribution | stats.make_distribution(stats.gamma)(a=2.0 * r).pdf(p)
"""

STATISTICS = """
stats.alexandergovern(x, y).statistic
stats.anderson(x).statistic
stats.anderson_ksamp([x, y]).statistic
stats.ansari(x, y).statistic
stats.barnard_exact(k[:4].reshape(2, 2)).statistic
stats.bartlett(x, y).statistic
stats.bayes_mvs(x)[0].statistic
stats.binned_statistic(u, x, bins=2).statistic
stats.binned_statistic_2d(u, u, x, bins=2).statistic
stats.binned_statistic_dd(u[:, None], x, bins=2).statistic
stats.binomtest(np.sum(k), 99).statistic
stats.bootstrap((x,), np.mean, n_resamples=9, rng=0).standard_error
stats.boschloo_exact(k[:4].reshape(2, 2)).statistic
stats.boxcox(p, 0.5)
~ 1e4 | stats.boxcox(p)[1]
stats.boxcox_llf(t, p)
~ 1e4 | stats.boxcox_normmax(p, method="mle")
stats.brunnermunzel(x, y).statistic
stats.bws_test(x, y).statistic
stats.chatterjeexi(x, y).statistic
stats.chi2_contingency(p[:4].reshape(2, 2) * 10).statistic
stats.chisquare(p, p[::-1]).statistic
stats.circmean(x)
stats.circstd(u)
stats.circvar(u)
stats.combine_pvalues(u).statistic
stats.cramervonmises(x, "norm").statistic
stats.cramervonmises_2samp(x, y).statistic
stats.cumfreq(x, 4).cumcount
stats.describe(x)
stats.differential_entropy(x)
stats.directional_stats(M).mean_direction
stats.dunnett(x, control=y).statistic
stats.ecdf(x).cdf.quantiles
stats.energy_distance(x, y)
stats.entropy(p)
stats.entropy(p, u)
stats.epps_singleton_2samp(x, y).statistic
~ 100 | stats.expectile(x, 0.3)
stats.f_oneway(x, y, p)
stats.false_discovery_control(u)
stats.fisher_exact(k[:4].reshape(2, 2)).statistic
stats.fligner(x, y).statistic
stats.friedmanchisquare(x, y, p).statistic
stats.gaussian_kde(x)(s)
stats.gaussian_kde(np.arange(6.0)).logpdf(x)
stats.gmean(p)
stats.goodness_of_fit(stats.norm, x, n_mc_samples=9, rng=0).statistic
stats.gstd(p)
stats.gzscore(p)
stats.hmean(p)
stats.iqr(x)
stats.jarque_bera(x)
stats.kendalltau(x, y).statistic
stats.kruskal(x, y).statistic
stats.ks_1samp(x, stats.norm.cdf).statistic
stats.ks_2samp(x, y).statistic
stats.kstat(x, 3)
stats.kstatvar(x)
stats.kstest(x, "norm").statistic
stats.kurtosis(x)
stats.kurtosistest(np.concatenate([x, y])).statistic
stats.levene(x, y).statistic
stats.linregress(x, y)
stats.lmoment(x)
stats.logrank(p, u).statistic
stats.mannwhitneyu(x, y).statistic
stats.median_abs_deviation(x)
stats.median_test(x, y).statistic
stats.mode(k).mode
stats.moment(x, 3)
stats.monte_carlo_test(x, stats.norm.rvs, np.mean, n_resamples=9).statistic
stats.mood(x, y).statistic
stats.multiscale_graphcorr(M, M[::-1], reps=9, random_state=0).statistic
stats.mvsdist(x)[0].mean()
stats.normaltest(np.concatenate([x, y])).statistic
stats.obrientransform(x, y)
stats.page_trend_test(M).statistic
stats.pearsonr(x, y).statistic
stats.percentileofscore(x, t)
stats.permutation_test((x, y), lambda q, w: np.mean(q) - np.mean(w), n_resamples=9, rng=0).statistic
stats.pmean(p, 2)
stats.pointbiserialr(x > 0, y).statistic
stats.poisson_means_test(3, 10.0 * r, 5, 9.0).statistic
stats.power_divergence(p, p[::-1]).statistic
~ 1e5 | stats.ppcc_max(x)
stats.ppcc_plot(p, 0.5, 1.5, N=3)[1]
stats.probplot(x, fit=False)
stats.quantile(x, 0.3)
stats.quantile_test(x, q=0.1).statistic
stats.rankdata(x)
stats.ranksums(x, y).statistic
stats.relfreq(x, 4).frequency
stats.scoreatpercentile(x, 30)
stats.sem(x)
stats.shapiro(x).statistic
stats.siegelslopes(x, y)
stats.sigmaclip(x)
stats.skew(x)
stats.skewtest(np.concatenate([x, y])).statistic
stats.somersd(x, y).statistic
stats.spearmanr(x, y).statistic
stats.spearmanrho(x, y).statistic
stats.theilslopes(x, y)
stats.tiecorrect(np.asarray(k, float))
stats.tmax(x, 5)
stats.tmean(x, (-1, 1))
stats.tmin(x, -5)
stats.trim1(x, 0.2)
stats.trim_mean(x, 0.2)
stats.trimboth(x, 0.2)
stats.tsem(x)
stats.tstd(x)
stats.ttest_1samp(x, 0.1)
stats.ttest_ind(x, y)
stats.ttest_ind(x, y, equal_var=False).pvalue
stats.ttest_ind_from_stats(t, r, 5, 0.0, 1.0, 6)
stats.ttest_rel(x, y)
stats.tukey_hsd(x, y).statistic
stats.tvar(x)
stats.variation(p)
stats.wasserstein_distance(x, y)
stats.wasserstein_distance_nd(M, M[::-1] ** 2)
stats.weightedtau(x, y).statistic
stats.wilcoxon(x, y).statistic
stats.yeojohnson(x, 0.5)
stats.yeojohnson_llf(t, x)
~ 1e4 | stats.yeojohnson_normmax(x)
stats.zmap(x, y)
stats.zscore(x)
norm | stats.norm.fit(x)
norm | stats.norm.nnlf((t, r), x)
expon | stats.expon.fit(p)
gamma | stats.gamma.fit(p, floc=0)
norm | stats.norm.expect(lambda q: q**2, loc=t, scale=r)
norm | stats.norm.interval(0.9, loc=t, scale=r)
norm | stats.norm.moment(2, loc=t, scale=r)
norm | stats.norm.rvs(loc=t, scale=r, size=3, random_state=0)
"""

CONTINUOUS = continuous()
DISCRETE = discrete()
