import type { Random } from '../harness/seed.ts'
import type { Draft } from './draft.ts'
import { corrupted, type Mutate } from './mutators.ts'

const HEAD_END = Buffer.from('\r\n\r\n')

/** Mutators of the encoded bytes. After all but `chunks`, client and server may disagree where the request ends. */
export const WIRE_MUTATORS: Readonly<Record<string, Mutate>> = {
  chunks: (draft, random) => wired(draft, (bytes) => chunked(bytes, random.between(1, 40)), draft.isFramed),
  badChunks: (draft, random) => wired(draft, (bytes) => corrupted(chunked(bytes, random.between(1, 40)), random)),
  bytes: (draft, random) => wired(draft, (bytes) => corrupted(bytes, random)),
  headBytes: (draft, random) => wired(draft, (bytes) => corruptedHead(bytes, random)),
  lineFeeds: (draft) =>
    wired(draft, (bytes) => Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')),
  length: (draft, random) => wired(draft, (bytes) => otherLength(bytes, random.between(0, 300))),
  cut: (draft, random) => wired(draft, (bytes) => bytes.subarray(0, random.between(1, bytes.length))),
  twice: (draft) => wired(draft, (bytes) => Buffer.concat([bytes, bytes])),
}

const wired = (draft: Draft, mutate: (bytes: Buffer) => Buffer, isFramed = false): Draft => ({
  ...draft,
  wire: [...draft.wire, mutate],
  isFramed,
})

function chunked(bytes: Buffer, size: number): Buffer {
  const [head, body] = split(bytes)
  const lines = head.split('\r\n').filter((line) => !/^(content-length|transfer-encoding):/i.test(line))
  const parts: Buffer[] = [Buffer.from(`${[...lines, 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n`, 'latin1')]
  const step = Math.max(size, Math.ceil(body.length / 200))
  for (let at = 0; at < body.length; at += step) {
    const part = body.subarray(at, at + step)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

function corruptedHead(bytes: Buffer, random: Random): Buffer {
  const [head, body] = split(bytes)
  return Buffer.concat([corrupted(Buffer.from(head, 'latin1'), random), HEAD_END, body])
}

function otherLength(bytes: Buffer, length: number): Buffer {
  const [head, body] = split(bytes)
  const lines = head.split('\r\n').filter((line) => !/^content-length:/i.test(line))
  return Buffer.concat([Buffer.from([...lines, `Content-Length: ${length}`].join('\r\n'), 'latin1'), HEAD_END, body])
}

function split(bytes: Buffer): [head: string, body: Buffer] {
  const end = bytes.indexOf(HEAD_END)
  if (end < 0) return [bytes.toString('latin1'), Buffer.alloc(0)]
  return [bytes.toString('latin1', 0, end), bytes.subarray(end + HEAD_END.length)]
}
