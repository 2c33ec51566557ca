"""Ed25519 (RFC 8032), strict."""
import functools
import hashlib

P = 2 ** 255 - 19
L = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
NEUTRAL = (0, 1, 1, 0)


def add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    m, n, o, q = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P, 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = n - m, q - o, q + o, n + m
    return e * f % P, g * h % P, f * g % P, e * h % P


def point(data):
    """The point that 32 bytes encode, or None. Another encoding of a point is none."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if len(data) != 32 or y >= P:
        return None
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P != u:
        x = x * ROOT % P
    if v * x * x % P != u or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def encoded(p):
    inverse = pow(p[2], P - 2, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def small_order(p):
    for _ in range(3):
        p = add(p, p)
    return p[0] % P == 0 and (p[1] - p[2]) % P == 0


def multiples(p):
    """For each of 64 hexadecimal digits of a scalar, the multiples of p that it can stand for."""
    table = []
    for _ in range(64):
        row = [NEUTRAL]
        for _ in range(15):
            row.append(add(row[-1], p))
        table.append(row)
        p = add(row[-1], p)
    return table


def accumulate(total, table, scalar):
    for row in table:
        if scalar & 15:
            total = add(total, row[scalar & 15])
        scalar >>= 4
    return total


@functools.lru_cache(maxsize=8)
def key_table(key):
    """The multiples of a key's opposite; None when the key is none."""
    p = point(key)
    return None if p is None or small_order(p) else multiples((P - p[0], p[1], 1, P - p[3]))


@functools.lru_cache(maxsize=1)
def base_table():
    return multiples(point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")))


def signed(key, signature, message):
    table, r, s = key_table(key), signature[:32], int.from_bytes(signature[32:], "little")
    start = point(r)
    if len(signature) != 64 or table is None or s >= L or start is None or small_order(start):
        return False
    k = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % L
    return encoded(accumulate(accumulate(NEUTRAL, base_table(), s), table, k)) == r
