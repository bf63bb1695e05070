"""PyTorch's names over functrans: `import functrans.torch as torch`.

A `Tensor` is a value together with its record on a tape that is always on. So `.backward()` uses the same
rules and the same sweep as `functrans.grad`, and functrans' transforms accept tensors.

Examples
--------
>>> import functrans.torch as torch
>>> x = torch.tensor(1.0, requires_grad=True)
>>> y = (3 * x + 2) ** 2
>>> y.backward()
>>> x.grad
tensor(30.)
"""

import sys as _sys
import typing as _typing
import warnings as _warnings
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any as _Any

# The surface implements NumPy's functions for the NumPy faces of tensors.
import functrans.surface as _surface
from functrans.torch import accelerator as accelerator
from functrans.torch import amp as amp
from functrans.torch import autograd as autograd
from functrans.torch import complex_numbers as _complex_numbers
from functrans.torch import conversions as _conversions
from functrans.torch import creation as _creation
from functrans.torch import cuda as cuda
from functrans.torch import diagonals as _diagonals
from functrans.torch import dtypes as _dtypes
from functrans.torch import errors as errors
from functrans.torch import fft as fft
from functrans.torch import func as func
from functrans.torch import in_place as _in_place
from functrans.torch import indexing as _indexing
from functrans.torch import joining as _joining
from functrans.torch import linalg as linalg
from functrans.torch import nn as nn
from functrans.torch import optim as optim
from functrans.torch import pointwise as _pointwise
from functrans.torch import printing as _printing
from functrans.torch import products as _products
from functrans.torch import profiler as profiler
from functrans.torch import random as random
from functrans.torch import reducing as _reducing
from functrans.torch import selecting as _selecting
from functrans.torch import serialization as _serialization
from functrans.torch import shaping as _shaping
from functrans.torch import shorthands as _extras
from functrans.torch import sorting as _sorting
from functrans.torch import special as special
from functrans.torch import statistics as _statistics
from functrans.torch import surroundings as _surroundings
from functrans.torch import turning as _turning
from functrans.torch import utils as utils
from functrans.torch import viz as viz
from functrans.torch.amp import autocast as autocast
from functrans.torch.autograd.anomaly import (
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
)
from functrans.torch.autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from functrans.torch.autograd.modes import enable_grad as enable_grad
from functrans.torch.autograd.modes import inference_mode as inference_mode
from functrans.torch.autograd.modes import is_grad_enabled as is_grad_enabled
from functrans.torch.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from functrans.torch.autograd.modes import no_grad as no_grad
from functrans.torch.autograd.modes import set_grad_enabled as set_grad_enabled
from functrans.torch.boundary import guard as _guard
from functrans.torch.dtypes import dtype as dtype
from functrans.torch.dtypes import finfo as finfo
from functrans.torch.dtypes import get_default_dtype as get_default_dtype
from functrans.torch.dtypes import iinfo as iinfo
from functrans.torch.dtypes import promote_types as promote_types
from functrans.torch.dtypes import set_default_dtype as set_default_dtype
from functrans.torch.examples import document as _document
from functrans.torch.func import vmap as vmap
from functrans.torch.namespace import list_names as _list_names
from functrans.torch.namespace import owners as _owners
from functrans.torch.registry import FUNCTIONS as _FUNCTIONS
from functrans.torch.tensor import Size as Size
from functrans.torch.tensor import Tensor as Tensor
from functrans.torch.tensor import device as device

# The modules whose functions register themselves in _FUNCTIONS.
_PARTS = (
    _surface,
    _complex_numbers,
    _conversions,
    _creation,
    _diagonals,
    _extras,
    _in_place,
    _indexing,
    _joining,
    _pointwise,
    _printing,
    _products,
    _reducing,
    _selecting,
    _serialization,
    _shaping,
    _sorting,
    _statistics,
    _surroundings,
    _turning,
)
globals().update(_FUNCTIONS)
globals().update({each.name: each for each in _dtypes.ALL})
half, float, double = _dtypes.float16, _dtypes.float32, _dtypes.float64
cfloat, cdouble = _dtypes.complex64, _dtypes.complex128
short, int, long = _dtypes.int16, _dtypes.int32, _dtypes.int64
strided = "torch.strided"
newaxis = None
__version__: str = _sys.modules["functrans"].__version__

_document(_sys.modules[__name__])
_guard(_owners())
_FUNCTIONS.update({name: globals()[name] for name in _FUNCTIONS})
_list_names()

# PyTorch divides by zero silently. NumPy's warnings name the module that computes, which is one of these.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"functrans\.torch\.")

if _typing.TYPE_CHECKING:
    from functrans.torch.creation import tensor as tensor  # also the name of a module

    def __getattr__(name: str) -> _Any: ...
