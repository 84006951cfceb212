"""Tables: how every kind looks to `kubectl get`."""

from karmada.kube.kinds.tables.columns import Printer
from karmada.kube.kinds.tables.table import printer_for, printer_of_kind, table, table_of

__all__ = ["Printer", "printer_for", "printer_of_kind", "table", "table_of"]
