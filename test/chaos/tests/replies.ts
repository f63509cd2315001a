import * as fc from 'fast-check'

/** Generates the bytes of replies of any type and nesting that Redis may send. */
export const reply = (): fc.Arbitrary<Buffer> => replies().reply

/** A pub/sub message as a push (RESP 3) or an array (RESP 2). */
export const messageFrame = (type: '>' | '*', channel: string, payload: Uint8Array): Buffer =>
  list(type, [bulk('message'), bulk(channel), bulk(payload)])

export const subscribedFrame = (type: '>' | '*', channel: string): Buffer =>
  list(type, [bulk('subscribe'), bulk(channel), Buffer.from(':1\r\n')])

export function bulk(text: string | Uint8Array, type = '$'): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.from(`${type}${bytes.length}\r\n`), bytes, Buffer.from('\r\n')])
}

export const list = (type: string, items: readonly Buffer[], count = items.length): Buffer =>
  Buffer.concat([Buffer.from(`${type}${count}\r\n`), ...items])

/** Splits bytes into chunks of these sizes in rotation. */
export function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  let [at, turn] = [0, 0]
  while (at < bytes.length) {
    const size = sizes[turn++ % sizes.length] ?? 1
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

/** Generates chunk sizes: mostly tiny ones, which split headers, and some larger ones. */
export const chunkSizes = (): fc.Arbitrary<number[]> =>
  fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 200 })), { minLength: 1, maxLength: 30 })

const LINES = [
  '+OK',
  '-ERR no',
  ':-12',
  ':0',
  '_',
  '#t',
  ',1.5',
  ',-inf',
  '(3492890328409238509324850943850943825024385',
  '$-1',
  '*-1',
]

function replies() {
  const text = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constantFrom('\r\n', '$3\r\n', '>1\r\n', 'message'))
  return fc.letrec<{ reply: Buffer; leaf: Buffer; pair: Buffer }>((tie) => ({
    leaf: fc.oneof(
      fc.constantFrom(...LINES).map((line) => Buffer.from(`${line}\r\n`)),
      fc.tuple(text, fc.constantFrom('$', '!', '=')).map(([value, type]) => bulk(value, type)),
    ),
    pair: fc.tuple(tie('reply'), tie('reply')).map((two) => Buffer.concat(two)),
    reply: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      tie('leaf'),
      fc
        .tuple(fc.constantFrom('*', '~'), fc.array(tie('reply'), { maxLength: 4 }))
        .map(([type, all]) => list(type, all)),
      fc.array(tie('pair'), { maxLength: 3 }).map((pairs) => list('%', pairs)),
      fc
        .tuple(fc.array(tie('pair'), { maxLength: 2 }), tie('reply'))
        .map(([pairs, behind]) => Buffer.concat([list('|', pairs), behind])),
    ),
  }))
}
