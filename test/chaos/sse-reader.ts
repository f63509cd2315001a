import { createHash } from 'node:crypto'
import { readBlock } from '../support/sse-blocks.ts'

/** A received frame. `digest` covers all its bytes. */
export type SseFrame = { seq: number; event: string; data: Record<string, unknown>; digest: string }

const FRAME = /^id: (\d+)\nevent: ([a-z_]+)\ndata: (.*)$/

/** Splits a stream's bytes into frames (D4.2). Throws for anything that is neither a frame nor a comment. */
export class SseReader {
  #rest = ''
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  readonly comments: string[] = []

  /** Whether a frame is incomplete. */
  get isIncomplete(): boolean {
    return readBlock(this.#rest).frame !== ''
  }

  take(bytes: Uint8Array): SseFrame[] {
    const blocks = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    return blocks.flatMap((block) => this.#read(block))
  }

  #read(block: string): SseFrame[] {
    const { comments, frame } = readBlock(block)
    this.comments.push(...comments)
    if (frame === '') return []
    const [, id, event, data] = FRAME.exec(frame) ?? []
    if (!id || !event || !data) throw new Error(`not a frame: ${frame.slice(0, 200)}`)
    return [{ seq: Number(id), event, data: JSON.parse(data) as SseFrame['data'], digest: digestOf(frame) }]
  }
}

const DIGEST_CHARS = 12

const digestOf = (frame: string) => createHash('sha1').update(frame).digest('base64url').slice(0, DIGEST_CHARS)
