"""Calls of scipy.special: see scipy_calls.py. Those of ufuncs are written from their number of arguments."""

from __future__ import annotations

import numpy as np
import scipy.special

# Arguments at which a ufunc is defined, where `0.1 + u` will not do. Whole numbers stay constants.
_ARGUMENTS = {
    "agm": "p, 0.1 + u",
    "bdtr": "2, 5, u",
    "bdtrc": "2, 5, u",
    "bdtri": "2, 5, u",
    "bdtrik": "u, 5.0, 0.4 * r",
    "bdtrin": "2.0 * r, u, 0.4",
    "besselpoly": "u, 1.0, 0.5",
    "binom": "5.0 + u, 2.0 + u",
    "boxcox": "p, u",
    "boxcox1p": "p, u",
    "btdtria": "u, 2.0 * r, 0.5",
    "btdtrib": "2.0 * r, u, 0.5",
    "chdtr": "3.0 * r, p",
    "chdtrc": "3.0 * r, p",
    "chdtri": "3.0 * r, u",
    "chdtriv": "u, 3.0 * r",
    "chndtr": "p, 3.0 * r, 0.5",
    "chndtridf": "3.0 * r, u, 0.5",
    "chndtrinc": "3.0 * r, 2.0, 0.2 * u",
    "chndtrix": "u, 3.0 * r, 0.5",
    "ellip_harm": "",
    "ellipeinc": "u, 0.5 * u",
    "ellipkinc": "u, 0.5 * u",
    "ellipj": "u, 0.5 * u",
    "elliprc": "p, p[::-1]",
    "elliprd": "p, p[::-1], 0.1 + u",
    "elliprf": "p, p[::-1], 0.1 + u",
    "elliprg": "p, p[::-1], 0.1 + u",
    "elliprj": "p, p[::-1], 0.1 + u, r",
    "erfinv": "u",
    "erfcinv": "u",
    "eval_chebyc": "3, x",
    "eval_chebys": "3, x",
    "eval_chebyt": "3, x",
    "eval_chebyu": "3, x",
    "eval_gegenbauer": "3, 0.5 + u, x",
    "eval_genlaguerre": "3, 0.5 + u, x",
    "eval_hermite": "3, x",
    "eval_hermitenorm": "3, x",
    "eval_jacobi": "3, 0.5 + u, 0.6, x",
    "eval_laguerre": "3, x",
    "eval_legendre": "3, x",
    "eval_sh_chebyt": "3, u",
    "eval_sh_chebyu": "3, u",
    "eval_sh_jacobi": "3, 2.0 + u, 1.5, u",
    "eval_sh_legendre": "3, u",
    "expn": "3, p",
    "fdtr": "3.0 * r, 4.0, p",
    "fdtrc": "3.0 * r, 4.0, p",
    "fdtri": "3.0 * r, 4.0, u",
    "fdtridfd": "3.0 * r, 0.6, 1.1",
    "gammaincinv": "1.0 + u, u[::-1]",
    "gammainccinv": "1.0 + u, u[::-1]",
    "gdtr": "r, 2.0, p",
    "gdtrc": "r, 2.0, p",
    "gdtria": "u, 2.0 * r, 1.0",
    "gdtrib": "r, u, 1.0",
    "gdtrix": "r, 2.0, u",
    "hankel1": "1.0, p",
    "hankel1e": "1.0, p",
    "hankel2": "1.0, p",
    "hankel2e": "1.0, p",
    "hyp1f1": "1.5 * r, 2.5, x",
    "hyp2f1": "1.5 * r, 0.7, 2.5, 0.5 * u",
    "hyperu": "1.5, 2.5, p",
    "inv_boxcox": "u, 0.5 * r",
    "inv_boxcox1p": "u, 0.5 * r",
    "iv": "1.5, p",
    "ive": "1.5, p",
    "jn": "2, p",
    "jv": "1.5, p",
    "jve": "1.5, p",
    "kn": "2, p",
    "kv": "1.5, p",
    "kve": "1.5, p",
    "log_wright_bessel": "0.5, 1.0, p",
    "lpmv": "1, 2, u",
    "mathieu_a": "2, p",
    "mathieu_b": "2, p",
    "mathieu_cem": "2, 0.5, p",
    "mathieu_sem": "2, 0.5, p",
    "mathieu_modcem1": "2, 0.5, p",
    "mathieu_modcem2": "2, 0.5, p",
    "mathieu_modsem1": "2, 0.5, p",
    "mathieu_modsem2": "2, 0.5, p",
    "nbdtr": "2, 5, u",
    "nbdtrc": "2, 5, u",
    "nbdtri": "2, 5, u",
    "nbdtrik": "u, 5.0, 0.4 * r",
    "nbdtrin": "2.0 * r, u, 0.4",
    "ncfdtr": "3.0, 4.0, 0.5 * r, p",
    "ncfdtri": "3.0, 4.0, 0.5 * r, u",
    "ncfdtridfd": "3.0 * r, 0.6, 0.5, 1.1",
    "ncfdtridfn": "0.6, 4.0 * r, 0.5, 1.1",
    "ncfdtrinc": "3.0 * r, 4.0, 0.3, 1.1",
    "nctdtr": "4.0 * r, 0.5, x",
    "nctdtridf": "0.5 * r, 0.6, 1.1",
    "nctdtrinc": "4.0 * r, 0.6, 1.1",
    "nctdtrit": "4.0 * r, 0.5, u",
    "nrdtrimn": "u, 1.0, t",
    "nrdtrisd": "t, 0.7, 2.0 * r",
    "ndtri_exp": "-p",
    "obl_ang1": "1, 2, 0.5, u",
    "obl_ang1_cv": "1, 2, 0.5, 5.0, u",
    "obl_cv": "1, 2, u",
    "obl_rad1": "1, 2, 0.5, p",
    "obl_rad1_cv": "1, 2, 0.5, 5.0, p",
    "obl_rad2": "1, 2, 0.5, p",
    "obl_rad2_cv": "1, 2, 0.5, 5.0, p",
    "pro_ang1": "1, 2, 0.5, u",
    "pro_ang1_cv": "1, 2, 0.5, 6.0, u",
    "pro_cv": "1, 2, u",
    "pro_rad1": "1, 2, 0.5, 1 + p",
    "pro_rad1_cv": "1, 2, 0.5, 6.0, 1 + p",
    "pro_rad2": "1, 2, 0.5, 1 + p",
    "pro_rad2_cv": "1, 2, 0.5, 6.0, 1 + p",
    "owens_t": "x, u",
    "pbdv": "1.0, x",
    "pbvv": "1.0, x",
    "pbwa": "1.0, x",
    "pdtr": "2, p",
    "pdtrc": "2, p",
    "pdtri": "2, u",
    "pdtrik": "u, 2.0 * r",
    "smirnov": "5, u",
    "smirnovi": "5, u",
    "spherical_in": "",
    "stdtr": "3.0 * r, x",
    "stdtridf": "u, 0.8 * r",
    "stdtrit": "3.0 * r, u",
    "struve": "1.0, p",
    "modstruve": "1.0, p",
    "tklmbda": "0.5 * u, 0.5 * r",
    "voigt_profile": "x, r, 0.5",
    "wright_bessel": "0.5, 1.0, p",
    "yn": "2, p",
    "yv": "1.5, p",
    "yve": "1.5, p",
    "zetac": "1.5 + p",
}


