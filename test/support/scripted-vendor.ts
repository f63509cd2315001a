import type { BatchAnswer, BatchCall, Submission, VendorBatches } from '../../shared/agent/providers/batch/port.ts'
import { AppError } from '../../shared/kernel/errors.ts'

export const GOOD: BatchAnswer = { status: 200, body: { text: 'good' } }

type Sent = {
  mark: string
  calls: readonly BatchCall[]
  answers?: ReadonlyMap<string, BatchAnswer> | 'refused'
  isCancelled?: boolean
}

/** A vendor that keeps what it gets in `sent`, and answers when `answer` is called. */
export class ScriptedVendor implements VendorBatches {
  sent: Sent[] = []
  /** Of the next submissions: an `AppError` refuses one, and of another failure the vendor has it. */
  readonly fails: unknown[] = []
  /** Refuses what it returns a failure for. */
  refuses: (calls: readonly BatchCall[]) => AppError | undefined = () => undefined
  isUnsure = false
  unreadable: AppError | undefined

  async submit(calls: readonly BatchCall[], mark: string): Promise<string> {
    const [cause = this.refuses(calls)] = this.fails.splice(0, 1)
    if (!(cause instanceof AppError)) this.sent.push({ mark, calls })
    if (cause) throw cause
    return String(this.sent.length - 1)
  }

  async find({ mark }: Submission): Promise<{ id: string } | undefined | 'unsure'> {
    const at = this.sent.findIndex((each) => each.mark === mark)
    return this.isUnsure ? 'unsure' : at < 0 ? undefined : { id: String(at) }
  }

  async read(id: string) {
    if (this.unreadable) throw this.unreadable
    return this.sent[Number(id)]?.answers
  }

  async cancel(id: string): Promise<void> {
    const kept = this.sent[Number(id)]
    if (kept) kept.isCancelled = true
  }

  /** The ids of the calls in each batch. */
  get calls(): string[][] {
    return this.sent.map(({ calls }) => calls.map(({ id }) => id))
  }

  answer(at: number, answers: Sent['answers'] | readonly [string, BatchAnswer][] = this.#good(at)): void {
    const kept = this.sent[at]
    if (kept) kept.answers = answers === 'refused' ? answers : new Map(answers)
  }

  answerAll(): void {
    for (const [at, { answers }] of this.sent.entries()) if (!answers) this.answer(at)
  }

  #good(at: number): [string, BatchAnswer][] {
    return (this.calls[at] ?? []).map((id) => [id, GOOD])
  }
}
