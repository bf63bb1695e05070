"""Calls of scipy.linalg, integrate, optimize and interpolate: one line each, see scipy_runner.py.

The name that a call is an example of is the first one after the module, or stands before a bar. `~ 100` before
the bar multiplies the tolerances: of solvers that SciPy stops early.
"""

LINALG = """
linalg.bandwidth(A)
linalg.block_diag(A, b, t)
linalg.cdf2rdf(np.array([1.0 + 2j, 1.0 - 2j]) * t, np.array([[1j, -1j], [1.0, 1.0]]))
np.triu(linalg.cho_factor(A @ A.T)[0])
linalg.cho_solve(linalg.cho_factor(A @ A.T, lower=True), b)
linalg.cho_solve_banded((linalg.cholesky_banded(np.stack([0.1 * b, 2.0 + b**2])), False), b)
linalg.cholesky(A @ A.T)
linalg.cholesky(A @ A.T, lower=True)
linalg.cholesky_banded(np.stack([0.1 * b, 2.0 + b**2]))
linalg.circulant(b)
linalg.clarkson_woodruff_transform(M, 3, seed=0)
linalg.companion(p)
linalg.convolution_matrix(b, 4, mode="same")
linalg.coshm(A)
linalg.cosm(A)
linalg.cossin(linalg.expm(A - A.T), 1, 1)
linalg.det(A)
linalg.diagsvd(b, 3, 4)
linalg.eig(A + A.T)[0]
linalg.eig(A)
linalg.eig_banded(np.stack([0.1 * b, np.arange(3) + b]))
linalg.eigh(A + A.T)[0]
eigh | v = linalg.eigh(A + A.T)[1]; v**2
linalg.eigh(A + A.T, np.eye(3) + B @ B.T)
linalg.eigh(A + A.T, subset_by_index=[0, 1])
linalg.eigh_tridiagonal(np.array([1.0, 3.0, 6.0]) + t, b[:2])
linalg.eigvals(A)
linalg.eigvals_banded(np.stack([0.1 * b, np.arange(3) + b]))
linalg.eigvalsh(A + A.T)
linalg.eigvalsh_tridiagonal(np.array([1.0, 3.0, 6.0]) + t, b[:2])
linalg.expm(A)
linalg.expm(np.stack([A, B]))
linalg.expm_cond(A)
linalg.expm_frechet(A, B)
linalg.fiedler(b)
linalg.fiedler_companion(p)
linalg.fractional_matrix_power(A, 0.5)
linalg.funm(A, np.exp)
linalg.hankel(b, x)
linalg.hessenberg(A)
linalg.inv(A)
linalg.ishermitian(A + A.T)
linalg.issymmetric(A)
linalg.khatri_rao(M, N)
linalg.ldl(A + A.T)
linalg.leslie(p[:3], u[:2])
linalg.logm(A)
linalg.lstsq(M, x[:5])[0]
linalg.lstsq(M, x[:5], lapack_driver="gelsy")[0]
linalg.lu(A)
linalg.lu(A, permute_l=True)
linalg.lu_factor(A)
linalg.lu_solve(linalg.lu_factor(A), b)
linalg.lu_solve(linalg.lu_factor(A), b, trans=1)
linalg.matmul_toeplitz((b, b), N[:3])
linalg.matrix_balance(A)
linalg.norm(M)
linalg.norm(A, 2)
linalg.norm(b, 1)
v = linalg.null_space(M.T); v @ v.T
linalg.ordqz(A, B)
linalg.orth(M)
linalg.orthogonal_procrustes(A, B)
linalg.pinv(M)
linalg.pinvh(A @ A.T)
linalg.polar(A)
linalg.qr(A)
linalg.qr(M, mode="economic")
linalg.qr(A, mode="r")
linalg.qr_delete(*linalg.qr(A), 1)
linalg.qr_insert(*linalg.qr(A), b, 1)
linalg.qr_multiply(A, B)
linalg.qr_update(*linalg.qr(A), b, b)
linalg.qz(A, B)
linalg.rq(A)
linalg.rsf2csf(A, B)
linalg.schur(A)
linalg.signm(A)
linalg.sinhm(A)
linalg.sinm(A)
linalg.solve(A, b)
linalg.solve(A, B, transposed=True)
linalg.solve(A @ A.T, b, assume_a="pos")
linalg.solve_banded((1, 1), np.stack([0.1 * b, 2.0 + b**2, 0.2 * b]), b)
linalg.solve_circulant(b + np.array([9.0, 0.0, 0.0]), b)
linalg.solve_continuous_are(A, B, np.eye(3) + t, np.eye(3))
linalg.solve_continuous_lyapunov(A, B)
linalg.solve_discrete_are(A / 5, B, np.eye(3), np.eye(3) * (1 + t))
linalg.solve_discrete_lyapunov(A / 6, B)
linalg.solve_lyapunov(A, B)
linalg.solve_sylvester(A, B, np.eye(3) * t)
linalg.solve_toeplitz(b + np.array([9.0, 0.0, 0.0]), b)
linalg.solve_toeplitz((b + np.array([9.0, 0.0, 0.0]), b + np.array([9.0, 0.0, 0.0])), N[:3])
linalg.solve_triangular(A, b)
linalg.solve_triangular(A, b, lower=True, trans="T", unit_diagonal=True)
linalg.solveh_banded(np.stack([0.1 * b, 2.0 + b**2]), b)
linalg.sqrtm(A)
linalg.subspace_angles(M[:, :2], M[::-1, :2] ** 2)
linalg.svd(A)
linalg.svd(M, full_matrices=False)
linalg.svd(M, compute_uv=False)
linalg.svdvals(M)
linalg.tanhm(A)
linalg.tanm(A / 5)
linalg.toeplitz(b)
linalg.toeplitz(b, x)
"""

