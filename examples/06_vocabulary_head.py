"""A language model's head with GPT-2's vocabulary of 50,257 tokens, trained with torch's layer, then with ours.

50,257 is odd, so rows of the logits are misaligned, and on a GPU the vendor's kernels are several times slower; the
vocabulary is often padded to 50,304. `tilewise bench linear` measures that. Here both layers learn the same task from
the same weights: which token follows which.
"""

import time

try:
    import torch
except ImportError:
    print("this example needs PyTorch: pip install torch")
    raise SystemExit from None

import tilewise as tw

VOCABULARY = 50_257
on_card = torch.cuda.is_available()
device = "cuda" if on_card else "cpu"
width, tokens, steps = (2048, 4096, 20) if on_card else (32, 64, 3)

torch.manual_seed(0)
token_ids = torch.randint(VOCABULARY, (tokens,), device=device)
states = torch.nn.functional.normalize(torch.randn(tokens, width, device=device), dim=1)  # the hidden states of a model
following = (token_ids * 31 + 7) % VOCABULARY


def train(head: torch.nn.Linear) -> tuple[list[float], float]:
    optimiser = torch.optim.SGD(head.parameters(), lr=100.0)
    losses, start = [], time.perf_counter()
    for _ in range(steps):
        with torch.autocast(device, dtype=torch.bfloat16, enabled=on_card):
            logits = head(states)
        loss = torch.nn.functional.cross_entropy(logits.float(), following)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses, (time.perf_counter() - start) / steps


before = torch.nn.Linear(width, VOCABULARY, bias=False, device=device)
after = tw.torch.Linear(width, VOCABULARY, bias=False, device=device)
after.load_state_dict(before.state_dict())  # parameters are torch's own

losses, seconds = train(before)
ours, our_seconds = train(after)

print(f"{device}: {tokens} tokens, {width} -> {VOCABULARY:,}, {steps} steps")
print(f"torch.nn.Linear        loss {losses[0]:.3f} -> {losses[-1]:.3f}   {seconds * 1e3:7.1f} ms a step")
print(f"tilewise.torch.Linear  loss {ours[0]:.3f} -> {ours[-1]:.3f}   {our_seconds * 1e3:7.1f} ms a step")
assert losses[-1] < losses[0] - 0.1, "it learns"
assert all(abs(a - b) < 2e-2 for a, b in zip(losses, ours, strict=True)), "both learn the same"
