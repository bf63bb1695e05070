"""What tests share: tables of cases, oracles, and programs. Tests themselves are in the other folders."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