INTEGRATE = """
RK45 | s = integrate.RK45(lambda v, q: -t * q, 0.0, b, 1.0); s.step(); s.y
RK23 | s = integrate.RK23(lambda v, q: -t * q, 0.0, b, 1.0); s.step(); s.y
DOP853 | s = integrate.DOP853(lambda v, q: -t * q, 0.0, b, 1.0); s.step(); s.y
Radau | s = integrate.Radau(lambda v, q: -t * q, 0.0, b, 1.0); s.step(); s.y
BDF | s = integrate.BDF(lambda v, q: -t * q, 0.0, b, 1.0); s.step(); s.y
LSODA | s = integrate.LSODA(lambda v, q: -t * q, 0.0, b, 1.0); s.step(); s.y
complex_ode | o = integrate.complex_ode(lambda v, q: 1j * t * q); o.set_initial_value(b + 0j, 0.0); o.integrate(1.0)
ode | o = integrate.ode(lambda v, q: -t * q); o.set_initial_value(b, 0.0); o.integrate(1.0)
OdeSolution ~ 100 | integrate.solve_ivp(lambda v, q: -t * q, (0.0, 1.0), b, dense_output=True, rtol=1e-10, atol=1e-12).sol(0.4)
integrate.cubature(lambda q: np.sin(t * q[:, 0]), [0.0], [1.0]).estimate
integrate.cumulative_simpson(x, x=s)
integrate.cumulative_simpson(x, dx=t)
integrate.cumulative_trapezoid(x, s, initial=0)
integrate.dblquad(lambda q, w: np.sin(t * q * w), 0.0, r, 0.0, 1.0)[0]
integrate.dblquad(lambda q, w: q * w * t, 0.0, 1.0, lambda q: t * q, lambda q: 1 + q)[0]
integrate.fixed_quad(lambda q: np.exp(t * q), 0.0, r, n=5)[0]
integrate.newton_cotes(np.array([0.0, r, 2.0]))[0]
integrate.nquad(lambda q, w: np.cos(t * q + w), [[0.0, r], [0.0, 1.0]])[0]
integrate.nsum(lambda q: t**q, 0, np.inf).sum
~ 1000 | integrate.odeint(lambda q, v: -t * q, b, [0.0, 0.5, 1.0], rtol=1e-11, atol=1e-12)
~ 1000 | integrate.odeint(lambda v, q: -t * q, b, [0.0, r], tfirst=True, rtol=1e-11, atol=1e-12)
integrate.qmc_quad(lambda q: np.sin(t * q), 0.0, 1.0, n_points=8, n_estimates=2, qrng=stats.qmc.Halton(1, rng=0)).integral
integrate.quad(lambda q: np.exp(-t * q), 0.0, r)[0]
integrate.quad(lambda q: np.exp(-r * q * q), 0.0, np.inf)[0]
integrate.quad(lambda q, w: np.sin(q * w), 0.0, 1.0, args=(t,))[0]
integrate.quad_vec(lambda q: np.exp(-q * b), 0.0, t)[0]
integrate.romb(x[:5], dx=t)
integrate.simpson(x, x=s)
integrate.simpson(I, dx=t, axis=0)
~ 100 | integrate.solve_bvp(lambda v, q: np.stack([q[1], -t * q[0]]), lambda l, h: np.stack([l[0], h[0] - 1]), np.linspace(0, 1, 5), np.zeros((2, 5))).y[:, 2]
~ 100 | integrate.solve_ivp(lambda v, q: -t * q, (0.0, 1.0), b, rtol=1e-10, atol=1e-12).y[:, -1]
~ 100 | integrate.solve_ivp(lambda v, q: -t * q, (0.0, 1.0), b, "RK23", rtol=1e-8, atol=1e-8).y[:, -1]
~ 100 | integrate.solve_ivp(lambda v, q: -t * q, (0.0, 1.0), b, "DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
~ 1000 | integrate.solve_ivp(lambda v, q: -t * q, (0.0, 1.0), b, "Radau", rtol=1e-9, atol=1e-11).y[:, -1]
~ 1000 | integrate.solve_ivp(lambda v, q: -t * q, (0.0, 1.0), b, "BDF", rtol=1e-10, atol=1e-12).y[:, -1]
~ 1000 | integrate.solve_ivp(lambda v, q: -t * q, (0.0, 1.0), b, "LSODA", rtol=1e-10, atol=1e-12).y[:, -1]
~ 100 | integrate.solve_ivp(lambda v, q, c: -c * q, (0.0, r), b, t_eval=[0.3, 0.6], args=(t,), rtol=1e-10, atol=1e-12).y
~ 100 | integrate.solve_ivp(lambda v, q: np.array([q[1], -t]), (0.0, 9.0), np.array([1.0, t]), events=lambda v, q: q[0], rtol=1e-10, atol=1e-12).t_events[0]
integrate.tanhsinh(lambda q: np.exp(t * q), 0.0, 1.0).integral
integrate.tplquad(lambda q, w, v: t * q * w * v, 0.0, 1.0, 0.0, 1.0, 0.0, r)[0]
integrate.trapezoid(x, s)
integrate.trapezoid(I, dx=t, axis=0)
"""

