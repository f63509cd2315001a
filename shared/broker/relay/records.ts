/** What a record carries. A frames record's bytes are ready SSE text, which nobody on the way parses. */
export const RECORD = {
  frames: 0,
  gap: 1,
  beat: 2,
  call: 3,
  reply: 4,
  ack: 5,
  resend: 6,
  detach: 7,
  /** The stream's reader has everything up to `seq`. */
  taken: 8,
  /** How far is the stream's reader? */
  ask: 9,
} as const
export type RecordType = (typeof RECORD)[keyof typeof RECORD]

/** The last frames of a run. */
export const LAST = 1

/** A call that a worker makes: the answer goes to a worker. */
export const BY_WORKER = 1

/**
 * A piece of a message between two processes. `stream` is the receiving gateway's number for a stream, or the caller's for a
 * call; `seq` the first frame's number, or the number that the record is about.
 */
export type WireRecord = {
  type: RecordType
  stream: number
  seq: number
  count: number
  flags: number
  body: string | Uint8Array
}

/** Who sends, and how many bytes it has sent this receiver so far, this message included: what credit is counted by. */
export type Head = { epoch: number; position: number }

const HEAD_BYTES = 12
const RECORD_BYTES = 16

export const record = (
  type: RecordType,
  { stream = 0, seq = 0, count = 0, flags = 0, body = '' }: Partial<Omit<WireRecord, 'type'>> = {},
): WireRecord => ({ type, stream, seq, count, flags, body })

export const sizeOf = ({ body }: WireRecord): number =>
  RECORD_BYTES + (typeof body === 'string' ? Buffer.byteLength(body) : body.length)

/** Packs a message, little-endian: epoch u32, position f64; then per record stream u32, seq u32, count u16, type u8, flags u8, length u32, bytes. */
export function packMessage(epoch: number, sentBefore: number, records: readonly WireRecord[]): Buffer {
  const size = records.reduce((bytes, each) => bytes + sizeOf(each), HEAD_BYTES)
  const message = Buffer.allocUnsafe(size)
  message.writeUInt32LE(epoch, 0)
  message.writeDoubleLE(sentBefore + size, 4)
  let at = HEAD_BYTES
  for (const each of records) at = packRecord(message, at, each)
  return message
}

function packRecord(message: Buffer, at: number, { type, stream, seq, count, flags, body }: WireRecord): number {
  const start = at + RECORD_BYTES
  const length = typeof body === 'string' ? message.write(body, start, 'utf8') : body.length
  if (typeof body !== 'string') message.set(body, start)
  message.writeUInt32LE(stream, at)
  message.writeUInt32LE(seq, at + 4)
  message.writeUInt16LE(count, at + 8)
  message.writeUInt8(type, at + 10)
  message.writeUInt8(flags, at + 11)
  message.writeUInt32LE(length, at + 12)
  return start + length
}

export type ReceivedRecord = Omit<WireRecord, 'body' | 'type'> & { type: number; body: Buffer }

/** Walks a message without copying: bodies are views of it. Throws for a message that is cut or malformed, before or within it. */
export function readMessage(message: Buffer, visit: (record: ReceivedRecord) => void): Head {
  const head = { epoch: message.readUInt32LE(0), position: message.readDoubleLE(4) }
  let at = HEAD_BYTES
  while (at < message.length) {
    const end = at + RECORD_BYTES + message.readUInt32LE(at + 12)
    if (end > message.length) throw new RangeError('the record is longer than its message')
    visit({
      stream: message.readUInt32LE(at),
      seq: message.readUInt32LE(at + 4),
      count: message.readUInt16LE(at + 8),
      type: message.readUInt8(at + 10),
      flags: message.readUInt8(at + 11),
      body: message.subarray(at + RECORD_BYTES, end),
    })
    at = end
  }
  return head
}
