"""Forest weights and quantiles of many samples: ours, a peer's, and scikit-learn's by hand."""

from benchmarks.models import library_of
from benchmarks.plan import BY_HAND, QUANTILE_FOREST, WEIGHTS

LEVELS = (0.1, 0.5, 0.9)
QUESTIONS = {"predict": (), "weights": (), "quantiles": LEVELS}
LEAF = 5  # fewest samples, so that there is something to take quantiles of


def measure(bench, sheet):
    """Ask all forests in turns; each is fitted once, in a process of its own."""
    plan = bench.plan
    work = bench.generated(
        plan.weights, (10,), 0, candidates=3, trees=plan.weights_trees, leaf=LEAF
    )
    clients, keys = {}, {}
    for model in bench.present((WEIGHTS, QUANTILE_FOREST, BY_HAND)):
        client = bench.clients.fresh(library_of(model), 1)
        request = {"model": model, "threads": 1, "seed": 0, **work.request()}
        fitted = bench.ask(client, "fit", hold=True, **request)
        if fitted is None:
            continue
        clients[model], keys[model] = client, client("fit_unless_held", **request)
        add(sheet, client, model, work, "fit", 0, {**fitted, "bytes": ""})
        bench.say(f"weights: {model} fitted, {fitted['cpu']:.1f} CPU-seconds")
    try:
        for repeat in range(plan.repeats):
            for question, levels in QUESTIONS.items():
                for model in list(clients):
                    client, key = clients[model], keys[model]
                    arguments = {"key": key, "path": work.path, "question": question}
                    found = bench.ask(client, "answer", **arguments, levels=levels)
                    if found is None:
                        del clients[model]
                        continue
                    add(sheet, client, model, work, question, repeat, found)
                    bench.say(f"weights: {question} of {model}, {found['cpu']:.2f} CPU-seconds")
    finally:
        for client in clients.values():
            client.close()


def add(sheet, client, model, work, question, repeat, found):
    sheet.add(
        **client.versions,
        model=model,
        **work.columns(),
        threads=1,
        leaf=work.leaf,
        question=question,
        repeat=repeat,
        cpu_seconds=found["cpu"],
        wall_seconds=found["wall"],
        score=found["score"],
        bytes=found["bytes"],
    )