OPTIMIZE = """
Bounds ~ 1e4 | optimize.minimize(lambda q: np.sum((q - 2 * b) ** 2), np.zeros(3), bounds=optimize.Bounds(-np.ones(3) * t, np.ones(3) * t), tol=1e-12).x
LinearConstraint ~ 1e4 | optimize.minimize(lambda q: np.sum((q - b) ** 2), np.zeros(3), method="SLSQP", constraints=optimize.LinearConstraint(np.ones((1, 3)), t, t), tol=1e-12).x
NonlinearConstraint ~ 1e4 | optimize.minimize(lambda q: np.sum((q - b) ** 2), np.ones(3), method="SLSQP", constraints=optimize.NonlinearConstraint(lambda q: q @ q, t, t), tol=1e-12).x
optimize.anderson(lambda q: q - np.cos(t * q), np.zeros(2), f_tol=1e-12)
~ 100 | optimize.approx_fprime(b, lambda q: np.sum(np.sin(t * q)), 1e-5)
~ 1e4 | optimize.basinhopping(lambda q: (q[0] - t) ** 2, [0.0], niter=2, rng=0).x
optimize.bisect(lambda q: q**3 - t, 0.0, 3.0, xtol=1e-13)
optimize.bracket(lambda q: (q - 5 * t) ** 2)
~ 1e4 | optimize.brent(lambda q: (q - t) ** 2 + t * q)
optimize.brenth(lambda q: q**3 - t, 0.0, 3.0)
optimize.brentq(lambda q: q**3 - t, 0.0, 3.0)
optimize.brentq(lambda q, c: q**3 - c, 0.0, 3.0, args=(t,))
optimize.broyden1(lambda q: q - np.cos(t * q), np.zeros(2), f_tol=1e-12)
optimize.broyden2(lambda q: q - np.cos(t * q), np.zeros(2), f_tol=1e-12)
~ 1e5 | optimize.brute(lambda q: (q[0] - t) ** 2, ((0.0, 1.0),), Ns=4, finish=optimize.fmin_bfgs)
~ 1e4 | optimize.curve_fit(lambda q, m, c: m * np.exp(-q) + c, s, x, ftol=1e-14, xtol=1e-14)[0]
optimize.diagbroyden(lambda q: 0.5 * (r - q**3), np.ones(1), f_tol=1e-11)
~ 100 | optimize.differential_evolution(lambda q: (q[0] - t) ** 2, [(0.0, 2.0)], rng=0).x
~ 1e5 | optimize.direct(lambda q: (q[0] - t) ** 2, [(0.0, 2.0)]).x
~ 100 | optimize.dual_annealing(lambda q: (q[0] - t) ** 2, [(0.0, 2.0)], maxiter=5, rng=0).x
~ 1e4 | optimize.excitingmixing(lambda q: 0.5 * (r - q**3), np.ones(1), f_tol=1e-9, maxiter=900)
optimize.fixed_point(lambda q: np.cos(t * q), 0.5, xtol=1e-12)
~ 1e5 | optimize.fmin(lambda q: np.sum((q - b[:2]) ** 2), np.zeros(2), xtol=1e-10, ftol=1e-14, disp=False)
~ 1e4 | optimize.fmin_bfgs(lambda q: np.sum((q - b) ** 2), np.zeros(3), disp=False)
~ 1e4 | optimize.fmin_cg(lambda q: np.sum((q - b) ** 2), np.zeros(3), disp=False)
~ 1e5 | optimize.fmin_cobyla(lambda q: np.sum((q - b) ** 2), np.zeros(3), [], rhoend=1e-9, disp=False)
~ 1e4 | optimize.fmin_l_bfgs_b(lambda q: np.sum((q - b) ** 2), np.zeros(3), approx_grad=True)[0]
~ 1e4 | optimize.fmin_ncg(lambda q: np.sum((q - b) ** 2), np.zeros(3), lambda q: 2 * (q - b), disp=False)
~ 1e5 | optimize.fmin_powell(lambda q: np.sum((q - b[:2]) ** 2), np.zeros(2), xtol=1e-10, ftol=1e-14, disp=False)
~ 1e4 | optimize.fmin_slsqp(lambda q: np.sum((q - b) ** 2), np.zeros(3), iprint=0)
~ 1e4 | optimize.fmin_tnc(lambda q: np.sum((q - b) ** 2), np.zeros(3), approx_grad=True, disp=0)[0]
~ 1e5 | optimize.fminbound(lambda q: (q - t) ** 2, 0.0, 2.0)
optimize.fsolve(lambda q: np.array([q[0] ** 2 - t, q[1] - q[0] * r]), np.ones(2), xtol=1e-13)
~ 1e5 | optimize.golden(lambda q: (q - t) ** 2, tol=1e-12)
optimize.isotonic_regression(x).x
~ 100 | optimize.least_squares(lambda q: np.array([q[0] - t, q[1] ** 2 - r, q[0] * q[1] - 1]), np.ones(2), xtol=1e-14, ftol=1e-14, gtol=1e-14).x
~ 100 | optimize.least_squares(lambda q, c: q - c, np.zeros(3), args=(b,), loss="soft_l1").x
~ 100 | optimize.leastsq(lambda q: np.array([q[0] - t, q[1] - r, q[0] * q[1] - 1]), np.ones(2), xtol=1e-14, ftol=1e-14)[0]
optimize.line_search(lambda q: q @ q * r, lambda q: 2 * q * r, b, -b)[0]
optimize.linear_sum_assignment(A)
~ 1e4 | optimize.linearmixing(lambda q: 0.5 * (r - q**3), np.ones(1), f_tol=1e-8, alpha=0.9)
~ 100 | optimize.linprog(p[:3], A_ub=-np.ones((1, 3)) * r, b_ub=np.array([-1.0]) * t, bounds=(0, None)).fun
~ 100 | optimize.lsq_linear(M, x[:5]).x
optimize.milp(p[:3], integrality=np.ones(3), bounds=optimize.Bounds(0, 3)).x
~ 1e4 | optimize.minimize(lambda q: np.sum((q - b) ** 2) + t * np.sum(q**4), np.zeros(3), tol=1e-12).x
~ 1e5 | optimize.minimize(lambda q: np.sum((q - b[:2]) ** 2), np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
~ 1e4 | optimize.minimize(lambda q, c: np.sum((q - c) ** 2), np.zeros(3), args=(b,), method="L-BFGS-B", tol=1e-12).x
~ 1e4 | optimize.minimize(lambda q: np.sum((q - b) ** 2), np.zeros(3), method="SLSQP", constraints={"type": "eq", "fun": lambda q: np.sum(q) - t}, tol=1e-12).x
~ 1e4 | optimize.minimize(lambda q: np.sum((q - b) ** 2), np.zeros(3), tol=1e-12).fun
~ 100 | optimize.minimize_scalar(lambda q: (q - t) ** 2 + q**4).x
~ 100 | optimize.minimize_scalar(lambda q: (q - t) ** 2 + q**4, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-10}).x
optimize.newton(lambda q: q**3 - t, 1.0)
optimize.newton(lambda q: q**3 - t, 1.0, fprime=lambda q: 3 * q**2)
optimize.newton_krylov(lambda q: q - np.cos(t * q), np.zeros(2), f_tol=1e-12)
~ 100 | optimize.nnls(np.abs(M), np.abs(M) @ p[:3])[0]
optimize.quadratic_assignment(A, B)["col_ind"]
optimize.ridder(lambda q: q**3 - t, 0.0, 3.0)
optimize.root(lambda q: np.array([q[0] ** 2 - t, q[1] - q[0] * r]), np.ones(2), tol=1e-13).x
optimize.root(lambda q: np.array([q[0] ** 2 - t, q[1] - q[0] * r]), np.ones(2), method="lm", tol=1e-14).x
optimize.root(lambda q: q - np.cos(t * q), np.zeros(2), method="krylov", tol=1e-12).x
optimize.root_scalar(lambda q: q**3 - t, bracket=(0.0, 3.0)).root
optimize.root_scalar(lambda q: q**3 - t, x0=1.0, x1=2.0, method="secant").root
optimize.rosen(b)
optimize.rosen_der(b)
optimize.rosen_hess(b)
optimize.rosen_hess_prod(b, b)
~ 1e4 | optimize.shgo(lambda q: (q[0] - t) ** 2, [(0.0, 2.0)]).x
optimize.toms748(lambda q: q**3 - t, 0.0, 3.0)
"""

