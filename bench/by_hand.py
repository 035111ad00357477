"""What `mlpipe run pipelines/adult.yaml` does, written by hand: `python -m bench.by_hand TRAIN TEST EPOCHS MODEL`.

pandas reads, scikit-learn maps numbers to a normal and measures, torch trains and exports, onnxruntime checks. The same
network, optimiser, schedule, batch size and epochs; whole tensors are indexed by batch, without a DataLoader. It
does less than mlpipe: its model takes encoded rows, nothing is hashed, and no file but the model is written. Prints
the test metrics as JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import onnxruntime as ort
import pandas as pd
import torch
from rtdl_num_embeddings import PeriodicEmbeddings
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import QuantileTransformer
from torch import nn
from torch.nn import functional

NUMERIC = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
CATEGORY = ["workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country"]
COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race", "sex"),
    *("capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
]
BATCH, MIN_COUNT = 256, 10


class Net(nn.Module):
    """Periodic embeddings of the numbers, one-hot codes, two hidden layers."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.embedding = PeriodicEmbeddings(len(NUMERIC), 24, n_frequencies=48, frequency_init_scale=16.0, lite=False)
        self.register_buffer("offsets", torch.tensor([0, *sizes[:-1]]).cumsum(0))
        self.codes = sum(sizes)
        width = len(NUMERIC) * 24 + self.codes
        self.layers = nn.Sequential(
            *(nn.Linear(width, 256), nn.ReLU(), nn.Dropout(0.3)),
            *(nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 1)),
        )

    def forward(self, numeric: torch.Tensor, category: torch.Tensor) -> torch.Tensor:
        one_hot = torch.zeros(category.shape[0], self.codes).scatter(1, category + self.offsets, 1.0)
        return self.layers(torch.cat([self.embedding(numeric).flatten(1), one_hot], 1)).squeeze(1)


def read(file: str) -> pd.DataFrame:
    """The rows of a file; the labels of the test file end in a dot."""
    table = pd.read_csv(file, header=None, names=COLUMNS, skipinitialspace=True, na_values="?", comment="|")
    return table.assign(income=(table.income.str.rstrip(".") == ">50K").astype("float32"))


def codes(fit: pd.DataFrame, tables: list[pd.DataFrame]) -> tuple[list[list[np.ndarray]], list[int]]:
    """For each table the codes of each column: 0 missing, 1 unknown or rare, 2 and up known; and the number of codes."""
    found: list[list[np.ndarray]] = [[] for _ in tables]
    sizes = []
    for column in CATEGORY:
        counts = fit[column].value_counts()
        known = {value: code + 2 for code, value in enumerate(sorted(counts[counts >= MIN_COUNT].index))}
        sizes.append(len(known) + 2)
        for mine, table in zip(found, tables, strict=True):
            mine.append(table[column].map(known).fillna(1).where(table[column].notna(), 0).to_numpy(np.int64))
    return found, sizes


def main(train_file: str, test_file: str, epochs: int, model: str) -> dict[str, float]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    everything, test = read(train_file), read(test_file)
    train, valid = train_test_split(everything, test_size=0.1, stratify=everything.income, random_state=0)
    scale = QuantileTransformer(n_quantiles=128, output_distribution="normal", random_state=0).fit(train[NUMERIC])
    coded, sizes = codes(train, [train, valid, test])
    numbers = [torch.tensor(scale.transform(table[NUMERIC]), dtype=torch.float32) for table in (train, valid, test)]
    (x_train, x_valid, x_test), (c_train, c_valid, c_test) = numbers, (torch.tensor(np.stack(c, 1)) for c in coded)
    y_train, y_valid, y_test = (torch.tensor(table.income.to_numpy()) for table in (train, valid, test))

    net = Net(sizes)
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.001, weight_decay=0.01)
    batches = -(-len(y_train) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * batches)
    best, weights = float("inf"), net.state_dict()
    for _ in range(epochs):
        net.train()
        for index in torch.randperm(len(y_train)).split(BATCH):
            loss = functional.binary_cross_entropy_with_logits(net(x_train[index], c_train[index]), y_train[index])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        net.eval()
        with torch.inference_mode():
            reached = functional.binary_cross_entropy_with_logits(net(x_valid, c_valid), y_valid).item()
        if reached < best:
            best, weights = reached, {name: tensor.clone() for name, tensor in net.state_dict().items()}

    net.load_state_dict(weights)
    net.eval()
    with torch.inference_mode():
        trained = torch.sigmoid(net(x_test, c_test)).numpy()
    rows = torch.export.Dim("rows")
    shapes = {"numeric": {0: rows}, "category": {0: rows}}
    names = {"input_names": ["numeric", "category"], "output_names": ["probability"]}
    sample = (x_test[:3], c_test[:3])
    torch.onnx.export(net, sample, model, dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False, **names)
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    logits = session.run(None, {"numeric": x_test.numpy(), "category": c_test.numpy()})[0]
    difference = float(np.abs(1 / (1 + np.exp(-logits)) - trained).max())
    if difference > 1e-5:
        raise ValueError(f"the exported model differs by {difference}")
    truth = y_test.numpy()
    return {
        "accuracy": accuracy_score(truth, trained > 0.5),
        "f1": f1_score(truth, trained > 0.5),
        "roc_auc": roc_auc_score(truth, trained),
        "log_loss": log_loss(truth, trained),
        "difference": difference,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])))
