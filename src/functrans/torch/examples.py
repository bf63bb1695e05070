"""Docstrings of generated functions.

Most functions have their docstring where they are defined. Functions that a loop generates from primitives,
or from other functions, get theirs here: a sentence, unless they already have one, and an example.
"""

from __future__ import annotations

import inspect
from typing import Any

_SENTENCES = """
zeros_like: A tensor of zeros with the shape and dtype of another.
ones_like: A tensor of ones with the shape and dtype of another.
empty: An uninitialized tensor of the given shape.
empty_like: An uninitialized tensor with the shape and dtype of another.
rand: Uniform random numbers between 0 and 1.
rand_like: Uniform random numbers with the shape and dtype of a tensor.
randn: Standard normal random numbers.
randn_like: Standard normal random numbers with the shape and dtype of a tensor.
floor: Round down to integers.
ceil: Round up to integers.
trunc: Round toward zero to integers.
sign: The sign of each entry: -1, 0 or 1.
sgn: The sign of each entry: -1, 0 or 1; for complex numbers x / |x|.
isnan: Whether entries are nan.
isinf: Whether entries are infinite.
isfinite: Whether entries are finite: neither infinite nor nan.
signbit: Whether entries are negative, including -0.
logical_not: Whether entries are zero.
any: Whether any entry is nonzero.
all: Whether all entries are nonzero.
argmax: The index of the largest entry.
argmin: The index of the smallest entry.
max: The largest entry; with `dim`, also its index; with another tensor, the larger entries.
min: The smallest entry; with `dim`, also its index; with another tensor, the smaller entries.
amax: The maxima along some dimensions; ties share the gradient.
amin: The minima along some dimensions; ties share the gradient.
var: The variance along some dimensions, or of all entries.
std: The standard deviation along some dimensions, or of all entries.
hstack: Stack tensors horizontally, column by column.
vstack: Stack tensors vertically, row by row.
row_stack: Stack tensors vertically, row by row.
dstack: Stack tensors along the third dimension.
column_stack: Stack tensors horizontally, with vectors as columns.
Tensor.bernoulli_: Fill the tensor with ones, with a given probability, and zeros.
Tensor.exponential_: Fill the tensor with samples from the exponential distribution.
Tensor.normal_: Fill the tensor with samples from a normal distribution.
Tensor.random_: Fill the tensor with random integers.
Tensor.uniform_: Fill the tensor with uniform random numbers between two bounds.
Tensor.new_empty: An uninitialized tensor of the given shape, with the dtype of this one.
Tensor.new_ones: A tensor of ones, with the dtype of this one.
Tensor.new_zeros: A tensor of zeros, with the dtype of this one.
"""

