import { Chain, numberOf } from './chain.ts'

/** What a client can find wrong with what it was sent. */
export type Fault = 'gap' | 'reordering' | 'duplicate' | 'change'

const ID = 'id: '
const EVENT = 'event: '
const DELTA = 'event: text_delta\ndata: {"text":"'
const BLOCK = 'event: text\ndata: {"text":"'
const TEXT_END = '"}'
const TERMINAL = new Set(['done', 'error', 'plan_queued'])

/** One client's whole view of one run, over all connections that it took, held against the chain that the model said. */
export class ChainReader {
  readonly faults: { fault: Fault; what: string }[] = []
  lastSeq = 0
  frames = 0
  /** Of the connection of now. */
  terminal: { event: string; code: string | undefined; seq: number } | undefined
  readonly #chain: Chain
  readonly #count: number
  #rest = ''
  #hasBlock = false

  constructor(name: string, count: number) {
    this.#chain = new Chain(name)
    this.#count = count
  }

  /** Did everything come that was produced, and the run's own good end behind it? */
  get isWhole(): boolean {
    return this.terminal?.event === 'done' && this.#chain.count === this.#count && this.#hasBlock
  }

  /** A new connection goes on behind `lastSeq`; half a frame of the old one is forgotten. */
  resume(): void {
    this.#rest = ''
    this.terminal = undefined
  }

  read(text: string): void {
    const blocks = (this.#rest + text).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    for (const block of blocks) if (block.startsWith(ID)) this.#frame(block)
  }

  #frame(block: string): void {
    const at = block.indexOf('\n') + 1
    const seq = Number(block.slice(ID.length, at))
    if (this.terminal) this.#blame('change', `frame ${seq} behind the terminal event`)
    this.frames++
    if (block.startsWith(DELTA, at)) {
      this.#number(seq)
      this.#delta(block.slice(at + DELTA.length, -TEXT_END.length))
      return
    }
    const event = block.slice(at + EVENT.length, block.indexOf('\n', at))
    if (TERMINAL.has(event)) this.terminal = { event, code: /"code":"(\w+)"/.exec(block)?.[1], seq }
    // The end of this reader's stream alone repeats the last number (D4.2).
    if (!(event === 'error' && seq === this.lastSeq)) this.#number(seq)
    if (event === 'text') this.#block(block.slice(at + BLOCK.length, -TEXT_END.length))
  }

  #number(seq: number): void {
    const told = `frame ${seq} follows frame ${this.lastSeq}`
    if (seq > this.lastSeq + 1) this.#blame('gap', told)
    else if (seq === this.lastSeq) this.#blame('duplicate', told)
    else if (seq < this.lastSeq) this.#blame('reordering', told)
    this.lastSeq = Math.max(this.lastSeq, seq)
  }

  /** What the model said, whatever number its frame has. */
  #delta(piece: string): void {
    const expected = this.#chain.piece
    if (piece === expected) return void this.#chain.next()
    const [number, wanted] = [numberOf(piece), this.#chain.count + 1]
    const told = `the piece ${piece.trim()} in place of ${expected.trim()}`
    if (number > wanted) this.#blame('gap', told)
    else if (number === wanted - 1) this.#blame('duplicate', told)
    else if (number < wanted) this.#blame('reordering', told)
    else this.#blame('change', told)
    while (this.#chain.count < number) this.#chain.next()
  }

  /** The block's own event repeats all of it (D4.3). */
  #block(text: string): void {
    this.#hasBlock = true
    if (!this.#chain.makes(text)) this.#blame('change', 'the block is not what its pieces make')
  }

  #blame(fault: Fault, what: string): void {
    this.faults.push({ fault, what })
  }
}
