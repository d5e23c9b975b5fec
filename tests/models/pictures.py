"""Pages and lines of text as pictures in the forms that the models' own clients make of them."""
import numpy as np
import pages
from PIL import Image


def page(index, width, height):
    """[height, width, 3] bytes: a page with words in many fonts, blurred and noisy as a camera sees it."""
    image, _ = pages.page("models", index)
    return np.asarray(Image.fromarray(image[:, :, ::-1]).resize((width, height)))


def planes(image, scale=1 / 255, mean=0.0, deviation=1.0):
    """[1, 3, height, width] float32: (image * scale - mean) / deviation, channels first."""
    numbers = (image.astype(np.float32) * scale - np.float32(mean)) / np.float32(deviation)
    return np.ascontiguousarray(numbers.transpose(2, 0, 1)[None], np.float32)


def line(index, height):
    """[1, 1, height, width] float32 in 0..1: a line of grey text, as wide as it comes."""
    image = Image.fromarray(pages.line("models", index)[0][:, :, ::-1]).convert("L")
    width = max(height, round(image.width * height / image.height))
    return (np.asarray(image.resize((width, height)), np.float32) / 255)[None, None]
