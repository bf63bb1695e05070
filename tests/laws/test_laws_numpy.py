"""The laws of test_laws.py for the rest of NumPy's functions, which cases_numpy.py lists."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import test_laws
from tests.laws.test_laws import for_each
from tests.support.cases_numpy import NUMPY_CASES
from tests.support.marks import of_constants

pytestmark = of_constants  # the density of a histogram, for example

BATCHABLE = [case for case in NUMPY_CASES if not case.needs_values]
DIFFERENTIABLE = [case for case in NUMPY_CASES if case.differentiable]
BOTH = [case for case in BATCHABLE if case.differentiable]


def law(test, cases, every=1):
    """The same law for other cases. Their shapes are fixed, so one example of each is enough."""
    return for_each(cases, every)(
        settings(max_examples=1)(given(data=st.data())(test.hypothesis.inner_test))
    )


test_values = law(test_laws.test_values_are_those_of_numpy, NUMPY_CASES)
test_jvp = law(test_laws.test_jvp_and_linearize_are_the_numerical_derivative, DIFFERENTIABLE)
test_vjp = law(
    test_laws.test_vjp_is_the_numerical_gradient_and_the_transpose_of_jvp, DIFFERENTIABLE
)
test_linear = law(
    test_laws.test_a_linear_function_is_its_own_derivative_and_has_a_transpose,
    [case for case in NUMPY_CASES if case.linear],
)
test_complex = law(
    test_laws.test_complex_arguments_follow_the_derivative_over_the_reals,
    [case for case in DIFFERENTIABLE if case.complexes],
)
test_second = law(test_laws.test_second_derivatives_agree_in_all_four_orders, DIFFERENTIABLE)
test_vmap = law(test_laws.test_vmap_over_every_axis_to_every_axis_is_a_loop, BATCHABLE)
test_vmap_of_grad = law(
    test_laws.test_vmap_of_grad_gives_the_gradient_of_every_lane, DIFFERENTIABLE
)
test_grad_of_vmap = law(
    test_laws.test_grad_of_vmap_gathers_the_gradients_of_the_lanes, DIFFERENTIABLE
)
test_graph = law(test_laws.test_a_graph_computes_the_function_it_was_made_from, BATCHABLE)
test_graph_of_gradient = law(
    test_laws.test_graphs_are_transformed_like_the_function_they_were_made_from, BOTH, every=4
)
test_dtypes = law(
    test_laws.test_values_have_the_dtype_of_numpy_and_gradients_that_of_the_input, DIFFERENTIABLE
)
