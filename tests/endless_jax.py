"""JAX with one fault: a difference keeps the device busy for minutes (`--adapter jax=tests.endless_jax:Endless`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.jax import Jax

if TYPE_CHECKING:
    import jax

#: Rounds of a compiled loop, none of which can be left out: each takes the last one's result.
ROUNDS = 2**31 - 1


class Endless(Jax):
    """JAX, whose differences are computed in a loop that goes on and on."""

    def sub(self, x: Any, y: Any) -> Any:
        """Subtract, again and again."""
        return jax.jit(lambda x, y: jax.lax.fori_loop(0, ROUNDS, lambda _, value: value * 0.5 - y, x))(x, y)
