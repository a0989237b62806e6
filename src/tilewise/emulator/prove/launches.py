"""The launch in the file: the host's statements up to it, in order, and what each may change."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from tilewise.emulator.host.launch_site import LaunchSite, host_body, host_functions
from tilewise.emulator.parse import tree, types
from tilewise.emulator.prove.expressions import changes
from tilewise.emulator.prove.host_effects import FREEING, Effects, base_of, certain, path_of, uncast
from tilewise.emulator.prove.host_values import DIM3, HostValues, Three, called, literal
from tilewise.emulator.prove.terms import ONE, TRUE, ZERO, Cond, Poly, at_most, both, flags_of, negate, symbols_of
from tilewise.emulator.prove.values import Int, Nothing, NotModelled, Pointer, Ref, Region, Value
from tilewise.emulator.sema.symbol_table import Environment, Unknown
from tilewise.errors import KernelError

ALLOCATING = ("cudaMalloc", "cudaMallocManaged")
LEAVING = ("exit", "abort", "std::exit", "_Exit")
Calls = tuple[tuple[tree.Function, tree.Call], ...]


@dataclass
class Host(HostValues):
    """The host function up to its launch."""

    effects: Effects = field(init=False)

    def __post_init__(self) -> None:
        self.effects = Effects(self.table)

    def at(self, site: LaunchSite, calls: Calls = ()) -> tuple[Three, Three, Poly]:
        """Grid, block and bytes of shared memory; `calls` lead to the function of the launch."""
        function = calls[0][0] if calls else site.function
        walked = [site.function, *(caller for caller, _ in calls)]
        references = {p.name for f in walked for p in f.parameters if isinstance(p.type, tree.TypeReference)}
        self.loose = self.effects.loose() | references
        if aliased := self.loose & {name.partition(".")[0] for name in self.sizes}:
            raise NotModelled(f"{min(aliased)} has another name", site.launch.line)
        self._of_the_program()
        for parameter in function.parameters:
            self._name(parameter.type, parameter.name, self._given(parameter))
        for caller, call in calls:
            self._reach(caller, call)
            function, _ = self.callee(call)
            values = [self.attempt(argument) for argument in call.arguments]
            self.scopes, self.env = [self.scopes[0], {}], Environment(scope=function.scope)
            for parameter, value in zip_longest(function.parameters, values[: len(function.parameters)]):
                self._name(parameter.type, parameter.name, Nothing() if value is None else value)
        self._reach(site.function, site.launch)
        given = site.launch.configuration
        if len(given) < 2:
            raise NotModelled("<<<…>>> needs a grid and a block", site.launch.line)
        shared = self._number(given[2]) if len(given) > 2 else Poly.of(0)
        return self._three(given[0]), self._three(given[1]), shared

    def checked(self, sizes: list[str]) -> tuple[Cond, list[str]]:
        """What the host has checked of the sizes, and the notes of the claim."""
        computed = self.symbols.quotients.keys() | self.symbols.choices.keys()
        leaves = [(line, c, self.symbols.behind_all(c) - computed) for line, c in self.guards]
        about = [(line, c) for line, c, made_of in leaves if made_of <= set(sizes)]
        lines = list(dict.fromkeys(str(line) for line, _ in about))
        notes = [f"where the check{'s' * (len(lines) > 1)} of line {', '.join(lines)} let it"] if lines else []
        return both(*(c for _, c in about)), [*(["the grid is computed in float"] if self.single else []), *notes]

    @property
    def most(self) -> int:
        """The largest size: whole numbers of float."""
        return 1 << 22 if self.single else 1 << 30

    def _of_the_program(self) -> None:
        """Variables of the file, as they are when the program begins, if none of its functions changes them."""
        own: list[tree.Variable] = []
        for name, item in self.table.entities.variables.items():
            device = {"__device__", "__constant__", "__shared__", "__managed__"} & set(item.specifiers)
            if name not in self.table.library_variables and not device and not isinstance(item.type, tree.TypeConst):
                own.append(item)
                self.declare(name, types.INT, Nothing())
        bodies = [host_body(self.table, f) for f in host_functions(self.table)]
        assigned = {base_of(t) for part in (*bodies, *own) for t, _ in self.effects.changed(part)}
        self.effects = Effects(self.table, set(self.scopes[0]))
        for item in own:
            init = None if item.name in assigned or isinstance(item.type, tree.TypePointer) else item.init
            value = Nothing() if init is None else self.attempt(init)
            self._name(item.type, item.name, value, literal(item.init))
        self.scopes.append({})

    def _reach(self, function: tree.Function, target: tree.Node) -> None:
        body = host_body(self.table, function)
        jumps = {part.name for part in tree.walk(body) if isinstance(part, tree.Goto)}
        ends = {part.name for part in tree.walk(body) if isinstance(part, tree.Label) and part.line > target.line}
        if not jumps <= ends:
            raise NotModelled("goto is modelled where it leaves alone", target.line)
        if not self._read(body, target):
            raise NotModelled("the launch stands where it cannot be followed", target.line)

    def callee(self, call: tree.Call) -> tuple[tree.Function, int]:
        """The function of the file that is called, and how many have its name."""
        name = called(call)
        _, found = self.table.functions_named(name, self.env.scope) if name else ("", [])
        own = list({id(d): d for f in found if not f.library for d in [self.table.definition(f)]}.values())
        if len(own) != 1 or own[0].template:
            raise NotModelled(f"{name} is overloaded or a template", call.line)
        return own[0], len(own)

    def _given(self, parameter: tree.Parameter) -> Value:
        """A parameter of a function that nobody calls: an array of its own, of unknown length."""
        try:
            type_ = self.resolve(parameter.type)
        except NotModelled:
            return Nothing()
        return Pointer(self.array(parameter.name, type_.to)) if isinstance(type_, types.Pointer) else Nothing()

    def attempt(self, node: tree.Node) -> Value:
        before = len(self.events.ranges)
        try:
            return self.rvalue(node)
        except (NotModelled, KernelError, Unknown, RecursionError):
            del self.events.ranges[before:]
            self._forget(node)
            return Nothing()

    def _read(self, node: tree.Node | None, target: tree.Node) -> bool:
        """True once the target was met, a launch or a call."""
        if node is None or isinstance(node, tree.Nothing):
            return False
        if _within(node, target):
            return self._inside(node, target)
        if isinstance(node, tree.Block):
            self.scopes.append({})
            for part in node.body:
                self._read(part, target)
            self.scopes.pop()
        elif isinstance(node, tree.Declaration):
            for item in node.items:
                self._declared(item)
        elif isinstance(node, tree.Expression):
            self._effect(node.value)
        elif isinstance(node, tree.Bindings):
            self._forget(node)
            for name in node.names:
                self.declare(name, types.INT, Nothing())
        elif isinstance(node, tree.While) and node.after and isinstance(node.condition, tree.Number):
            return self._read(node.body, target)  # a macro's do … while (0)
        else:
            if isinstance(node, tree.If):
                self._forget(node.condition)
                self._allocations(node.condition)
                guard = self._guard(node)
                self._forget(node.yes, leaves=_leaves(node.yes))
                self._forget(node.no)
                self.state.path = both(self.state.path, guard)
            else:
                self._forget(node)
        return False

    def _guard(self, node: tree.If) -> Cond:
        """What holds behind a check whose branch leaves the program."""
        if (
            not _leaves(node.yes)
            or node.init is not None
            or not isinstance(node.no, tree.Nothing | None)
            or changes(node.condition)
        ):
            return TRUE
        try:
            found = negate(self.condition(node.condition))
        except NotModelled:
            return TRUE
        known = symbols_of(found) <= self.symbols.launch and not flags_of(found) and found != TRUE
        if known:
            self.guards.append((node.line, found))
        return found if known else TRUE

    def _inside(self, node: tree.Node, target: tree.Node) -> bool:
        """Of a branch only the side with the launch is read; a loop may have been through its body before."""
        self.scopes.append({})
        if isinstance(node, tree.Block):
            return any(self._read(part, target) for part in node.body)
        if isinstance(node, tree.If):
            self._read(node.init, target)
            self._forget(node.condition)
            self._allocations(node.condition)
            self._hides(node.condition)
            return self._read(node.yes if _within(node.yes, target) else node.no, target)
        if isinstance(node, tree.For | tree.While):
            if isinstance(node, tree.For):
                self._read(node.init, target)
            counter = self._counter(node)
            start = self.attempt(tree.Name(counter, line=node.line)) if counter is not None else Nothing()
            looping, self.looping = self.looping, True
            self._forget(node)
            self.looping = looping
            if isinstance(node, tree.For) and counter is not None:
                self._counts(node, counter, start)
            self._hides(node.condition)
            return self._read(node.body, target)
        if isinstance(node, tree.Switch | tree.ForEach | tree.Try):
            self._forget(node)
            parts = node.body.body if isinstance(node.body, tree.Block) else [node.body]
            before = [part for part in parts if part.line <= target.line and not _within(part, target)]
            self._hides(getattr(node, "variable", None), getattr(node, "value", None), *before)
            return any(self._read(part, target) for part in parts if _within(part, target))
        if any(isinstance(part, tree.Lambda) and _within(part, target) for part in tree.walk(node)):
            raise NotModelled("the launch stands in a lambda", target.line)
        given = [node.value] if isinstance(node, tree.Expression | tree.Return) else [
            item.init for item in node.items] if isinstance(node, tree.Declaration) else []  # fmt: skip
        if not any(part is target for part in given):  # f(n = 5), launch
            self._forget(node)
        return bool(given)

    def _hides(self, *nodes: tree.Node | None) -> None:
        """What they declare hides what has its name outside."""
        for item in tree.walk(nodes):
            if isinstance(item, tree.Variable):
                self._name(item.type, item.name, Nothing())

    def _counter(self, node: tree.For | tree.While) -> str | None:
        """The variable that a for begins with, where its body does not change it."""
        init = node.init if isinstance(node, tree.For) else None
        if isinstance(init, tree.Declaration) and len(init.items) == 1:
            name = init.items[0].name
        elif isinstance(init, tree.Expression) and isinstance(init.value, tree.Assign):
            name = path_of(init.value.target)
        else:
            return None
        changed = [target for target, _ in self.effects.changed(node.body, self.env.scope)]
        return None if any(isinstance(t, tree.Name) and t.name == name for t in changed) else name

    def _counts(self, node: tree.For, counter: str, start: Value) -> None:
        """What is known of a counter that the body does not change: the condition, and the side of its first value."""
        value = self.attempt(tree.Name(counter, line=node.line))
        symbol = value.poly if isinstance(value, Int) else ZERO
        if len(symbol.symbols) != 1 or not isinstance(start, Int) or node.condition is None:
            return
        try:
            facts = [self.condition(node.condition)]
        except NotModelled:
            return
        step = node.step.op.rstrip("=") if isinstance(node.step, tree.Step | tree.Assign) else ""
        by = self.attempt(node.step.value) if isinstance(node.step, tree.Assign) else Int(ONE, types.INT)
        positive = isinstance(by, Int) and (by.poly.constant or 0) > 0
        if positive and (step in ("++", "+") or (step in ("<<", "*") and (start.poly.constant or 0) > 0)):
            facts.append(at_most(start.poly, symbol))
        for fact in facts:
            if symbols_of(fact) <= self.symbols.launch and not flags_of(fact):
                self.symbols.fact(symbol, fact)

    def _declared(self, item: tree.Variable) -> None:
        plain = item.type.of if isinstance(item.type, tree.TypeConst) else item.type
        given = [item.init] if item.init is not None else item.arguments or []
        if isinstance(plain, tree.TypeName) and plain.name in DIM3:
            self.declare(item.name, types.INT, self._fields(given))
            return
        if isinstance(item.type, tree.TypeReference) and given and isinstance(given[0], tree.Name):
            if given[0].name in self.sizes:
                raise NotModelled(f"{item.name} is another name of {given[0].name}", item.line)
            self._forget(tree.Unary("&", given[0], line=item.line))
        lasting = isinstance(item.type, tree.TypeReference) or ("static" in item.specifiers and plain is item.type)
        value = self.attempt(given[0]) if len(given) == 1 and not lasting else Nothing()
        if tree.is_auto(item.type):
            self.declare(item.name, value.type if isinstance(value, Int) else types.DOUBLE, Nothing())
            self._set(item.name, value, item, literal(item.init))
        else:
            self._name(item.type, item.name, value, literal(given[0] if given else None))
        for part in given:
            self._allocations(part)

    def _forget(self, node: tree.Node | None, leaves: bool = False) -> None:
        """What it may change is not known. `leaves`: what is freed in it is not used behind it."""
        for part in tree.walk(node) if not leaves else ():
            if called(part) in FREEING or self.effects.frees(part, self.env.scope):
                for argument in part.arguments:
                    self._freed(argument, None)
        for target, part in self.effects.changed(node, self.env.scope):
            if isinstance(target, tree.Member) and self._member(target, Nothing()):
                continue
            while isinstance(target, tree.Member):
                target = target.base
            if isinstance(target, tree.Name):
                self._set(target.name, Nothing(), part)

    def _freed(self, node: tree.Node, length: Poly | None) -> None:
        value = self.attempt(node) if isinstance(uncast(node), tree.Name | tree.Member) else Nothing()
        if isinstance(value, Pointer):
            value.place.region.length = length
            self.allocated.setdefault(value.place.region, node.line)

    def _effect(self, node: tree.Node) -> None:
        if isinstance(node, tree.Call) and called(node) in FREEING:
            self._freed(node.arguments[0], ZERO)
            return
        if isinstance(node, tree.Assign) and not node.op and isinstance(node.target, tree.Name):
            self._set(node.target.name, self.attempt(node.value), node, literal(node.value))
        elif isinstance(node, tree.Assign) and not node.op and isinstance(node.target, tree.Member):
            value = self.attempt(node.value)
            if not self._member(node.target, value):
                self._forget(node)
        else:
            self._forget(node)
        self._allocations(node)

    def _allocations(self, node: tree.Node | None) -> None:
        for part in certain(node):
            if not isinstance(part, tree.Call) or called(part) not in ALLOCATING:
                continue
            target, bytes_ = part.arguments[0], self.attempt(part.arguments[1])
            while isinstance(target, tree.Cast) or (isinstance(target, tree.Unary) and target.op == "&"):
                target = target.operand
            name = target.name if isinstance(target, tree.Name | tree.Member) else "memory"
            region = Region(name, "global", 1, bytes_.poly if isinstance(bytes_, Int) else None)
            self.allocated[region] = part.line
            slot = self.slot(name) if isinstance(target, tree.Name) else None
            type_ = self.typed[slot] if slot is not None else types.FLOAT
            value = Pointer(Ref(region, ZERO, type_.to if isinstance(type_, types.Pointer) else types.FLOAT))
            if slot is not None and name not in self.loose:
                self.state.variables[slot] = value
            elif isinstance(target, tree.Member) and base_of(target) not in self.loose:
                self._member(target, value)


def _leaves(node: tree.Node) -> bool:
    """Whether a branch ends the function or the program."""
    last = node.body[-1] if isinstance(node, tree.Block) and node.body else node
    return isinstance(last, tree.Return) or (isinstance(last, tree.Expression) and called(last.value) in LEAVING)


def _within(node: tree.Node | None, target: tree.Node) -> bool:
    return any(part is target for part in tree.walk(node))
