"""The client of rapidocr-onnxruntime as it is, and with the recognition model that a block of docs/python.md optimizes: the
same text, and how long the client itself says that recognition took. Run in a folder of its own: python ocr_client.py ROOT"""
import pathlib
import re
import statistics
import sys

import rapidocr_onnxruntime

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tools"))
from demo import render_page  # noqa: E402

page = render_page()
block = re.search(r"## Models inside of packages.*?```python\n(.*?)```", (root / "docs/python.md").read_text(), re.S)[1]
before = rapidocr_onnxruntime.RapidOCR()
names = {}
exec(block, names)
clients = {"stock": before, "optimized": names["client"]}


def read(client):
    lines, seconds = client(page)
    return [line[1] for line in lines], seconds[2]  # detection, orientation, recognition


texts = {side: read(client)[0] for side, client in clients.items()}
assert len(texts["stock"]) >= 6 and texts["stock"] == texts["optimized"], texts
times = {side: [] for side in clients}
for turn in range(8):
    for side in sorted(clients, reverse=turn % 2 == 1):
        times[side].append(read(clients[side])[1])
stock, optimized = (statistics.median(times[side]) * 1e3 for side in clients)
print(f"equal text; recognition {stock:.0f} ms, now {optimized:.0f} ms: {stock / optimized:.2f}x as fast")
sys.exit(0 if optimized < stock else f"not faster: {times}")
