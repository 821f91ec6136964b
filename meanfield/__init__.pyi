from .doctor import doctor as doctor
from .drifts import SA as SA, USA as USA, Interaction as Interaction, Kuramoto as Kuramoto
from .errors import CheckpointError as CheckpointError
from .errors import ConfigError as ConfigError
from .errors import MeanfieldError as MeanfieldError
from .errors import StorageError as StorageError
from .errors import UnresolvedWarning as UnresolvedWarning
from .geometry import Circle as Circle
from .model import Transformer as Transformer
from .solution import Solution as Solution
from .solve import solve as solve
from .states import Density as Density, Tokens as Tokens
from .storage import load as load