# name | call | result
_EXAMPLES = """
zeros | torch.zeros(2) | tensor([0., 0.])
zeros_like | torch.zeros_like(torch.tensor([1.0, 2.0])) | tensor([0., 0.])
ones | torch.ones(2) | tensor([1., 1.])
ones_like | torch.ones_like(torch.tensor([1, 2])) | tensor([1, 1])
empty | torch.empty(2, 3).shape | torch.Size([2, 3])
empty_like | torch.empty_like(torch.tensor([1, 2])).dtype | torch.int64
rand | torch.rand(2, 3).shape | torch.Size([2, 3])
rand_like | torch.rand_like(torch.zeros(2)).shape | torch.Size([2])
randn | torch.randn(2, 3).shape | torch.Size([2, 3])
randn_like | torch.randn_like(torch.zeros(2)).shape | torch.Size([2])
sin | torch.sin(torch.tensor([0.0, 1.0])) | tensor([0.0000, 0.8415])
cos | torch.cos(torch.tensor([0.0, 1.0])) | tensor([1.0000, 0.5403])
tan | torch.tan(torch.tensor([0.0, 1.0])) | tensor([0.0000, 1.5574])
asin | torch.asin(torch.tensor([0.0, 1.0])) | tensor([0.0000, 1.5708])
acos | torch.acos(torch.tensor([0.0, 1.0])) | tensor([1.5708, 0.0000])
atan | torch.atan(torch.tensor([0.0, 1.0])) | tensor([0.0000, 0.7854])
sinh | torch.sinh(torch.tensor([0.0, 1.0])) | tensor([0.0000, 1.1752])
cosh | torch.cosh(torch.tensor([0.0, 1.0])) | tensor([1.0000, 1.5431])
tanh | torch.tanh(torch.tensor([0.0, 1.0])) | tensor([0.0000, 0.7616])
asinh | torch.asinh(torch.tensor([0.0, 1.0])) | tensor([0.0000, 0.8814])
acosh | torch.acosh(torch.tensor([1.0, 2.0])) | tensor([0.0000, 1.3170])
atanh | torch.atanh(torch.tensor([0.0, 0.5])) | tensor([0.0000, 0.5493])
exp | torch.exp(torch.tensor([0.0, 1.0])) | tensor([1.0000, 2.7183])
exp2 | torch.exp2(torch.tensor([1.0, 3.0])) | tensor([2., 8.])
expm1 | torch.expm1(torch.tensor([0.0, 1.0])) | tensor([0.0000, 1.7183])
log | torch.log(torch.tensor([1.0, 2.0])) | tensor([0.0000, 0.6931])
log2 | torch.log2(torch.tensor([1.0, 8.0])) | tensor([0., 3.])
log10 | torch.log10(torch.tensor([1.0, 10.0])) | tensor([0., 1.])
log1p | torch.log1p(torch.tensor([0.0, 1.0])) | tensor([0.0000, 0.6931])
sqrt | torch.sqrt(torch.tensor([4.0, 9.0])) | tensor([2., 3.])
reciprocal | torch.reciprocal(torch.tensor([2.0, 4.0])) | tensor([0.5000, 0.2500])
deg2rad | torch.deg2rad(torch.tensor([180.0])) | tensor([3.1416])
rad2deg | torch.rad2deg(torch.tensor([1.0])) | tensor([57.2958])
relu | torch.relu(torch.tensor([-1.0, 2.0])) | tensor([0., 2.])
neg | torch.neg(torch.tensor([-1.0, 2.0])) | tensor([ 1., -2.])
abs | torch.abs(torch.tensor([-1.0, 2.0])) | tensor([1., 2.])
bitwise_not | torch.bitwise_not(torch.tensor([0, 1])) | tensor([-1, -2])
remainder | torch.remainder(torch.tensor([-3.0, 5.0]), 2) | tensor([1., 1.])
floor_divide | torch.floor_divide(torch.tensor([-3.0, 5.0]), 2) | tensor([-2.,  2.])
bitwise_and | torch.bitwise_and(torch.tensor([3, 5]), 6) | tensor([2, 4])
bitwise_or | torch.bitwise_or(torch.tensor([3, 5]), 6) | tensor([7, 7])
bitwise_xor | torch.bitwise_xor(torch.tensor([3, 5]), 6) | tensor([5, 3])
gt | torch.gt(torch.tensor([1.0, 2.0]), 1.0) | tensor([False,  True])
ge | torch.ge(torch.tensor([1.0, 2.0]), 2.0) | tensor([False,  True])
lt | torch.lt(torch.tensor([1.0, 2.0]), 2.0) | tensor([ True, False])
le | torch.le(torch.tensor([1.0, 2.0]), 1.0) | tensor([ True, False])
eq | torch.eq(torch.tensor([1.0, 2.0]), 1.0) | tensor([ True, False])
ne | torch.ne(torch.tensor([1.0, 2.0]), 1.0) | tensor([False,  True])
maximum | torch.maximum(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 3.0])) | tensor([2., 4.])
minimum | torch.minimum(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 3.0])) | tensor([1., 3.])
fmax | torch.fmax(torch.tensor([1.0, torch.nan]), torch.tensor([2.0, 3.0])) | tensor([2., 3.])
fmin | torch.fmin(torch.tensor([1.0, torch.nan]), torch.tensor([2.0, 3.0])) | tensor([1., 3.])
fmod | torch.fmod(torch.tensor([-3.0, 5.0]), 2) | tensor([-1.,  1.])
atan2 | torch.atan2(torch.tensor([1.0]), torch.tensor([1.0])) | tensor([0.7854])
hypot | torch.hypot(torch.tensor([3.0]), torch.tensor([4.0])) | tensor([5.])
copysign | torch.copysign(torch.tensor([1.0, 2.0]), -1.0) | tensor([-1., -2.])
logaddexp | torch.logaddexp(torch.tensor([0.0]), torch.tensor([0.0])) | tensor([0.6931])
logaddexp2 | torch.logaddexp2(torch.tensor([0.0]), torch.tensor([0.0])) | tensor([1.])
logical_and | torch.logical_and(torch.tensor([True]), torch.tensor([False])) | tensor([False])
logical_or | torch.logical_or(torch.tensor([True]), torch.tensor([False])) | tensor([True])
logical_xor | torch.logical_xor(torch.tensor([True]), torch.tensor([True])) | tensor([False])
gcd | torch.gcd(torch.tensor([12]), torch.tensor([18])) | tensor([6])
lcm | torch.lcm(torch.tensor([4]), torch.tensor([6])) | tensor([12])
heaviside | torch.heaviside(torch.tensor([-1.0, 0.0]), torch.tensor([0.5])) | tensor([0.0000, 0.5000])
floor | torch.floor(torch.tensor([-1.5, 1.5])) | tensor([-2.,  1.])
ceil | torch.ceil(torch.tensor([-1.5, 1.5])) | tensor([-1.,  2.])
trunc | torch.trunc(torch.tensor([-1.5, 1.5])) | tensor([-1.,  1.])
sign | torch.sign(torch.tensor([-1.5, 1.5])) | tensor([-1.,  1.])
sgn | torch.sgn(torch.tensor([-1.5, 1.5])) | tensor([-1.,  1.])
isnan | torch.isnan(torch.tensor([1.0, torch.nan])) | tensor([False,  True])
isinf | torch.isinf(torch.tensor([1.0, torch.inf])) | tensor([False,  True])
isfinite | torch.isfinite(torch.tensor([1.0, torch.inf])) | tensor([ True, False])
signbit | torch.signbit(torch.tensor([-1.0, 1.0])) | tensor([ True, False])
logical_not | torch.logical_not(torch.tensor([True, False])) | tensor([False,  True])
any | torch.any(torch.tensor([True, False])) | tensor(True)
all | torch.all(torch.tensor([True, False])) | tensor(False)
argmax | torch.argmax(torch.tensor([1.0, 3.0, 2.0])) | tensor(1)
argmin | torch.argmin(torch.tensor([1.0, 3.0, 2.0])) | tensor(0)
max | torch.max(torch.tensor([1.0, 3.0, 2.0])) | tensor(3.)
min | torch.min(torch.tensor([1.0, 3.0, 2.0])) | tensor(1.)
amax | torch.amax(torch.tensor([[1.0, 3.0], [5.0, 2.0]]), 1) | tensor([3., 5.])
amin | torch.amin(torch.tensor([[1.0, 3.0], [5.0, 2.0]]), 1) | tensor([1., 2.])
var | torch.var(torch.tensor([1.0, 3.0])) | tensor(2.)
std | torch.std(torch.tensor([1.0, 3.0])) | tensor(1.4142)
hstack | torch.hstack([torch.tensor([1]), torch.tensor([2])]) | tensor([1, 2])
vstack | torch.vstack([torch.tensor([1]), torch.tensor([2])]).shape | torch.Size([2, 1])
row_stack | torch.row_stack([torch.tensor([1]), torch.tensor([2])]).shape | torch.Size([2, 1])
dstack | torch.dstack([torch.tensor([1]), torch.tensor([2])]).shape | torch.Size([1, 1, 2])
column_stack | torch.column_stack([torch.tensor([1]), torch.tensor([2])]).shape | torch.Size([1, 2])
cummax | torch.cummax(torch.tensor([1.0, 3.0, 2.0]), 0).values | tensor([1., 3., 3.])
cummin | torch.cummin(torch.tensor([3.0, 1.0, 2.0]), 0).values | tensor([3., 1., 1.])
i0 | torch.i0(torch.tensor([0.0, 1.0])) | tensor([1.0000, 1.2661])
atleast_1d | torch.atleast_1d(torch.tensor(1.0)) | tensor([1.])
atleast_2d | torch.atleast_2d(torch.tensor(1.0)) | tensor([[1.]])
atleast_3d | torch.atleast_3d(torch.tensor(1.0)) | tensor([[[1.]]])
hann_window | torch.hann_window(4) | tensor([0.0000, 0.5000, 1.0000, 0.5000])
hamming_window | torch.hamming_window(4) | tensor([0.0800, 0.5400, 1.0000, 0.5400])
Tensor.squeeze_ | torch.ones(1, 3).squeeze_().shape | torch.Size([3])
Tensor.unsqueeze_ | torch.ones(3).unsqueeze_(0).shape | torch.Size([1, 3])
Tensor.transpose_ | torch.ones(2, 3).transpose_(0, 1).shape | torch.Size([3, 2])
Tensor.t_ | torch.ones(2, 3).t_().shape | torch.Size([3, 2])
Tensor.bernoulli_ | torch.zeros(2).bernoulli_(1.0) | tensor([1., 1.])
Tensor.exponential_ | torch.zeros(2).exponential_().shape | torch.Size([2])
Tensor.normal_ | torch.zeros(2).normal_().shape | torch.Size([2])
Tensor.random_ | torch.zeros(2).random_(1) | tensor([0., 0.])
Tensor.uniform_ | torch.zeros(2).uniform_(1.0, 2.0).shape | torch.Size([2])
Tensor.bool | torch.tensor([0, 2]).bool() | tensor([False,  True])
Tensor.byte | torch.tensor([1.0]).byte() | tensor([1], dtype=torch.uint8)
Tensor.cdouble | torch.tensor([1.0]).cdouble() | tensor([1.+0.j], dtype=torch.complex128)
Tensor.cfloat | torch.tensor([1.0]).cfloat() | tensor([1.+0.j])
Tensor.char | torch.tensor([1.0]).char() | tensor([1], dtype=torch.int8)
Tensor.double | torch.tensor([1.0]).double() | tensor([1.], dtype=torch.float64)
Tensor.float | torch.tensor([1]).float() | tensor([1.])
Tensor.half | torch.tensor([1.0]).half() | tensor([1.], dtype=torch.float16)
Tensor.int | torch.tensor([1.5]).int() | tensor([1], dtype=torch.int32)
Tensor.long | torch.tensor([1.5]).long() | tensor([1])
Tensor.short | torch.tensor([1.5]).short() | tensor([1], dtype=torch.int16)
Tensor.new_empty | torch.ones(1).new_empty(2).shape | torch.Size([2])
Tensor.new_ones | torch.zeros(1).new_ones(2) | tensor([1., 1.])
Tensor.new_zeros | torch.ones(1).new_zeros(2) | tensor([0., 0.])
fft.fft | torch.fft.fft(torch.tensor([1.0, 2.0])) | tensor([ 3.+0.j, -1.+0.j])
fft.ifft | torch.fft.ifft(torch.tensor([3.0, -1.0])).real | tensor([1., 2.])
fft.rfft | torch.fft.rfft(torch.ones(4)).shape | torch.Size([3])
fft.irfft | torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0]))) | tensor([1., 2.])
fft.hfft | torch.fft.hfft(torch.ones(3)).shape | torch.Size([4])
fft.ihfft | torch.fft.ihfft(torch.ones(4)).shape | torch.Size([3])
fft.fft2 | torch.fft.fft2(torch.ones(2, 2)).shape | torch.Size([2, 2])
fft.ifft2 | torch.fft.ifft2(torch.ones(2, 2)).shape | torch.Size([2, 2])
fft.rfft2 | torch.fft.rfft2(torch.ones(2, 4)).shape | torch.Size([2, 3])
fft.irfft2 | torch.fft.irfft2(torch.ones(2, 3)).shape | torch.Size([2, 4])
fft.fftn | torch.fft.fftn(torch.ones(2, 2)).shape | torch.Size([2, 2])
fft.ifftn | torch.fft.ifftn(torch.ones(2, 2)).shape | torch.Size([2, 2])
fft.rfftn | torch.fft.rfftn(torch.ones(2, 4)).shape | torch.Size([2, 3])
fft.irfftn | torch.fft.irfftn(torch.ones(2, 3)).shape | torch.Size([2, 4])
special.bessel_j0 | torch.special.bessel_j0(torch.tensor([0.0, 1.0])) | tensor([1.0000, 0.7652])
special.bessel_j1 | torch.special.bessel_j1(torch.tensor([0.0, 1.0])) | tensor([0.0000, 0.4401])
special.entr | torch.special.entr(torch.tensor([0.5, 1.0])) | tensor([0.3466, -0.0000])
special.erfcx | torch.special.erfcx(torch.tensor([0.0, 1.0])) | tensor([1.0000, 0.4276])
special.i0e | torch.special.i0e(torch.tensor([0.0, 1.0])) | tensor([1.0000, 0.4658])
special.i1 | torch.special.i1(torch.tensor([0.0, 1.0])) | tensor([0.0000, 0.5652])
special.i1e | torch.special.i1e(torch.tensor([0.0, 1.0])) | tensor([0.0000, 0.2079])
Tensor.add_ | torch.tensor([1.0, 2.0]).add_(torch.tensor([3.0, 4.0]), alpha=10) | tensor([31., 42.])
Tensor.sub_ | torch.tensor([1.0, 2.0]).sub_(1.0) | tensor([0., 1.])
Tensor.subtract_ | torch.tensor([1.0, 2.0]).subtract_(1.0) | tensor([0., 1.])
Tensor.mul_ | torch.tensor([1.0, 2.0]).mul_(3.0) | tensor([3., 6.])
Tensor.multiply_ | torch.tensor([1.0, 2.0]).multiply_(3.0) | tensor([3., 6.])
Tensor.div_ | torch.tensor([1.0, 2.0]).div_(2.0) | tensor([0.5000, 1.0000])
Tensor.divide_ | torch.tensor([1.0, 2.0]).divide_(2.0) | tensor([0.5000, 1.0000])
Tensor.true_divide_ | torch.tensor([1.0, 2.0]).true_divide_(2.0) | tensor([0.5000, 1.0000])
Tensor.pow_ | torch.tensor([2.0, 3.0]).pow_(2) | tensor([4., 9.])
Tensor.square_ | torch.tensor([2.0, 3.0]).square_() | tensor([4., 9.])
Tensor.abs_ | torch.tensor([-1.0, 2.0]).abs_() | tensor([1., 2.])
Tensor.neg_ | torch.tensor([-1.0, 2.0]).neg_() | tensor([ 1., -2.])
Tensor.negative_ | torch.tensor([-1.0, 2.0]).negative_() | tensor([ 1., -2.])
Tensor.exp_ | torch.tensor([0.0, 1.0]).exp_() | tensor([1.0000, 2.7183])
Tensor.exp2_ | torch.tensor([1.0, 3.0]).exp2_() | tensor([2., 8.])
Tensor.expm1_ | torch.tensor([0.0, 1.0]).expm1_() | tensor([0.0000, 1.7183])
Tensor.log_ | torch.tensor([1.0, 2.0]).log_() | tensor([0.0000, 0.6931])
Tensor.log2_ | torch.tensor([1.0, 8.0]).log2_() | tensor([0., 3.])
Tensor.log10_ | torch.tensor([1.0, 10.0]).log10_() | tensor([0., 1.])
Tensor.log1p_ | torch.tensor([0.0, 1.0]).log1p_() | tensor([0.0000, 0.6931])
Tensor.sqrt_ | torch.tensor([4.0, 9.0]).sqrt_() | tensor([2., 3.])
Tensor.rsqrt_ | torch.tensor([4.0, 16.0]).rsqrt_() | tensor([0.5000, 0.2500])
Tensor.reciprocal_ | torch.tensor([2.0, 4.0]).reciprocal_() | tensor([0.5000, 0.2500])
Tensor.sin_ | torch.tensor([0.0, 1.0]).sin_() | tensor([0.0000, 0.8415])
Tensor.cos_ | torch.tensor([0.0, 1.0]).cos_() | tensor([1.0000, 0.5403])
Tensor.tan_ | torch.tensor([0.0, 1.0]).tan_() | tensor([0.0000, 1.5574])
Tensor.asin_ | torch.tensor([0.0, 1.0]).asin_() | tensor([0.0000, 1.5708])
Tensor.acos_ | torch.tensor([0.0, 1.0]).acos_() | tensor([1.5708, 0.0000])
Tensor.atan_ | torch.tensor([0.0, 1.0]).atan_() | tensor([0.0000, 0.7854])
Tensor.sinh_ | torch.tensor([0.0, 1.0]).sinh_() | tensor([0.0000, 1.1752])
Tensor.cosh_ | torch.tensor([0.0, 1.0]).cosh_() | tensor([1.0000, 1.5431])
Tensor.tanh_ | torch.tensor([0.0, 1.0]).tanh_() | tensor([0.0000, 0.7616])
Tensor.sigmoid_ | torch.tensor([0.0, 1.0]).sigmoid_() | tensor([0.5000, 0.7311])
Tensor.relu_ | torch.tensor([-1.0, 2.0]).relu_() | tensor([0., 2.])
Tensor.floor_ | torch.tensor([-1.5, 1.5]).floor_() | tensor([-2.,  1.])
Tensor.ceil_ | torch.tensor([-1.5, 1.5]).ceil_() | tensor([-1.,  2.])
Tensor.round_ | torch.tensor([0.5, 1.6]).round_() | tensor([0., 2.])
Tensor.trunc_ | torch.tensor([-1.5, 1.5]).trunc_() | tensor([-1.,  1.])
Tensor.frac_ | torch.tensor([1.25]).frac_() | tensor([0.2500])
Tensor.sign_ | torch.tensor([-1.5, 1.5]).sign_() | tensor([-1.,  1.])
Tensor.clamp_ | torch.tensor([-1.0, 2.0]).clamp_(0.0, 1.0) | tensor([0., 1.])
Tensor.clip_ | torch.tensor([-1.0, 2.0]).clip_(0.0, 1.0) | tensor([0., 1.])
Tensor.clamp_min_ | torch.tensor([-1.0, 2.0]).clamp_min_(0.0) | tensor([0., 2.])
Tensor.clamp_max_ | torch.tensor([-1.0, 2.0]).clamp_max_(0.0) | tensor([-1.,  0.])
Tensor.lerp_ | torch.zeros(1).lerp_(torch.ones(1), 0.25) | tensor([0.2500])
Tensor.addcmul_ | torch.ones(1).addcmul_(torch.tensor([2.0]), torch.tensor([3.0])) | tensor([7.])
Tensor.addcdiv_ | torch.ones(1).addcdiv_(torch.tensor([6.0]), torch.tensor([3.0])) | tensor([3.])
Tensor.masked_fill_ | torch.ones(2).masked_fill_(torch.tensor([True, False]), 0.0) | tensor([0., 1.])
Tensor.masked_scatter_ | torch.zeros(1).masked_scatter_(torch.tensor([True]), torch.ones(1)) | tensor([1.])
Tensor.remainder_ | torch.tensor([-3.0, 5.0]).remainder_(2) | tensor([1., 1.])
Tensor.fmod_ | torch.tensor([-3.0, 5.0]).fmod_(2) | tensor([-1.,  1.])
Tensor.floor_divide_ | torch.tensor([-3.0, 5.0]).floor_divide_(2) | tensor([-2.,  2.])
Tensor.scatter_ | torch.zeros(3).scatter_(0, torch.tensor([2]), torch.tensor([5.0])) | tensor([0., 0., 5.])
Tensor.scatter_add_ | torch.zeros(2).scatter_add_(0, torch.tensor([1, 1]), torch.ones(2)) | tensor([0., 2.])
Tensor.index_add_ | torch.zeros(2).index_add_(0, torch.tensor([1, 1]), torch.ones(2)) | tensor([0., 2.])
Tensor.index_copy_ | torch.zeros(2).index_copy_(0, torch.tensor([1]), torch.ones(1)) | tensor([0., 1.])
Tensor.index_fill_ | torch.zeros(3).index_fill_(0, torch.tensor([0, 2]), 1.0) | tensor([1., 0., 1.])
Tensor.tril_ | torch.ones(2, 2).tril_().sum() | tensor(3.)
Tensor.triu_ | torch.ones(2, 2).triu_().sum() | tensor(3.)
Tensor.erf_ | torch.tensor([0.0, 1.0]).erf_() | tensor([0.0000, 0.8427])
Tensor.erfc_ | torch.tensor([0.0, 1.0]).erfc_() | tensor([1.0000, 0.1573])
Tensor.erfinv_ | torch.tensor([0.0, 0.5]).erfinv_() | tensor([0.0000, 0.4769])
Tensor.logit_ | torch.tensor([0.5, 0.9]).logit_() | tensor([0.0000, 2.1972])
Tensor.nan_to_num_ | torch.tensor([1.0, torch.nan]).nan_to_num_() | tensor([1., 0.])
Tensor.cumsum_ | torch.tensor([1.0, 2.0, 3.0]).cumsum_(0) | tensor([1., 3., 6.])
Tensor.cumprod_ | torch.tensor([1.0, 2.0, 3.0]).cumprod_(0) | tensor([1., 2., 6.])
Tensor.logical_not_ | torch.tensor([True, False]).logical_not_() | tensor([False,  True])
Tensor.logical_and_ | torch.tensor([True]).logical_and_(torch.tensor([False])) | tensor([False])
Tensor.logical_or_ | torch.tensor([True]).logical_or_(torch.tensor([False])) | tensor([True])
Tensor.logical_xor_ | torch.tensor([True]).logical_xor_(torch.tensor([True])) | tensor([False])
Tensor.eq_ | torch.tensor([1.0, 2.0]).eq_(1.0) | tensor([1., 0.])
Tensor.ne_ | torch.tensor([1.0, 2.0]).ne_(1.0) | tensor([0., 1.])
Tensor.lt_ | torch.tensor([1.0, 2.0]).lt_(2.0) | tensor([1., 0.])
Tensor.le_ | torch.tensor([1.0, 2.0]).le_(1.0) | tensor([1., 0.])
Tensor.gt_ | torch.tensor([1.0, 2.0]).gt_(1.0) | tensor([0., 1.])
Tensor.ge_ | torch.tensor([1.0, 2.0]).ge_(2.0) | tensor([0., 1.])
Tensor.bitwise_and_ | torch.tensor([3, 5]).bitwise_and_(6) | tensor([2, 4])
Tensor.bitwise_or_ | torch.tensor([3, 5]).bitwise_or_(6) | tensor([7, 7])
Tensor.bitwise_xor_ | torch.tensor([3, 5]).bitwise_xor_(6) | tensor([5, 3])
Tensor.bitwise_not_ | torch.tensor([0, 1]).bitwise_not_() | tensor([-1, -2])
Tensor.float_power_ | torch.ones(1).double().float_power_(2) | tensor([1.], dtype=torch.float64)
Tensor.digamma_ | torch.tensor([1.0]).digamma_() | tensor([-0.5772])
Tensor.lgamma_ | torch.tensor([1.0, 5.0]).lgamma_() | tensor([0.0000, 3.1781])
"""

_DOCSTRING = """{sentence}

Examples
--------
>>> import functrans.torch as torch
>>> {call}
{result}
"""


def document(namespace: Any) -> None:
    """Set the docstrings of the functions and methods in these tables."""
    sentences = dict(line.split(": ", 1) for line in _SENTENCES.strip().split("\n"))
    for line in _EXAMPLES.strip().split("\n"):
        name, call, result = line.split(" | ")
        made = _found(namespace, name)
        sentence = sentences.get(name) or (made.__doc__ or "").strip()
        if not sentence:  # an in-place method
            base = name.removeprefix("Tensor.").removesuffix("_")
            sentence = f"The in-place version of `{base}`."
        made.__doc__ = _DOCSTRING.format(sentence=sentence, call=call, result=result)


def _found(namespace: Any, name: str) -> Any:
    *path, last = name.split(".")
    home = namespace
    for part in path:
        home = getattr(home, part)
    made = inspect.getattr_static(home, last)
    return made.fget if isinstance(made, property) else made
