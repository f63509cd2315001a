import type { Random } from '../harness/seed.ts'
import type { Draft } from './draft.ts'
import { HEADER_NAMES, METHODS, nastyHeader, nastyText, nastyValue } from './nasty.ts'

/** Changes a request in one way. Returns a new draft. */
export type Mutate = (draft: Draft, random: Random) => Draft

/** Mutators by name, so that a case can be described and replayed without one of them. */
export const MUTATORS: Readonly<Record<string, Mutate>> = {
  method: (draft, random) => ({ ...draft, method: random.pick(METHODS) }),
  segment: (draft, random) => ({ ...draft, segments: replaced(draft.segments, nastySegment(random), random) }),
  moreSegments: (draft, random) => ({ ...draft, segments: inserted(draft.segments, nastySegment(random), random) }),
  fewerSegments: (draft, random) => ({ ...draft, segments: dropped(draft.segments, random) }),
  segmentEncoding: (draft, random) => {
    const at = random.between(0, draft.segments.length - 1)
    return { ...draft, segments: draft.segments.map((segment, i) => (i === at ? percentEncoded(segment) : segment)) }
  },
  query: (draft, random) => ({ ...draft, query: inserted(draft.query, nastyPair(random), random) }),
  queryTwice: (draft) => ({ ...draft, query: [...draft.query, ...draft.query] }),
  header: (draft, random) => withHeader(draft, random.pick(HEADER_NAMES), nastyHeader(random)),
  headerTwice: (draft, random) => {
    const name = random.pick(HEADER_NAMES)
    return { ...draft, headers: { ...draft.headers, [name]: [nastyHeader(random), nastyHeader(random)] } }
  },
  headerGone: (draft, random) => withHeader(draft, random.pick(['Host', 'Authorization', 'Content-Type']), undefined),
  manyHeaders: (draft, random) => {
    const more = Array.from({ length: random.between(10, 200) }, (_, i) => [`x-${i}`, nastyHeader(random).slice(0, 20)])
    return { ...draft, headers: { ...draft.headers, ...Object.fromEntries(more) } }
  },
  field: (draft, random) => withField(draft, random, () => nastyValue(random)),
  fieldGone: (draft, random) => withField(draft, random, () => undefined),
  fieldDeep: (draft, random) => withField(draft, random, (value) => nested(value, random.between(1, 70))),
  fieldLong: (draft, random) =>
    withField(draft, random, () => random.pick(['a', '😀', ' ', '\\']).repeat(random.between(1, 120_000))),
  moreFields: (draft, random) => {
    const fields = isObject(draft.body) ? draft.body : {}
    return { ...draft, body: { ...fields, [nastyText(random)]: nastyValue(random) } }
  },
  body: (draft, random) => ({ ...draft, body: nastyValue(random) }),
  bodyGone: (draft) => ({ ...draft, body: undefined }),
  bodyBytes: (draft, random) => ({ ...draft, body: corrupted(bytesOf(draft.body), random) }),
}

const QUERY_NAMES = [
  ...['limit', 'cursor', 'status', 'last_event_id', 'scope', 'entry_id', 'flow', 'since', 'until', 'speed'],
  'require_pass_rate',
]

const nastySegment = (random: Random) => encodeLoosely(nastyText(random))
const nastyPair = (random: Random) => {
  const name = random.chance(0.6) ? random.pick(QUERY_NAMES) : nastySegment(random)
  return [name, nastySegment(random)] as const
}

/** Encodes what a request line cannot hold. Percent signs stay as they are, valid or not. */
const encodeLoosely = (text: string) => text.replaceAll(/[^!-~]/gu, (char) => encodeURIComponent(char))

const percentEncoded = (text: string) =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')

const withHeader = (draft: Draft, name: string, value: string | undefined): Draft => ({
  ...draft,
  headers: { ...draft.headers, [name]: value },
})

function withField(draft: Draft, random: Random, change: (value: unknown) => unknown): Draft {
  if (!isObject(draft.body)) return { ...draft, body: change(draft.body) }
  const name = random.pick([...Object.keys(draft.body), 'prompt'])
  return { ...draft, body: { ...draft.body, [name]: change(draft.body[name]) } }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value)

function nested(value: unknown, depth: number): unknown {
  let whole = value
  for (let i = 0; i < depth; i += 1) whole = i % 2 === 0 ? [whole] : { a: whole }
  return whole
}

const bytesOf = (body: unknown) => (Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body) ?? ''))

/** Changes, removes, repeats or inserts a few bytes. */
export function corrupted(bytes: Buffer, random: Random): Buffer {
  const at = random.between(0, bytes.length)
  const some = Buffer.from([random.between(0, 255), random.between(0, 255)])
  const [head, tail] = [bytes.subarray(0, at), bytes.subarray(at)]
  return random.pick([
    () => Buffer.concat([head, some, tail]),
    () => Buffer.concat([head, some, tail.subarray(2)]),
    () => Buffer.concat([head, tail.subarray(random.between(1, 10))]),
    () => Buffer.concat([head, head.subarray(-10), tail]),
    () => head,
  ])()
}

const replaced = <T>(list: readonly T[], item: T, random: Random): T[] =>
  list.toSpliced(random.between(0, Math.max(0, list.length - 1)), 1, item)
const inserted = <T>(list: readonly T[], item: T, random: Random): T[] =>
  list.toSpliced(random.between(0, list.length), 0, item)
const dropped = <T>(list: readonly T[], random: Random): T[] => list.toSpliced(random.between(0, list.length - 1), 1)
