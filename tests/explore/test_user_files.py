"""Laws at the start from files of the user's: results and configurations."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.app.configuration import parse_config
from meanfield.app.configured_runs import Runs
from meanfield.core.errors import MeanfieldError
from meanfield.core.files import checksum
from meanfield.explore.export import toml_text
from meanfield.explore.scene import Scene, UserFile

CIRCLE = mf.Circle(degree=16)
MODEL = mf.Transformer(mf.SA(beta=2.0), kappa=5.0)


def solved(state, **options):
    return mf.solve(
        MODEL, state, t_span=(0, 0.1), t_eval=np.array([0.1]), progress=False, **options
    )


def test_the_last_state_of_a_density(tmp_path):
    run = solved(CIRCLE.von_mises(0.5, 1.0))
    run.save(tmp_path / "run.nc")
    file = UserFile.of_file(tmp_path / "run.nc")
    assert file.scene == Scene(start="file", drift="SA", beta=2.0, kappa=5.0)
    begin = file.scene.configurations(file)["density"].begin()
    np.testing.assert_array_equal(begin.coefficients, run.final.coefficients)
    tokens = file.scene.configurations(file)["tokens"].begin()
    np.testing.assert_array_equal(tokens.x, run.final.sample(200, rng=1).x)


def test_the_last_state_of_tokens(tmp_path):
    run = solved(CIRCLE.uniform().sample(5, rng=0), rng=1)
    run.save(tmp_path / "run.nc")
    file = UserFile.of_file(tmp_path / "run.nc")
    configurations = file.scene.configurations(file)
    assert list(configurations) == ["tokens"]
    np.testing.assert_array_equal(configurations["tokens"].begin().x, run.final.x)


def test_the_law_of_a_configuration_with_a_file_of_its_own(tmp_path):
    angles = np.random.default_rng(0).normal(size=50)
    np.save(tmp_path / "angles.npy", angles)
    data = {
        "model": {"drift": {"kind": "USA", "beta": 1.0}, "kappa": 3.0},
        "space": {"kind": "Circle", "degree": 64},
        "initial": {"kind": "Sample", "file": "angles.npy", "bandwidth": 0.5},
        "solve": {"t_span": [0, 1]},
    }
    (tmp_path / "run.toml").write_text(toml_text(data))
    file = UserFile.of_file(tmp_path / "run.toml")
    assert file.scene.beta == 1.0 and file.scene.kappa == 3.0
    begin = file.scene.configurations(file)["density"].begin()
    law = mf.Circle(degree=64).estimate(angles, bandwidth=0.5)
    np.testing.assert_array_equal(begin.coefficients, law.coefficients)


def test_files_that_cannot_be_shown(tmp_path):
    solved(mf.Density.stack([CIRCLE.uniform()] * 2)).save(tmp_path / "ensemble.nc")
    text = toml_text({
        "model": {"drift": {"kind": "USA", "beta": 9.0}},
        "space": {"kind": "Circle", "degree": 16},
        "initial": "Uniform",
        "solve": {"t_span": [0, 1]},
    })  # fmt: skip
    (tmp_path / "steep.toml").write_text(text)
    (tmp_path / "text.txt").write_text("")
    for name, words in {
        "ensemble.nc": "Circle, Sphere or Torus",
        "steep.toml": "beta",
        "text.txt": "toml",
        "missing.nc": "missing.nc",
    }.items():
        with pytest.raises(MeanfieldError, match=words):
            UserFile.of_file(tmp_path / name)


def test_what_the_page_lacks_is_refused_and_its_normalisations_are_taken(tmp_path):
    tokens, density = CIRCLE.uniform().sample(5, rng=0), CIRCLE.von_mises(0.0, 1.0)
    noise = mf.Anisotropic(np.diag([1.0, 3.0]))
    for name, model, state in [
        ("shown", mf.Transformer(mf.SA(2.0), normalisation=mf.SqrtScaling()), tokens),
        ("NGPT", mf.Transformer(mf.SA(2.0), normalisation=mf.NGPT(0.3)), tokens),
        ("reaction", mf.Transformer(mf.SA(2.0), 3.0, reaction=0.5), density),
        ("Anisotropic", mf.Transformer(mf.SA(2.0), 3.0, noise=noise), density),
    ]:
        mf.solve(model, state, (0.0, 0.01), progress=False).save(tmp_path / f"{name}.nc")
        if name == "shown":
            assert UserFile.of_file(tmp_path / "shown.nc").scene.normalisation == "SqrtScaling"
        else:
            with pytest.raises(MeanfieldError, match=name) as caught:
                UserFile.of_file(tmp_path / f"{name}.nc")
            assert "LastState" in str(caught.value)


def test_a_file_is_shown_on_its_own_space(tmp_path):
    solved(CIRCLE.uniform()).save(tmp_path / "run.nc")
    file = UserFile.of_file(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="Circle"):
        Scene(start="file", space="Sphere").tables(file)


def test_last_state_in_configurations(tmp_path):
    run = solved(CIRCLE.von_mises(0.5, 1.0))
    run.save(tmp_path / "run.nc")
    solved(CIRCLE.uniform().sample(5, rng=0), rng=1).save(tmp_path / "tokens.nc")
    data = {
        "model": {"drift": "Kuramoto"},
        "initial": {"kind": "LastState", "file": "run.nc"},
        "solve": {"t_span": [0, 1]},
    }
    config = parse_config(data, source=tmp_path / "next.toml")
    np.testing.assert_array_equal(config.begin().coefficients, run.final.coefficients)
    assert config.files == {"initial.file": tmp_path / "run.nc"}
    swept = Runs(data, tmp_path / "sweep.toml").contents("run.nc")
    assert swept == ("run.nc", checksum(tmp_path / "run.nc"))  # sweeps count it by what it holds
    for change, words in [
        ({"initial": {"kind": "LastState", "file": "tokens.nc"}}, "density"),
        ({"initial": {"kind": "LastState", "file": "other.nc"}}, "no file"),
        ({"initial": {"kind": "LastState", "file": "run.npy"}}, "nc"),
        ({"space": {"kind": "Sphere", "degree": 8}}, "Sphere"),
    ]:
        with pytest.raises(MeanfieldError, match=words):
            parse_config(data | change, source=tmp_path / "next.toml").begin()
