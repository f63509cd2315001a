export type Violation = { rule: string; what: string }

/** The promises to clients, and the first violation of one. It ends a simulation. */
export class Checker {
  readonly #nowMs: () => number
  readonly #story: string[] = []
  #violation: Violation | undefined
  /** The frames of each run that any reader has seen, by number. */
  readonly #frames = new Map<string, Map<number, string>>()
  /** The last frame of each run that has ended. */
  readonly #ends = new Map<string, { seq: number; event: string }>()
  readonly #effects = new Map<string, string>()
  /** For each permission request, the reply whose client was told that it decided. */
  readonly #winners = new Map<string, { by: string; allow: boolean }>()
  /** For each permission request, whether the engine has run the tool. */
  readonly #acted = new Map<string, boolean>()
  /** The prompts of starts that were refused, and those that a model was asked. */
  readonly #refused = new Set<string>()
  readonly #asked = new Set<string>()
  readonly #waits = new Map<number, { what: string; since: number }>()
  #lastWait = 0
  /** Whether a run has gone on at another worker. */
  hasMovedRun = false

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  get violation(): Violation | undefined {
    return this.#violation
  }

  get story(): readonly string[] {
    return this.#story
  }

  say(what: string): void {
    this.#story.push(`${(this.#nowMs() / 1000).toFixed(3).padStart(8)} s  ${what}`)
  }

  violate(rule: string, what: string): void {
    if (this.#violation) return
    this.#violation = { rule, what }
    this.say(`VIOLATED: ${rule}: ${what}`)
  }

  /** A reader has received this frame of a run. Readers of one run see the same frames, and nothing after its end. */
  frame(runId: string, { seq, text, event }: { seq: number; text: string; event: string }): void {
    const frames = this.#frames.get(runId) ?? new Map<number, string>()
    this.#frames.set(runId, frames)
    const seen = frames.get(seq)
    if (seen !== undefined && seen !== text)
      this.violate('a frame never changes', `frame ${seq} of ${runId} was ${seen.trim()} and then ${text.trim()}`)
    frames.set(seq, text)
    const end = this.#ends.get(runId)
    if (end && seq > end.seq)
      this.violate('nothing comes after the end', `frame ${seq} of ${runId} after its end ${end.seq}`)
    if (event === 'done' || event === 'error') this.#ends.set(runId, { seq, event })
  }

  endOf(runId: string): string | undefined {
    return this.#ends.get(runId)?.event
  }

  /** A tool has acted. A call acts once, and never in a process that others have replaced. */
  effect(key: string, by: string, isMember: boolean): void {
    const earlier = this.#effects.get(key)
    if (earlier !== undefined) this.violate('a call acts once', `${key} at ${earlier} and at ${by}`)
    this.#effects.set(key, by)
    if (!isMember) this.violate('a process that was evicted does not act', `${key} at ${by}`)
  }

  /** A client was told that the start with this prompt was refused. */
  refused(key: string): void {
    this.#refused.add(key)
    if (this.#asked.has(key)) this.violate('what was refused did not happen', `${key} had reached the model`)
  }

  /** A model is asked this prompt. */
  asked(key: string, by: string): void {
    this.#asked.add(key)
    if (this.#refused.has(key)) this.violate('what was refused did not happen', `${key} reaches the model at ${by}`)
  }

  /** A client was told that its reply has decided the request. */
  decided(requestId: string, reply: { by: string; allow: boolean }): void {
    const earlier = this.#winners.get(requestId)
    if (earlier) this.violate('one reply decides', `${requestId} was decided by ${earlier.by} and by ${reply.by}`)
    this.#winners.set(requestId, reply)
    this.#compare(requestId)
  }

  /** The engine has gone on with this decision. */
  acted(requestId: string, allow: boolean): void {
    this.#acted.set(requestId, allow)
    this.#compare(requestId)
  }

  #compare(requestId: string): void {
    const [reply, acted] = [this.#winners.get(requestId), this.#acted.get(requestId)]
    if (reply && acted !== undefined && reply.allow !== acted)
      this.violate('the engine acts on the reply', `${requestId}: ${reply.by} said ${reply.allow}, the engine ${acted}`)
  }

  /** A client waits for an answer. Returns the function to call when it has come, or can come no more. */
  waits(what: string): () => void {
    const id = ++this.#lastWait
    this.#waits.set(id, { what, since: this.#nowMs() })
    return () => this.#waits.delete(id)
  }

  /** Nobody may wait any more. */
  atEnd(): void {
    for (const { what, since } of this.#waits.values())
      this.violate('everybody is answered', `${what} waits since ${(since / 1000).toFixed(3)} s`)
  }
}
