"""What the checks of the SDKs share: classes, and a runner that says what failed."""

from __future__ import annotations

import sys
import traceback
from datetime import date
from enum import Enum
from typing import Literal, Optional

from pydantic import BaseModel, ConfigDict, Field

TEXT = "Para el segundo trimestre de 2024 esperamos ingresos de entre 12,5 y 13,1 millones."


class Prevision(BaseModel):
    """The class of the lesson: four members that may be null, with bounds."""

    model_config = ConfigDict(extra="forbid")
    trimestre: Optional[int] = Field(ge=1, le=4)
    anio: Optional[int] = Field(ge=2018, le=2026)
    bajo: Optional[float] = Field(gt=0)
    alto: Optional[float] = Field(gt=0)


class PrevisionConDefecto(BaseModel):
    """The same with defaults: the SDKs treat them differently."""

    model_config = ConfigDict(extra="forbid")
    trimestre: Optional[int] = Field(default=None, ge=1, le=4, description="Trimestre fiscal")
    anio: Optional[int] = Field(default=None, ge=2018, le=2026, description="Año fiscal")
    bajo: Optional[float] = Field(default=None, gt=0)
    alto: Optional[float] = Field(default=None, gt=0)


class Moneda(str, Enum):
    USD = "USD"
    EUR = "EUR"


class Linea(BaseModel):
    nombre: str = Field(min_length=1, max_length=20)
    cantidad: int = Field(ge=1, le=99, default=1)


class Factura(BaseModel):
    """Patterns, formats, enumerations, references and lists."""

    id: str = Field(pattern=r"^[A-Z]{3}-\d{4}$")
    fecha: date
    moneda: Moneda
    tipo: Literal["a", "b"]
    lineas: list[Linea] = Field(min_length=1, max_length=3)


def run(checks) -> None:
    """Runs the checks; exits with 1 if one fails."""
    failed = 0
    for check in checks:
        try:
            check()
            print("ok", check.__name__, flush=True)
        except Exception:
            failed += 1
            print("FAILED", check.__name__, flush=True)
            traceback.print_exc()
    sys.exit(1 if failed else 0)
