import { PROTOCOL } from '../../members/members.ts'

/** The record types. The body of a `frames` or `piece` record is SSE text that is passed through unparsed. */
export const RECORD = {
  frames: 0,
  /** The worker no longer has the next frame of the stream. */
  gap: 1,
  /** The heartbeat: number and position of each stream that the sender has open (three u32 each). */
  beat: 2,
  call: 3,
  reply: 4,
  /** Acknowledges bytes for the sender's credit (credit.ts). */
  ack: 5,
  /** Asks for everything after a position again: frame `seq`, and `count` pieces of the next one. */
  resend: 6,
  /** The stream has no reader any more. */
  detach: 7,
  /** The stream's client has read everything up to a position: frame `seq`, and `count` pieces of the next one. */
  readPosition: 8,
  /** Asks for the read position of the stream's client. */
  askReadPosition: 9,
  /** Piece number `count`, from 0, of the large frame `seq`. */
  piece: 10,
  /** A repeated call is being carried out; its answer will come. */
  working: 11,
} as const
export type RecordType = (typeof RECORD)[keyof typeof RECORD]

/** Flag of a `frames` or `piece` record: it contains the run's last frame. A record without a frame means that the run ended with frame `seq - 1`. */
export const LAST = 1

/** Flag of a `piece` record: it is the last piece of the frame. */
export const END_OF_FRAME = 2

/** Flag of a `call` record: the caller is a worker, so the reply goes to a worker's channel. */
export const BY_WORKER = 1

/**
 * One part of a message between two processes. `stream` is the gateway's number for a stream, or the caller's number for a call.
 * `seq` is the number of the first frame in the body, or the frame number that the record is about. Numbers out of range
 * (`stream` and `seq` u32, `count` u16, `type` and `flags` u8) make `packMessage` throw.
 */
export type WireRecord = {
  type: RecordType
  stream: number
  seq: number
  count: number
  flags: number
  body: string | Uint8Array
}

/** A message, call or answer that this process cannot read: it is dropped and counted. */
export class MalformedMessage extends Error {}

/** The sender's epoch, and how many bytes it has sent to this receiver, including this message: the position that credit counts. */
export type Head = { epoch: number; position: number }

/** Size of one stream in a heartbeat. */
export const BEAT_BYTES = 12

const HEAD_BYTES = 13
const RECORD_BYTES = 16

export const record = (
  type: RecordType,
  { stream = 0, seq = 0, count = 0, flags = 0, body = '' }: Partial<Omit<WireRecord, 'type'>> = {},
): WireRecord => ({ type, stream, seq, count, flags, body })

export const sizeOf = ({ body }: WireRecord): number => RECORD_BYTES + Buffer.byteLength(body)

/**
 * Packs a message, little-endian: version u8, epoch u32, position f64, then for each record stream u32, seq u32, count u16, type u8, flags u8,
 * body length u32, body. Throws `RangeError` for a number that does not fit.
 */
export function packMessage(epoch: number, sentBefore: number, records: readonly WireRecord[]): Buffer {
  const size = records.reduce((bytes, each) => bytes + sizeOf(each), HEAD_BYTES)
  const message = Buffer.allocUnsafe(size)
  message.writeUInt8(PROTOCOL.max, 0)
  message.writeUInt32LE(epoch, 1)
  message.writeDoubleLE(sentBefore + size, 5)
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

/** Reads a message. Bodies are views of it, not copies. Throws `MalformedMessage` for another version or a truncated message. */
export function readMessage(message: Buffer, visit: (record: ReceivedRecord) => void): Head {
  if (message.length < HEAD_BYTES) throw new MalformedMessage('the message is shorter than its head')
  if (message[0] !== PROTOCOL.max) throw new MalformedMessage('the message is of another version')
  const head = { epoch: message.readUInt32LE(1), position: message.readDoubleLE(5) }
  let at = HEAD_BYTES
  while (at < message.length) {
    if (at + RECORD_BYTES > message.length) throw new MalformedMessage('the record is shorter than its head')
    const end = at + RECORD_BYTES + message.readUInt32LE(at + 12)
    if (end > message.length) throw new MalformedMessage('the record is longer than its message')
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
