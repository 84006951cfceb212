"""The Common Expression Language, as custom resources and admission use it.

Why an engine of our own: measured were cel-expr-python (bindings to the C++ runtime) and cel-python (pure Python). The
first is fast (7 µs for a small rule) but copies what is bound for each evaluation, stops for good at 10,000 loop turns,
can neither hold opaque values (quantities, URLs, addresses, versions) nor add an overload to a function it knows
(string(ip), list.indexOf), and cannot be given a CRD's schema, so that a rule on a field that does not exist would be
accepted. The second takes 370 µs for the same rule, checks no types and knows neither optionals nor loops over two
variables. This one checks rules against the schema, binds objects as they are, counts its steps, and takes 5 µs.

Text → syntax (tokens, tree) → checker (types, slots, overloads) → compiler (closures) → Program. The functions live in
the registry: standard (the language), extensions (strings, lists, sets), kubernetes (quantity, url, ip, semver, ...).
`rules` applies x-kubernetes-validations to an object, `rule_check` and `estimate` judge them when a CRD is written.
"""

from karmada.kube.schema.cel.program import BudgetExceeded, CelError, CompileError, Program, compile_expression

__all__ = ["BudgetExceeded", "CelError", "CompileError", "Program", "compile_expression"]
