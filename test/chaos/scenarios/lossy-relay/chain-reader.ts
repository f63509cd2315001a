import { readBlock } from '../../../support/sse-blocks.ts'
import { Chain, numberOf } from './chain.ts'

/** The kinds of differences between a received and the produced stream. */
export type Fault = 'gap' | 'reordering' | 'duplicate' | 'change'

const ID = 'id: '
const EVENT = 'event: '
const DELTA = 'event: text_delta\ndata: {"text":"'
const BLOCK = 'event: text\ndata: {"text":"'
const TEXT_END = '"}'
const TERMINAL = new Set(['done', 'error', 'plan_queued'])

/** Checks what a client receives of a run, over all its connections, against the chain that the model produced. */
export class ChainReader {
  readonly faults: { fault: Fault; what: string }[] = []
  lastSeq = 0
  frames = 0
  /** The terminal event of the current connection. `repeats`: its number is that of the frame before it, as a gateway's own error has. */
  terminal: { event: string; code: string | undefined; seq: number; repeats: boolean } | undefined
  readonly #chain: Chain
  readonly #count: number
  #rest = ''
  #hasBlock = false

  constructor(name: string, count: number) {
    this.#chain = new Chain(name)
    this.#count = count
  }

  /** Whether everything was received, and `done` after it. */
  get isWhole(): boolean {
    return this.terminal?.event === 'done' && this.#chain.count === this.#count && this.#hasBlock
  }

  /** Starts a new connection that continues after `lastSeq`. An incomplete frame of the old one is dropped. */
  resume(): void {
    this.#rest = ''
    this.terminal = undefined
  }

  read(text: string): void {
    const blocks = (this.#rest + text).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const { frame } = readBlock(block)
      if (frame.startsWith(ID)) this.#frame(frame)
    }
  }

  #frame(block: string): void {
    const at = block.indexOf('\n') + 1
    const seq = Number(block.slice(ID.length, at))
    if (this.terminal) this.#report('change', `frame ${seq} after the terminal event`)
    this.frames++
    if (block.startsWith(DELTA, at)) {
      this.#number(seq)
      this.#delta(block.slice(at + DELTA.length, -TEXT_END.length))
      return
    }
    const event = block.slice(at + EVENT.length, block.indexOf('\n', at))
    // A gateway's own error repeats the last number (D4.2).
    const repeats = event === 'error' && seq === this.lastSeq
    if (TERMINAL.has(event)) this.terminal = { event, code: /"code":"(\w+)"/.exec(block)?.[1], seq, repeats }
    if (!repeats) this.#number(seq)
    if (event === 'text') this.#block(block.slice(at + BLOCK.length, -TEXT_END.length))
  }

  #number(seq: number): void {
    const text = `frame ${seq} follows frame ${this.lastSeq}`
    if (seq > this.lastSeq + 1) this.#report('gap', text)
    else if (seq === this.lastSeq) this.#report('duplicate', text)
    else if (seq < this.lastSeq) this.#report('reordering', text)
    this.lastSeq = Math.max(this.lastSeq, seq)
  }

  /** Checks the content of a piece, independently of its frame's number. */
  #delta(piece: string): void {
    const expected = this.#chain.piece
    if (piece === expected) return void this.#chain.next()
    const [number, wanted] = [numberOf(piece), this.#chain.count + 1]
    const text = `the piece ${piece.trim()} instead of ${expected.trim()}`
    if (number > wanted) this.#report('gap', text)
    else if (number === wanted - 1) this.#report('duplicate', text)
    else if (number < wanted) this.#report('reordering', text)
    else this.#report('change', text)
    while (this.#chain.count < number) this.#chain.next()
  }

  /** Checks the event at the end of a block, which repeats its whole text (D4.3). */
  #block(text: string): void {
    this.#hasBlock = true
    if (!this.#chain.makes(text)) this.#report('change', 'the block is not what its pieces make')
  }

  #report(fault: Fault, what: string): void {
    this.faults.push({ fault, what })
  }
}
