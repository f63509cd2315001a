import { once } from 'node:events'
import { CursorStream } from '../../../shared/cluster/journal/cursor-stream.ts'
import type { FrameCursor } from '../../../shared/cluster/journal/frame-stream.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { errorEvent } from '../../../shared/kernel/events.ts'
import { newId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT, type TenantId } from '../../../shared/kernel/tenant.ts'
import type { Run, RunExecutor } from '../../../shared/work/runs/run.ts'
import type { CancelCode } from '../../../shared/work/runs/run-identity.ts'
import type { ReportableRun, RunReport } from '../../../shared/work/runs/run-report.ts'
import { Runs, type RunsLimits } from '../../../shared/work/runs/runs.ts'
import { DONE } from '../../worker/events.ts'

/** Says one thing and ends. */
export const say: RunExecutor = async function* () {
  yield { type: 'text_delta', text: 'hi' }
  yield DONE
}

/** Runs until it is cancelled, like the engine. */
export const untilCancelled: RunExecutor = async function* (_run, signal) {
  yield { type: 'text_delta', text: 'hi' }
  if (!signal.aborted) await once(signal, 'abort')
  yield errorEvent(signal.reason as CancelCode, 'ended')
}

/** The runs of a process. `forgotten` resolves with the first run that is forgotten. */
export function setUp(
  limits: Partial<RunsLimits> = {},
  onForgotten: (run: Run) => void = () => {},
  report?: (run: ReportableRun) => RunReport,
) {
  const forgotten = Promise.withResolvers<Run>()
  const bugs: unknown[] = []
  const runs = new Runs(
    { maxLive: 10, resumeMs: 60_000, maxJournalBytes: 1e6, ...limits },
    {
      onBug: (_run, cause) => bugs.push(cause),
      onEvent: () => {},
      ...(report && { report }),
      onForgotten(run) {
        onForgotten(run)
        forgotten.resolve(run)
      },
    },
  )
  const open = (tenant: TenantId = DEFAULT_TENANT) => runs.open({ id: newId('run'), tenant, sessionId: undefined })
  return { runs, open, bugs, forgotten: forgotten.promise }
}

/** Yields events without a pause until the run is aborted. */
export const sayMuchUntilCancelled: RunExecutor = async function* (_run, signal) {
  while (!signal.aborted) yield { type: 'text_delta', text: 'x'.repeat(1_000) }
  yield errorEvent(signal.reason as CancelCode, 'ended')
}

/** Says about 1,250 bytes and ends. */
export const sayMuch: RunExecutor = async function* () {
  yield { type: 'text_delta', text: 'x'.repeat(1_000) }
  yield DONE
}

export async function readAll(cursor: FrameCursor): Promise<string> {
  let text = ''
  for await (const chunk of new CursorStream(cursor)) text += chunk.text
  return text
}

/** Returns the `AppError` that `act` throws. */
export function refusal(act: () => unknown): AppError {
  try {
    act()
  } catch (error) {
    if (error instanceof AppError) return error
  }
  throw new Error('nothing was refused')
}