INTERPOLATE = """
interpolate.AAA(s, x)(2.0 + t)
interpolate.Akima1DInterpolator(s, x)(s[:-1] + 0.1)
interpolate.BPoly(np.stack([x[:5], y[:5]]), s)(s[:-1] + 0.1)
interpolate.BSpline(np.arange(10.0), x, 3)(3.0 + u)
interpolate.BSpline(np.arange(10.0), x, 3)(3.0 + u, nu=1)
interpolate.BSpline(np.arange(10.0), x, 3).integrate(3.1, 5 + t)
interpolate.BarycentricInterpolator(s, x)(s[:-1] + 0.1)
interpolate.CloughTocher2DInterpolator(M[:, :2], x[:5])(np.mean(M[:, :2], 0))
interpolate.CubicHermiteSpline(s, x, y)(s[:-1] + 0.1)
interpolate.CubicSpline(s, x)(s[:-1] + 0.1)
interpolate.CubicSpline(s, x, bc_type="natural")(s[:-1] + 0.1, 1)
interpolate.CubicSpline(s, I)(s[:-1] + t * 0.1)
CubicSpline | interpolate.CubicSpline(np.arange(6.0), np.arange(6.0) ** 2)(u)
interpolate.FloaterHormannInterpolator(s, x)(s[:-1] + 0.1)
interpolate.InterpolatedUnivariateSpline(s, x)(s[:-1] + 0.1)
interpolate.KroghInterpolator(s, x)(s[:-1] + 0.1)
interpolate.LSQBivariateSpline(np.repeat(s, 6), np.tile(s, 6), np.ravel(np.outer(x, y)), [], []).ev(2.0, 2.0)
interpolate.LSQUnivariateSpline(s, x, [])(s[:-1] + 0.1)
interpolate.LinearNDInterpolator(M[:, :2], x[:5])(np.mean(M[:, :2], 0))
interpolate.NdBSpline((np.arange(8.0), np.arange(8.0)), np.outer(x, y)[:4, :4], 3)(np.array([3.5, 3.6]) + 0.1 * t)
interpolate.NdPPoly(np.reshape(x[:4], (2, 2, 1, 1)), (np.array([0.0, 1.0]), np.array([0.0, 1.0])))(np.reshape(u, (3, 2)))
interpolate.NearestNDInterpolator(M[:, :2], x[:5])(b[:2])
interpolate.PPoly(np.stack([x[:5], y[:5]]), s)(s[:-1] + 0.1)
interpolate.PchipInterpolator(s, x)(s[:-1] + 0.1)
interpolate.PchipInterpolator(s, x).derivative()(s[:-1] + 0.1)
interpolate.RBFInterpolator(M[:, :2], x[:5])(N[:, :2])
interpolate.RBFInterpolator(M[:, :2], x[:5], kernel="gaussian", epsilon=1.0, smoothing=0.1)(N[:, :2])
interpolate.Rbf(x, y, p)(t, t)
interpolate.RectBivariateSpline(s, s[:5], I)(2.0 + 0.1 * t, 2.0)
interpolate.RectSphereBivariateSpline(0.3 * np.arange(1, 7), np.arange(1.0, 6), I)(1.0, 2.0 + t)
interpolate.RegularGridInterpolator((s, s[:5]), I)(np.stack([s[:4], s[:4]], 1) + 0.01)
interpolate.RegularGridInterpolator((np.arange(6), np.arange(5)), I, method="nearest")(np.stack([u, u], 1) + 1)
interpolate.SmoothBivariateSpline(np.repeat(s, 6), np.tile(s, 6), np.ravel(np.outer(x, y)), kx=1, ky=1).ev(2.0, 2.0)
interpolate.UnivariateSpline(s, x, s=0)(s[:-1] + 0.1)
UnivariateSpline | interpolate.UnivariateSpline(np.arange(6.0), np.arange(6.0) ** 2)(u)
interpolate.approximate_taylor_polynomial(lambda q: np.sin(t * q), 0.0, 3, 1.0).coeffs
interpolate.barycentric_interpolate(s, x, s[:-1] + 0.1)
interpolate.bisplev(2.0 + t, 2.0, interpolate.bisplrep(np.repeat(np.arange(6.0), 6), np.tile(np.arange(6.0), 6), np.arange(36.0) % 7))
interpolate.bisplrep(np.repeat(s, 6), np.tile(s, 6), np.ravel(np.outer(x, y)))[2]
interpolate.generate_knots(s, x)
interpolate.griddata(M[:, :2], x[:5], np.mean(M[:, :2], 0)[None], method="linear")
interpolate.griddata(s, x, s[:-1] + 0.1, method="cubic")
interpolate.insert(2.5 + 0.1 * t, interpolate.splrep(np.arange(6.0), x))[1]
interpolate.interp1d(s, x)(s[:-1] + 0.1)
interpolate.interp1d(s, x, kind="cubic")(s[:-1] + 0.1)
interpolate.interp1d(s, I, axis=0, fill_value="extrapolate")(s - 0.1)
interpolate.interpn((s, s[:5]), I, np.stack([s[:4], s[:4]], 1) + 0.01)
interpolate.krogh_interpolate(s, x, s[:-1] + 0.1)
~ 100 | interpolate.lagrange(s[:4], x[:4]).coef
interpolate.make_interp_spline(s, x)(s[:-1] + 0.1)
interpolate.make_interp_spline(s, x, k=5)(s[:-1] + 0.1, 1)
interpolate.make_lsq_spline(s, x, np.r_[[s[0]] * 4, [s[-1]] * 4])(s[:-1] + 0.1)
interpolate.make_smoothing_spline(s, x, lam=0.1)(s[:-1] + 0.1)
interpolate.make_splprep([x, y], s=0)[0](t)
interpolate.make_splrep(s, x, s=0)(s[:-1] + 0.1)
interpolate.pade(p, 2)[0].coeffs
interpolate.pchip_interpolate(s, x, s[:-1] + 0.1)
interpolate.spalde(t + 2, interpolate.splrep(np.arange(6.0), x))
interpolate.splantider(interpolate.splrep(s, x))[1]
interpolate.splder(interpolate.splrep(s, x))[1]
interpolate.splev(s[:-1] + 0.1, interpolate.splrep(s, x))
interpolate.splint(1.1 + t, 3.0, interpolate.splrep(np.arange(6.0), x))
interpolate.splprep([x, y], s=0)[0][1]
interpolate.splrep(s, x)[1]
interpolate.sproot(interpolate.splrep(np.arange(6.0), np.sin(np.arange(6.0) + t)))
"""
