"""What LLVM finds of ten CPUs (`get_host_cpu_name`, `get_host_cpu_features`), and /proc/cpuinfo of those with ARM's
architecture; and which features an instruction of their assembly needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewise.backends.cpu.runtime.target import UNDETECTED, Cpu

HASWELL = """64bit aes avx avx2 bmi bmi2 cmov crc32 cx16 cx8 f16c fma fsgsbase fxsr invpcid lzcnt mmx movbe pclmul
    popcnt rdrnd sahf sse sse2 sse3 sse4.1 sse4.2 ssse3 xsave xsaveopt"""
SKYLAKE_X = (
    HASWELL
    + """ adx avx512bw avx512cd avx512dq avx512f avx512vl clflushopt clwb pku prfchw rdseed rtm xsavec
    xsaves"""
)
CASCADE_LAKE = SKYLAKE_X + " avx512vnni"
ICE_LAKE = (
    CASCADE_LAKE
    + """ avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vpopcntdq gfni pconfig rdpid sha vaes
    vpclmulqdq wbnoinvd"""
)
SAPPHIRE_RAPIDS = (
    ICE_LAKE
    + """ amx-bf16 amx-int8 amx-tile avx512bf16 avx512fp16 avxvnni cldemote enqcmd movdir64b
    movdiri ptwrite serialize shstk tsxldtrk uintr waitpkg"""
)
ALDER_LAKE = (
    HASWELL
    + """ adx avxvnni clflushopt clwb gfni hreset kl movdir64b movdiri pconfig pku prfchw ptwrite rdpid
    rdseed serialize sha shstk vaes vpclmulqdq waitpkg widekl xsavec xsaves"""
)
ZEN_3 = (
    HASWELL
    + """ adx clflushopt clwb clzero mwaitx pku prfchw rdpid rdpru rdseed sha shstk sse4a vaes vpclmulqdq
    wbnoinvd xsavec xsaves"""
)
ZEN_4 = (
    ZEN_3
    + """ avx512bf16 avx512bitalg avx512bw avx512cd avx512dq avx512f avx512ifma avx512vbmi avx512vbmi2
    avx512vl avx512vnni avx512vpopcntdq gfni"""
)
NOWHERE = "amx-fp16 avx10.1 avxifma avxneconvert avxvnniint16 avxvnniint8 fma4 raoint sm4 tbm xop"
X86 = {
    "haswell": HASWELL, "skylake-avx512": SKYLAKE_X, "cascadelake": CASCADE_LAKE, "icelake-server": ICE_LAKE,
    "sapphirerapids": SAPPHIRE_RAPIDS, "alderlake": ALDER_LAKE, "znver3": ZEN_3, "znver4": ZEN_4,
}  # fmt: skip
# of LLVM, and of /proc/cpuinfo
ARM = {
    "neoverse-n1": (
        "aes crc fp-armv8 lse neon sha2",
        "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp",
    ),
    "apple-m1": (
        "aes crc fp-armv8 lse neon sha2",
        "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 "
        "asimddp sha512 asimdfhm dit uscat ilrcpc flagm ssbs sb paca pacg dcpodp flagm2 frint",
    ),
}
EVERY_X86 = sorted(set(" ".join([*X86.values(), NOWHERE]).split()))


def recorded() -> dict[str, Cpu]:
    found = {}
    for name, text in X86.items():
        has = set(text.split())
        found[name] = Cpu(name, {feature: feature in has for feature in EVERY_X86}, arm=False)
    for name, (text, flags) in ARM.items():
        known = dict.fromkeys(text.split(), True) | {"sve": False, "rand": False}
        known |= {feature: word in flags.split() for word, feature in UNDETECTED.items()}
        found[name] = Cpu(name, known, arm=True)
    return found


Needs = tuple[str, ...]  # features, one of which is enough
# of a line of assembly, mnemonic first
ON_X86: list[tuple[str, Needs]] = [
    (r".*%(zmm|k[0-7]\b)", ("avx512f",)),
    (r".*%[xy]mm(1[6-9]|2\d|3[01])\b", ("avx512vl",)),
    (r"v|\{vex\}", ("avx",)),
    (r"vp(?!erm(il|2f128)|test)\w+.*%ymm|vbroadcasts[sd]\t%xmm|vgather|v(extract|insert)i128", ("avx2",)),
    (r"vfn?m(add|sub)", ("fma", "avx512f")),
    (r"vcvt(ph2ps|ps2ph)\b", ("f16c", "avx512f")),
    (r"\{vex\}\tvpdp", ("avxvnni",)),
    (r"vpdp(busd|wssd)s?\b", ("avxvnni", "avx512vnni")),
    (r"vpdp(busd|wssd)s?\b.*%zmm", ("avx512vnni",)),
    (r"vrangep|vpmullq|vcvtt?p[sd]2u?qq|vcvtu?qq2p|kmovb", ("avx512dq",)),
    (r"vp(add|sub|mul|mull|mulh|madd|maxs|maxu|mins|minu|abs|cmp\w*|sll|srl|sra|unpck\w*|ack\w*|shuf)u?[bw]d?\b.*%zmm",
     ("avx512bw",)),
    (r"vmovdqu(8|16)|vperm(i2|t2|)w|vpmovzxbw.*%zmm|kmov[dq]", ("avx512bw",)),
    (r"vperm(i2|t2|)b\b", ("avx512vbmi",)),
    (r"vpsh[lr]d|vp(compress|expand)[bw]", ("avx512vbmi2",)),
    (r"vpopcnt[bw]|vpshufbitqmb", ("avx512bitalg",)),
    (r"vpopcnt[dq]", ("avx512vpopcntdq",)),
    (r"vpmadd52", ("avx512ifma", "avxifma")),
    (r"vdpbf16|vcvtne2?ps2bf16", ("avx512bf16",)),
    (r"v(?!cvtph2ps\b|cvtps2ph\b)\w+(ph|sh)x?\t", ("avx512fp16",)),
    (r"v?gf2p8", ("gfni",)),
    (r"t(dp|ile)", ("amx-tile",)),
    (r"(andn|bextr|bls(i|r|msk)|tzcnt)[lqw]?\t", ("bmi",)),
    (r"(bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx)[lq]?\t", ("bmi2",)),
    (r"lzcnt", ("lzcnt",)), (r"popcnt", ("popcnt",)), (r"movbe", ("movbe",)), (r"ad[co]x", ("adx",)),
    (r"haddp|movddup|movs[hl]dup|addsub", ("sse3",)),
    (r"pshufb|pabs|palignr|phadd|pmulhrsw|pmaddubsw", ("ssse3",)),
    (r"p(min|max)(sb|sd|uw|ud)|pmulld|pmuldq|p?blendv?|round[ps]|pmov[sz]x|insertps|extractps|p(extr|insr)[bdq]|"
     r"ptest|pcmpeqq|packusdw", ("sse4.1",)),
    (r"pcmpgtq", ("sse4.2",)),
]  # fmt: skip
ON_ARM: list[tuple[str, Needs]] = [
    (r"[su]dot\t", ("dotprod",)),
    (r"(us|s|u)mmla|[us]{2}dot", ("i8mm",)),
    (r"bf(dot|mmla|cvt|mlal)", ("bf16",)),
    (r"fml[as]l2?\t", ("fp16fml",)),
    (r"f(add|sub|mul|ml[as]|maxnm|minnm|max|min|neg|abs|cm\w+)\t(v\d+\.[48]h|h\d+)", ("fullfp16",)),
    (r"sqrdml[as]h", ("rdm",)),
    (r"fc(mla|add)\t", ("complxnum",)),
    (r"ldapr", ("rcpc",)),
    (r"(cas|swp|(ld|st)(add|clr|set|eor|[su](max|min)))(a|l|al)?[bh]?\t", ("lse",)),
    (r".*\bz\d+\.[bhsd]\b", ("sve",)),
    (r"aes(e|d|mc|imc)", ("aes",)), (r"sha(1|256)", ("sha2",)), (r"crc32", ("crc",)),
]  # fmt: skip


def beyond(assembly: str, cpu: Cpu) -> Iterator[tuple[str, Needs]]:
    """Instructions that the CPU lacks, with the features they need."""
    rules = [(re.compile(pattern), needs) for pattern, needs in (ON_ARM if cpu.arm else ON_X86)]
    for line in {x.strip() for x in assembly.split("\n") if re.match(r"\t(\{vex\}|[a-z])", x)}:
        for pattern, needs in rules:
            if pattern.match(line) and not any(cpu.features.get(x) for x in needs):
                yield line, needs
