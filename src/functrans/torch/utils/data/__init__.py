"""torch.utils.data: datasets, samplers and batches."""

from functrans.torch.utils.data.datasets import ConcatDataset as ConcatDataset
from functrans.torch.utils.data.datasets import Dataset as Dataset
from functrans.torch.utils.data.datasets import IterableDataset as IterableDataset
from functrans.torch.utils.data.datasets import Subset as Subset
from functrans.torch.utils.data.datasets import TensorDataset as TensorDataset
from functrans.torch.utils.data.datasets import random_split as random_split
from functrans.torch.utils.data.loader import DataLoader as DataLoader
from functrans.torch.utils.data.loader import default_collate as default_collate
from functrans.torch.utils.data.samplers import BatchSampler as BatchSampler
from functrans.torch.utils.data.samplers import RandomSampler as RandomSampler
from functrans.torch.utils.data.samplers import Sampler as Sampler
from functrans.torch.utils.data.samplers import SequentialSampler as SequentialSampler
from functrans.torch.utils.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from functrans.torch.utils.data.samplers import WeightedRandomSampler as WeightedRandomSampler