def ufuncs() -> str:
    lines = []
    for name in dict.fromkeys(scipy.special.__all__):
        function = getattr(scipy.special, name)
        if isinstance(function, np.ufunc):
            default = ", ".join(["0.1 + u", "0.2 + u[::-1]", "0.5", "0.4"][: function.nin])
            lines.append(f"special.{name}({_ARGUMENTS.get(name, default)})")
    return "\n".join(lines)


UFUNCS = ufuncs()

FUNCTIONS = """
special.assoc_laguerre(x, 3, 1.0)
special.assoc_legendre_p(2, 1, u)
special.assoc_legendre_p_all(2, 1, u)
special.comb(5.0 + u, 2)
special.diric(p, 4)
special.ellip_harm(5.0, 8.0, 1, 1, 2.0 * r)
special.ellip_harm_2(5.0, 8.0, 1, 1, 9.0 * r)
special.ellip_normal(5.0 * r, 8.0, 1, 1)
special.factorial(k)
special.factorial2(k)
special.factorialk(k, 3)
special.h1vp(1, p)
special.h2vp(1, p)
special.ivp(1, p)
special.jvp(1, p)
special.kvp(1, p)
special.lambertw(p)
special.legendre_p(3, u)
special.legendre_p_all(3, u)
special.lmbda(1, r)
special.log_softmax(x)
special.logsumexp(x)
special.logsumexp(I, axis=1, b=p[:5])
special.lqmn(1, 2, 0.5 * t)
special.lqn(2, 0.5 * t)
special.mathieu_even_coef(2, r)
special.mathieu_odd_coef(2, r)
special.multigammaln(3.0 + t, 2)
special.obl_cv_seq(1, 2, r)
special.pbdn_seq(2, r)
special.pbdv_seq(1.0, r)
special.pbvv_seq(1.0, r)
special.perm(5.0 + u, 2)
special.polygamma(1, p)
special.pro_cv_seq(1, 2, r)
special.riccati_jn(2, r)
special.riccati_yn(2, r)
special.sinc(x)
special.softmax(x)
special.softmax(I, axis=0)
special.softplus(x)
special.sph_harm_y(2, 1, u, x)
special.sph_harm_y_all(2, 1, t, r)
special.sph_legendre_p(2, 1, u)
special.sph_legendre_p_all(2, 1, u)
special.spherical_in(2, p)
special.spherical_jn(2, p)
special.spherical_jn(2, p, derivative=True)
special.spherical_kn(2, p)
special.spherical_yn(2, p)
special.stirling2(k, 2)
special.yvp(1, p)
special.zeta(1.5 + p)
special.zeta(1.5 + p, 0.5 + u)
special.jacobi(3, 0.5, 0.6)(x)
special.legendre(3)(x)
special.chebyt(3)(x)
special.chebyu(3)(x)
special.chebyc(3)(x)
special.chebys(3)(x)
special.laguerre(3)(x)
special.genlaguerre(3, 0.5)(x)
special.hermite(3)(x)
special.hermitenorm(3)(x)
special.gegenbauer(3, 0.5)(x)
special.sh_legendre(3)(x)
special.sh_chebyt(3)(x)
special.sh_chebyu(3)(x)
special.sh_jacobi(3, 2.0, 1.5)(x)
special.roots_jacobi(3, 0.5 * r, 0.6)
special.roots_genlaguerre(3, 0.5 * r)
special.roots_gegenbauer(3, 0.5 * r)
special.roots_sh_jacobi(3, 2.0 * r, 1.5)
"""
