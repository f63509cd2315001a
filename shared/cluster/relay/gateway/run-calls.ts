import { newId } from '../../../kernel/ids.ts'
import type { RunSummary } from '../../commands/runs.ts'
import type { RunPlace, RunProcesses } from '../../following/port.ts'
import { noRun } from '../../following/run-finder.ts'
import type { FrameStream } from '../../journal/frame-stream.ts'
import type { RelayedStream } from '../streams/relayed-stream.ts'
import type { RelayedStreams } from '../streams/relayed-streams.ts'
import type { CallArgs, CallResult } from '../wire/calls.ts'
import type { WorkerCalls } from './worker-calls.ts'

export type RunCallsDeps = {
  /** Whether the worker or executor of this epoch is known. */
  isKnown(epoch: number): boolean
  /** Lists the members again if this epoch is unknown, since it may have just joined. */
  discover(epoch: number): Promise<void>
  calls: Pick<WorkerCalls, 'call' | 'isWorkerLost'>
  streams: Pick<RelayedStreams, 'open'>
  /** Whether sessions outlive their worker (D32). */
  areSessionsKept: boolean
}

type RunMethod = 'getRun' | 'followRun' | 'cancelRun' | 'steerRun' | 'listFiles' | 'readFile'

/** Contains the worker's epoch, so that every gateway finds the worker without asking Redis. */
export const createRunId = (epoch: number): string =>
  `run_${epoch.toString(16).padStart(8, '0')}${newId('run').slice(-24)}`

/** Calls the worker or executor that has a run. The run of one that is not alive is unknown. */
export class RunCalls implements RunProcesses {
  readonly #deps: RunCallsDeps

  constructor(deps: RunCallsDeps) {
    this.#deps = deps
  }

  async isAlive(epoch: number): Promise<boolean> {
    const { isKnown, discover } = this.#deps
    if (isKnown(epoch)) return true
    await discover(epoch)
    return isKnown(epoch)
  }

  getRun(place: RunPlace) {
    return this.call(place, 'getRun', [place.tenant, place.runId])
  }

  /** The worker answers once the run is aborted. The run exists nowhere else, so nothing about the cancellation can be lost later. */
  cancelRun(place: RunPlace) {
    return this.call(place, 'cancelRun', [place.tenant, place.runId])
  }

  async followRun(place: RunPlace, after: number): Promise<FrameStream> {
    const { epoch, tenant, runId, isOfSession } = place
    const { number, stream } = this.#deps.streams.open(epoch, after)
    try {
      const startsAfter: number | null = await this.call(place, 'followRun', [tenant, runId, after, number])
      stream.startAfter(startsAfter ?? after) // A worker of an older release answers null.
      if (isOfSession) stream.keepSession()
      else if (this.#deps.areSessionsKept) this.#noteSession(place, stream)
      return stream
    } catch (cause) {
      await stream.return()
      throw cause
    }
  }

  /** Nobody waits for it: a stream that breaks off before the answer comes only says less. */
  #noteSession(place: RunPlace, stream: Pick<RelayedStream, 'keepSession'>): void {
    const note = ({ session_id: id }: RunSummary) => void (id !== undefined && stream.keepSession())
    this.getRun(place).then(note, () => {})
  }

  async call<M extends RunMethod>({ epoch, runId }: RunPlace, method: M, args: CallArgs<M>): Promise<CallResult<M>> {
    if (!(await this.isAlive(epoch))) throw noRun(runId)
    const { calls } = this.#deps
    try {
      return await calls.call({ epoch }, method, args)
    } catch (cause) {
      throw calls.isWorkerLost(epoch, cause) ? noRun(runId) : cause
    }
  }
}
