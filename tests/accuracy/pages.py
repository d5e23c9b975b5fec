"""Text as cameras and scanners see it: lines and pages rendered in many fonts, with noise, tint, blur and rotation."""
import math
import os

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from task import random_of

FOLDERS = ("/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/truetype/liberation",
           "/usr/share/fonts/truetype/liberation2")
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif", "DejaVuSerif-Bold", "LiberationSans-Regular",
         "LiberationSans-Bold", "LiberationSans-Italic", "LiberationMono-Regular", "LiberationSerif-Regular",
         "LiberationSerif-Bold", "LiberationSerif-Italic")
WORDS = """the of a to in is and that was for it with as his on be at by this had not are but from or have an they which
one you were all her she there would their we him been has when who will no more if out so up said what its about than
into them can only other time new some could these two may first then do any like my now over such our man even most made
after also did many off before must well back through years much where your way down should because long each just state
those people too mister how little good world make very year still see own work men day get here old life both between
being under three never know same last another while us might great go come since against right came take used himself
few house use place during high without again home around small however found water school every number part system
report invoice total order street city customer delivery payment account window engine garden river mountain bridge
library museum station airport ticket journey weather morning evening winter summer kitchen market music letter
picture question answer machine network signal memory kernel vector matrix tensor energy pressure surface quality""".split()


def font(name, size):
    for folder in FOLDERS:
        if os.path.exists(f"{folder}/{name}.ttf"):
            return ImageFont.truetype(f"{folder}/{name}.ttf", size)
    raise FileNotFoundError(f"{name}.ttf (packages fonts-dejavu-core and fonts-liberation)")


def phrase(random, words):
    """Mostly words; now and then what invoices and forms hold."""
    text = []
    for _ in range(words):
        kind = random.random()
        if kind < 0.8:
            word = random.choice(WORDS)
            text.append(word.capitalize() if random.random() < 0.15 else word)
        elif kind < 0.87:
            text.append(f"{random.randrange(1, 10**random.randrange(1, 6))}")
        elif kind < 0.93:
            text.append(f"{random.randrange(1, 9999):,}.{random.randrange(100):02d}")
        elif kind < 0.97:
            text.append(f"{random.choice('ABCDEFGHKMNPRSTW')}{random.randrange(10, 999)}-{random.randrange(10, 99)}")
        else:
            text.append(f"{random.randrange(1, 29):02d}.{random.randrange(1, 13):02d}.{random.randrange(1990, 2030)}")
    return " ".join(text)


def colours(random):
    """Ink and paper with enough contrast to be read; one in eight is light on dark."""
    paper = [random.randrange(205, 256) for _ in range(3)]
    ink = [random.randrange(0, 90) for _ in range(3)]
    return (tuple(paper), tuple(ink)) if random.random() < 0.125 else (tuple(ink), tuple(paper))


def worn(image, random):
    """Blur and sensor noise; BGR bytes as OpenCV loads them."""
    if random.random() < 0.4:
        image = image.filter(ImageFilter.GaussianBlur(random.uniform(0.3, 1.0)))
    pixels = np.asarray(image).astype(np.float32)
    noise = np.random.default_rng(random.randrange(2**32)).standard_normal(pixels.shape, dtype=np.float32)
    pixels += noise * random.choice((0, 2, 5, 9, 14))
    return np.clip(pixels, 0, 255).astype(np.uint8)[:, :, ::-1].copy()


def line(split, index):
    """One line of text, cut out as a detector would: (image, text, upside down?)."""
    random = random_of("line", split, index)
    text = phrase(random, random.randrange(1, 7))
    face = font(random.choice(FONTS), random.randrange(16, 46))
    left, top, right, bottom = face.getbbox(text)
    margin = random.randrange(2, 7)
    ink, paper = colours(random)
    image = Image.new("RGB", (right - left + 2 * margin, bottom - top + 2 * margin), paper)
    ImageDraw.Draw(image).text((margin - left, margin - top), text, font=face, fill=ink)
    if random.random() < 0.3:
        image = image.rotate(random.uniform(-1.5, 1.5), Image.Resampling.BICUBIC, expand=True, fillcolor=paper)
    turned = random.random() < 0.2
    if turned:
        image = image.transpose(Image.Transpose.ROTATE_180)
    return worn(image, random), text, turned


def turn(points, degrees, width, height):
    """Where PIL's rotate about the middle of the image brings points."""
    angle = math.radians(-degrees)
    x, y = points[:, 0] - width / 2, points[:, 1] - height / 2
    return np.stack([x * math.cos(angle) - y * math.sin(angle) + width / 2,
                     x * math.sin(angle) + y * math.cos(angle) + height / 2], axis=1)


def page(split, index):
    """A page of 8 to 14 lines: (image, [(corners, text), ...])."""
    random = random_of("page", split, index)
    width, height = random.choice(((960, 640), (800, 736), (1024, 768)))
    ink, paper = colours(random)
    image = Image.new("RGB", (width, height), paper)
    draw, truth, y = ImageDraw.Draw(image), [], random.randrange(30, 50)
    while True:
        face = font(random.choice(FONTS), random.randrange(16, 38))
        text, x = phrase(random, random.randrange(1, 8)), random.randrange(30, 160)
        left, top, right, bottom = draw.textbbox((x, y), text, font=face)
        if bottom > height - 30:
            break
        if right <= width - 20:
            draw.text((x, y), text, font=face, fill=ink)
            corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)
            truth.append((corners, text))
            y = bottom + random.randrange(14, 40)
    degrees = random.choice((0, 0, random.uniform(-3, 3)))
    if degrees:
        image = image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=paper)
        truth = [(turn(corners, degrees, width, height), text) for corners, text in truth]
    return worn(image, random), truth
