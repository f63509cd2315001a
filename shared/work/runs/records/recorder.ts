import { JournalMemory } from '../journal-memory.ts'
import type { RunFigures } from '../run-figures.ts'
import type { KeptRequest } from '../run-identity.ts'
import { MAX_CAPTURED_BYTES } from './captured-events.ts'
import { EndQueue, type EndQueueDeps } from './end-queue.ts'
import { OpenRuns, type OpenRunsDeps } from './open-runs.ts'
import type { RunFacts } from './record.ts'
import { type RecordingOwner, RunRecording } from './recording.ts'

export type RunRecorderDeps = EndQueueDeps & OpenRunsDeps

/** Records every run after it has ended. No run waits for its record (D20). */
export class RunRecorder implements RecordingOwner {
  readonly #ends: EndQueue
  readonly #open: OpenRuns
  readonly room = new JournalMemory(MAX_CAPTURED_BYTES)

  constructor(deps: RunRecorderDeps) {
    this.#ends = new EndQueue(deps)
    this.#open = new OpenRuns(deps)
  }

  begin(facts: RunFacts, figures: RunFigures, request?: KeptRequest): RunRecording {
    const recording = new RunRecording(facts, figures, this)
    if (request) recording.keep(request)
    this.#open.begin(recording)
    return recording
  }

  onEnded(recording: RunRecording): void {
    this.#open.end(recording)
    this.#ends.add(recording)
  }

  onSettled(recording: RunRecording): void {
    this.#open.close(recording)
  }

  onAbandoned(recording: RunRecording): void {
    this.#open.abandon(recording)
  }

  /** Resolves when the runs that have ended are recorded, or shortly after that time when the store does not answer. */
  async settled(): Promise<void> {
    await this.#ends.settled()
    await this.#open.settled()
  }
}
