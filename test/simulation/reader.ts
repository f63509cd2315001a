import { checkStream } from '../support/stream-grammar.ts'

export type ReadRun = { runId: string; scopeId: string }
export type Frame = { seq: number; event: string; data: Record<string, unknown>; text: string }

/** A worker reserves more numbers than this at once, and no run of a story has as many frames. */
const LONG_JUMP = 1_000

/** The part of a run that one client has read. */
export class Reader {
  readonly runId: string
  /** The first id of the paths of its permission requests. */
  readonly scopeId: string
  seq = 0
  end: string | undefined
  failure: string | undefined
  readonly #frames: Frame[] = []
  #turn = 0
  /** The turn that the last warning `run_recovered` has named. */
  #namedTurn = 0

  constructor({ runId, scopeId }: ReadRun) {
    this.runId = runId
    this.scopeId = scopeId
  }

  /** That of the last frame. */
  get code(): string {
    return String(this.#frames.at(-1)?.data['code'])
  }

  /** What is wrong with the whole of what was read. */
  get grammarProblem(): string | undefined {
    try {
      checkStream(this.#frames.map(({ seq: id, event, data }) => ({ id, event, data })))
      return undefined
    } catch (cause) {
      return String(cause)
    }
  }

  /** Returns what is wrong with the next frame. `failure` is set for one that ends this connection alone. */
  take(frame: Frame, failure: string | undefined): string | undefined {
    const { seq, event, data } = frame
    if (this.end) return `frame ${seq} after the end`
    if (failure !== undefined) {
      this.failure = failure
      return seq === this.seq ? undefined : `a failure with number ${seq} after frame ${this.seq}`
    }
    this.failure = undefined
    if (seq !== this.seq + 1 && !this.#mayJump(frame)) return `frame ${seq} after frame ${this.seq}`
    this.seq = seq
    this.#frames.push(frame)
    if (isRecovery(frame)) this.#namedTurn = (data['detail'] as { turn_number: number }).turn_number
    if (event === 'turn_start') this.#turn = Number(data['turn_number'])
    if (event === 'done' || event === 'error') this.end = event
    return undefined
  }

  /**
   * A run that goes on elsewhere leaves out the numbers that were reserved, and says so at once, or is cancelled in its pause. Behind a warning that
   * names a later turn the turns before that come without their deltas (D32.7a).
   */
  #mayJump(frame: Frame): boolean {
    if (isRecovery(frame) || frame.data['code'] === 'cancelled') return frame.seq > this.seq + LONG_JUMP
    return frame.seq > this.seq && this.#turn < this.#namedTurn
  }
}

/** A run that another worker goes on with says so. */
export const isRecovery = ({ data }: Frame): boolean => data['code'] === 'run_recovered'

/** The frames of a piece of a stream. */
export function framesOf(text: string): Frame[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('id: '))
    .map((frame) => {
      const [, seq = '', event = '', data = '{}'] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/s.exec(frame) ?? []
      return { seq: Number(seq), event, data: JSON.parse(data) as Record<string, unknown>, text: frame }
    })
}
