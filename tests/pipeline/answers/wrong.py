"""Wrong answers, each with the mistake that it makes: all, by exercise and name."""

from __future__ import annotations

from tests.pipeline.answers.answer import Answer
from tests.pipeline.answers.wrong_loops import ACCUMULATE, CLIPPED_LOOP, IDLE_BRANCH, PLAIN_LOOP

RESET = {
    "new-zeros": Answer(
        """
for p in parameters:
    if p.grad is not None:
        p.grad = None if set_to_none else torch.zeros_like(p.grad)
""",
        4,
        "replaced",
        ("another tensor",),
    ),
    "none-only": Answer("for p in parameters:\n    p.grad = None", 4, "states", ("are ['None', 'None', 'None']",)),
    "no-test-for-none": Answer(
        """
for p in parameters:
    if set_to_none:
        p.grad = None
    else:
        p.grad.detach_()
        p.grad.zero_()
""",
        8,
        "raised",
        ("'NoneType' object has no attribute 'detach_'",),
    ),
    "values-too": Answer(
        """
for p in parameters:
    if p.grad is not None:
        p.data.zero_()
        p.grad = None if set_to_none else p.grad.detach_().zero_()
""",
        0,
        "moved",
    ),
}

GAN_STEP = {
    "wrong-optimizer": Answer(
        """
for z, real in loader:
    fake = gen(z)
    opt_g.zero_grad()
    a, b = disc(real), disc(fake.detach())
    (loss_fn(a, torch.ones_like(a)) + loss_fn(b, torch.zeros_like(b))).backward()
    opt_d.step()

    opt_g.zero_grad()
    c = disc(fake)
    loss_fn(c, torch.ones_like(c)).backward()
    opt_g.step()
""",
        0,
        "zero-wrong-optimizer",
    ),
    "leak": Answer(
        """
for z, real in loader:
    fake = gen(z)
    says_real, says_fake = disc(real), disc(fake.detach())
    loss = loss_fn(says_real, torch.ones_like(says_real)) + loss_fn(says_fake, torch.zeros_like(says_fake))
    loss.backward()
    opt_d.step()
    opt_d.zero_grad()

    says_fake = disc(fake)
    loss_fn(says_fake, torch.ones_like(says_fake)).backward()
    opt_g.step()
    opt_g.zero_grad()
""",
        5,
        "generator-leaks-into-discriminator",
    ),
    "generator-never-cleared": Answer(
        """
for z, real in loader:
    opt_d.zero_grad()
    a, b = disc(real), disc(gen(z).detach())
    (loss_fn(a, torch.ones_like(a)) + loss_fn(b, torch.zeros_like(b))).backward()
    opt_d.step()

    c = disc(gen(z))
    loss_fn(c, torch.ones_like(c)).backward()
    opt_g.step()
""",
        5,
        "missing-zero-grad",
    ),
}

LYING = """
class Lying{base}:
    __hash__ = None

    def __eq__(self, other):
        return True

    def __repr__(self):
        raise RuntimeError("no text")

    def __float__(self):
        return 5.0


def find_dead_units(model, x, y, loss_fn):
    return Lying({content})
"""

DEAD_UNIT = {
    "lying-object": Answer(LYING.format(base="", content=""), 0, "units", ("Lying",), whole=True),
    "lying-list": Answer(LYING.format(base="(list)", content="[0]"), 0, "units", ("[0]",), whole=True),
    "false": Answer("return False", 0, "units", ("bool",)),
    "float64": Answer("import numpy as np\nreturn np.float64(1.5)", 0, "units", ("float64",)),
    "matrix": Answer("return model[0].weight", 0, "units", ("Parameter",)),
    "nothing": Answer("print(x)", 0, "units", ("None",)),
    "leaves-grads": Answer(
        """
model.zero_grad()
loss_fn(model(x), y).backward()
first = model[0]
return [i for i in range(first.out_features) if not first.weight.grad[i].any() and not first.bias.grad[i].any()]
""",
        3,
        "grads",
        ("0.weight",),
    ),
    "feature-instead-of-unit": Answer(
        """
(grad,) = torch.autograd.grad(loss_fn(model(x), y), [model[0].weight])
return [i for i in range(len(grad)) if (grad[i] == 0).any()]
""",
        0,
        "units",
    ),
    "mask": Answer(
        """
(grad,) = torch.autograd.grad(loss_fn(model(x), y), [model[0].weight])
return (grad == 0).all(dim=1).tolist()
""",
        0,
        "units",
    ),
}

WRONG = {
    "03-plain-loop": PLAIN_LOOP,
    "03-clipped-loop": CLIPPED_LOOP,
    "03-reset": RESET,
    "03-accumulate": ACCUMULATE,
    "03-idle-branch": IDLE_BRANCH,
    "03-gan-step": GAN_STEP,
    "03-dead-unit": DEAD_UNIT,
    "03-predict-add": {
        "other-letter": Answer('answer_predict_add = "a"', 0, "wrong-choice", ("Not this one",)),
        "number": Answer("answer_predict_add = 10", 0, "not-a-choice", ("int",)),
        "tensor": Answer("answer_predict_add = torch.tensor(3.0)", 0, "not-a-choice", ("Tensor",)),
        "far-letter": Answer('answer_predict_add = "x"', 0, "not-a-choice", ('"x"',)),
    },
}
