"""Every way to come by a base, by name; each returns a `BaseFit`."""

from collections.abc import Callable

from thermocline.auto.black_box import fit_auto
from thermocline.auto.bootstrap import fit_bootstrap
from thermocline.auto.local_mixture import fit_local_mixture
from thermocline.bases import BaseFit
from thermocline.fits.advi import fit_advi
from thermocline.fits.ep import fit_ep
from thermocline.fits.laplace import fit_laplace
from thermocline.fits.moments import fit_moments
from thermocline.fits.pathfinder import fit_pathfinder
from thermocline.fits.renyi import fit_renyi
from thermocline.fits.student_mixture import fit_mixture

FITS: dict[str, Callable[..., BaseFit]] = {  # of a target
    "auto": fit_auto,
    "laplace": fit_laplace,
    "advi": fit_advi,
    "pathfinder": fit_pathfinder,
    "local mixture": fit_local_mixture,
    "renyi": fit_renyi,
    "ep": fit_ep,
    "bootstrap": fit_bootstrap,
}
FITS_OF_DRAWS: dict[str, Callable[..., BaseFit]] = {"moments": fit_moments, "mixture": fit_mixture}
