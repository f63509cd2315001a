import type { Random } from '../harness/seed.ts'

const KNOWN_SHARE = 0.6
const MAX_CHARS = 40
/** Code point ranges of random characters: ASCII, Latin-1, combining marks, blanks and controls, East Asia, emoji. */
const RANGES = [
  [0x20, 0x7e],
  [0xa0, 0xff],
  [0x300, 0x36f],
  [0x2000, 0x206f],
  [0x4e00, 0x4e80],
  [0x1f600, 0x1f64f],
] as const

/** A text from the list, or a random one. */
export function nastyText(random: Random): string {
  if (random.chance(KNOWN_SHARE)) return random.pick(NASTY_TEXTS)
  const [from, to] = random.pick(RANGES)
  const chars = Array.from({ length: random.between(1, MAX_CHARS) }, () => random.between(from, to))
  return String.fromCodePoint(...chars)
}

/** A text that HTTP allows in a header. */
export function nastyHeader(random: Random): string {
  const text = nastyText(random)
  return /^[\t\x20-\x7e\xa0-\xff]*$/.test(text) ? text : encodeURIComponent(text)
}

/** A JSON value of any kind. */
export function nastyValue(random: Random): unknown {
  if (random.chance(KNOWN_SHARE)) return random.pick(NASTY_VALUES)
  return random.pick([
    () => nastyText(random),
    () => random.between(-1_000, 1_000),
    () => (random.next() - 0.5) * 10 ** random.between(-300, 300),
    () => [nastyText(random), random.between(0, 9)],
    () => ({ [nastyText(random)]: nastyText(random) }),
  ])()
}

/** Texts that are known to cause errors in software. None holds a line break, so that all are valid in a header. */
const NASTY_TEXTS: readonly string[] = [
  '',
  ' ',
  '.',
  '..',
  '../../../../etc/passwd',
  '%2e%2e%2f',
  '%00',
  '%',
  '%ff',
  '%E0%A4%A',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  'NaN',
  '-1',
  '0',
  '1e400',
  '9'.repeat(40),
  '0x7fffffff',
  'a'.repeat(129),
  'a'.repeat(5_000),
  '{"$gt":""}',
  '[object Object]',
  "' OR 1=1 --",
  '<script>alert(1)</script>',
  '${7*7}{{7*7}}',
  '$(id)`id`',
  '*',
  '(a+)+$',
  '\t',
  'é',
  '\u00ff\u00fe',
  'a,b;c=d"e"',
  'bytes=0-0,-1',
  'Bearer Bearer',
  'application/json; charset=utf-7',
  'chunked',
  'close',
  'upgrade',
  '127.0.0.1:0',
]

const NASTY_VALUES: readonly unknown[] = [
  ...NASTY_TEXTS,
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  -1e-308,
  2 ** 53,
  -(2 ** 31),
  [],
  {},
  [null],
  [[[[[]]]]],
  { $where: '1' },
  { constructor: { prototype: { x: 1 } } },
  '\u0000',
  'a\nb\r\nc',
  '\ud800',
  '\u202e\u200b\ufeff',
  '😀'.repeat(200),
  '\u0301'.repeat(500),
  '/sleep x',
  '/fail provider_auth',
  '/fail constructor',
  '/tool Read {"path":"/etc/passwd"}',
  '/tool nothing {}',
  '/tool',
  '/think x',
  'data: x\n\nevent: done\ndata: {}\n\n',
  Array.from({ length: 300 }, (_, i) => i),
]

export const METHODS: readonly string[] = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'M-SEARCH',
  'QUERY',
  'get',
  'X',
]

export const HEADER_NAMES: readonly string[] = [
  'Host',
  'Origin',
  'Authorization',
  'Content-Type',
  'Content-Encoding',
  'Accept',
  'Accept-Encoding',
  'Connection',
  'Upgrade',
  'Expect',
  'X-Request-ID',
  'X-Forwarded-For',
  'X-HTTP-Method-Override',
  'Last-Event-ID',
  'If-None-Match',
  'If-Modified-Since',
  'If-Match',
  'FuzzTarget',
  'Cookie',
  'TE',
  'Trailer',
  'Access-Control-Request-Method',
  'Idempotency-Key',
  '__proto__x',
  'constructor',
]
