export type ReadRun = { runId: string; scopeId: string }
export type Frame = { seq: number; event: string; data: Record<string, unknown>; text: string }

/** The part of a run that one client has read. */
export class Reader {
  readonly runId: string
  /** The first id of the paths of its permission requests. */
  readonly scopeId: string
  seq = 0
  end: string | undefined
  failure: string | undefined

  constructor({ runId, scopeId }: ReadRun) {
    this.runId = runId
    this.scopeId = scopeId
  }

  /** Returns what is wrong with the next frame. `failure` is set for one that ends this connection alone. */
  take({ seq, event }: Frame, failure: string | undefined): string | undefined {
    if (this.end) return `frame ${seq} after the end`
    if (failure !== undefined) {
      this.failure = failure
      return seq === this.seq ? undefined : `a failure with number ${seq} after frame ${this.seq}`
    }
    this.failure = undefined
    if (seq !== this.seq + 1) return `frame ${seq} after frame ${this.seq}`
    this.seq = seq
    if (event === 'done' || event === 'error') this.end = event
    return undefined
  }
}

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
