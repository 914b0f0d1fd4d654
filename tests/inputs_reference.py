"""Makes the hashes of tests/inputs.rs by another way: float32 arithmetic by rounding, in Python.

Run `python3 tests/inputs_reference.py` and compare with the constants there.
"""

import math
import struct

MASK = (1 << 64) - 1
PROJECTION, POINTS, SYMBOLS, CODES, NOISE = 4, 5, 6, 7, 8


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def bits(seed, stream, index):
    key = ((seed << 8 | stream) * 0x9E3779B97F4A7C15) & MASK
    return mix(mix((mix(key) + index * 0x9E3779B97F4A7C15) & MASK) ^ key)


def normal(seed, stream, index):
    word = bits(seed, stream, index)
    radius = ((word >> 32) + 0.5) / 4294967296
    return f32(math.sqrt(-2 * math.log(radius)) * math.cos(math.tau * ((word & 0xFFFFFFFF) / 4294967296)))


def uniform(seed, stream, index):
    return ((bits(seed, stream, index) >> 12) + 0.5) / (1 << 52)


def below(seed, stream, index, count):
    return ((bits(seed, stream, index) >> 32) * count) >> 32


def norm(x):
    total = 0.0
    for value in x:
        total = f32(total + f32(value * value))
    return f32(math.sqrt(total))


def unit(x):
    length = norm(x)
    return [f32(value / length) for value in x]


def add_scaled(y, weight, x):
    return [f32(a + f32(weight * b)) for a, b in zip(y, x)]


def normals(seed, stream, block, start, count):
    return [normal(seed, stream, (block << 40) + start + i) for i in range(count)]


def queries_and_keys(directions, sharpness):
    keys = []
    for row in directions:
        scale = f32(1 / norm(row))
        keys += [f32(x * scale) for x in row]
    return [f32(x * sharpness) for x in keys], keys


def fnv(values):
    word = 0xCBF29CE484222325
    for byte in struct.pack(f"<{len(values)}f", *values):
        word = ((word ^ byte) * 0x100000001B3) & MASK
    return word


def points(seed=7, n=50, d=8, clusters=5, tightness=f32(0.7), sharpness=3.0):
    centres = [unit(normals(seed, POINTS, 0, which * d, d)) for which in range(clusters)]
    rows = []
    for i in range(n):
        centre = centres[below(seed, POINTS, (1 << 40) + i, clusters)]
        scatter = [f32(x * f32(1 - tightness)) for x in unit(normals(seed, POINTS, 2, i * d, d))]
        rows.append(unit(add_scaled(scatter, tightness, centre)))
    q, k = queries_and_keys(rows, sharpness)
    return q * 2 + k + [x for row in rows for x in row]


def duplication(seed=7, n=21, d=8, heads=2, noise=0.25, sharpness=3.0):
    period = n // 2
    word = lambda at: 1 + below(seed, SYMBOLS, at, 127)
    half = [0] + [word(at) for at in range(1, period)]
    symbols = half + half + [word(period)]
    print("symbols", symbols)
    codes = normals(seed, CODES, 0, 0, 128 * 32)
    codes = [unit(codes[s * 32 : s * 32 + 32]) for s in range(128)]
    v = [x for i in range(n) for x in codes[symbols[i + 1] if i + 1 < n else 0]]
    rows = []
    for head in range(heads):
        tables = [normals(seed, PROJECTION, head << 8 | place, 0, 128 * d) for place in range(4)]
        for i in range(n):
            row = [0.0] * d
            for place, weight in enumerate([1.0, 0.7, 0.49, 0.343]):
                if i >= place:
                    at = symbols[i - place] * d
                    row = add_scaled(row, f32(weight), unit(tables[place][at : at + d]))
            scale = f32(f32(noise) / f32(math.sqrt(d)))
            rows.append(add_scaled(unit(row), scale, normals(seed, NOISE, head, i * d, d)))
    q, k = queries_and_keys(rows, sharpness)
    return q + k + v


def picture(seed=7, d=5, heads=2, position=f32(0.6), sharpness=3.0):
    """6 x 4 pixels in 3 x 2 patches of 2 x 2."""
    pixel = lambda x, y: [x * 40, y * 60, x * y * 17]
    patches = [(row, col) for row in range(2) for col in range(3)]
    inside = [(y, x) for y in range(2) for x in range(2)]
    v = [[f32(c / 255) for y, x in inside for c in pixel(col * 2 + x, row * 2 + y)] for row, col in patches]
    mean = []
    for channel in range(12):
        total = 0.0
        for patch in v:
            total += patch[channel]
        mean.append(f32(total / 6))
    centred = [[f32(x - m) for x, m in zip(patch, mean)] for patch in v]
    square = 0.0
    for patch in centred:
        for x in patch:
            square += x * x
    weight = f32(f32(1 / f32(math.sqrt(square / 6))) / f32(math.sqrt(d)))
    strength = f32(position * f32(math.sqrt(f32(2 / d))))
    step = 1 / (0.15 * 3)
    rows = []
    for head in range(heads):
        projection = normals(seed, PROJECTION, head * 2, 0, 12 * d)
        block = head * 2 + 1
        frequency = normals(seed, PROJECTION, block, 0, 2 * d)
        phase = [uniform(seed, PROJECTION, (block << 40) + 2 * d + i) * math.tau for i in range(d)]
        for (row, col), patch in zip(patches, centred):
            direction = [0.0] * d
            for channel, x in enumerate(patch):
                direction = add_scaled(direction, f32(x * weight), projection[channel * d : channel * d + d])
            for i in range(d):
                a, b = row * step * frequency[i] + phase[i], col * step * frequency[d + i]
                cosines = f32(f32(math.cos(a)) * f32(math.cos(b)))
                sines = f32(f32(math.sin(a)) * f32(math.sin(b)))
                direction[i] = f32(direction[i] + f32(strength * f32(cosines - sines)))
            rows.append(direction)
    q, k = queries_and_keys(rows, sharpness)
    return q + k + [x for patch in v for x in patch]


for make in (points, duplication, picture):
    print(make.__name__, hex(fnv(make())))
