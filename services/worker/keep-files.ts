import type { UnstoredFile } from '../../shared/agent/engine/call-progress.ts'
import { type Batched, eachOf, splitEnd } from '../../shared/kernel/async/batch.ts'
import { AppError, hasKind } from '../../shared/kernel/errors.ts'
import { type AgentEvent, insteadOf, isTerminal, sessionKept, type WarningEvent } from '../../shared/kernel/events.ts'
import type { Log } from '../../shared/kernel/log.ts'
import { TooMuch } from '../../shared/work/runs/kept/scan.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import { saveFiles } from '../../shared/work/runs/save-files.ts'
import type { KeptFiles } from '../../shared/work/runs/workspaces.ts'

export type KeepFilesDeps = { kept: Pick<KeptFiles, 'save'>; log: Log }

type Folder = Pick<Run, 'id' | 'tenant' | 'workspace'>

/** How long the store may accept no file while the end of a run, or the move of a session to another worker, waits for it. */
const SAVE_WAIT_MS = 5_000

/** Passes on the events of a session's run, and stores its files before the last one. After a turn it stores them, too, but the run does not wait (D35). */
export async function* keepFiles(
  folder: Folder,
  events: AsyncIterable<Batched<AgentEvent>>,
  deps: KeepFilesDeps,
): AsyncGenerator<Batched<AgentEvent>, void, undefined> {
  let isSaving = false
  const saveBehind = async () => {
    isSaving = true
    await deps.kept.save(folder.tenant, folder.workspace).catch(() => {}) // The run stores them again at its end, and reports a failure there.
    isSaving = false
  }
  for await (const batch of events) {
    const { others, end } = splitEnd(batch, isTerminal)
    if (!end && eachOf(batch).at(-1)?.type === 'turn_end' && !isSaving) void saveBehind()
    if (others) yield others
    if (end) yield* endOf(folder, end, deps)
  }
}

async function* endOf(folder: Folder, last: AgentEvent, { kept, log }: KeepFilesDeps): AsyncGenerator<AgentEvent> {
  try {
    await inTime(folder, kept)
    yield last
  } catch (cause) {
    const isMoved = hasKind(cause, 'conflict')
    log.warn('the files of a session are not stored', { run_id: folder.id, cause })
    if (!isMoved) yield notStored(cause)
    yield isMoved && last.type !== 'error' ? insteadOf(last, sessionKept(MOVED)) : last
  }
}

/**
 * Stores the files that a tool call may have changed, before its result counts, so that another worker that continues the session has them.
 * Returns the files that could not be stored.
 */
export async function storeEffects(
  folder: Folder,
  { kept, log }: { kept: Pick<KeptFiles, 'save' | 'unstored'>; log: Log },
): Promise<readonly UnstoredFile[]> {
  try {
    await inTime(folder, kept)
    return []
  } catch (cause) {
    if (hasKind(cause, 'conflict')) return [] // Another worker has the session; the end of the run reports that.
    log.warn('the files that a tool has changed are not stored', { run_id: folder.id, cause })
    return kept.unstored(folder.tenant, folder.workspace)
  }
}

/** Stores files that a session's run could not store, before another worker takes the session. Never rejects. */
export async function keepBeforeMove(folder: Omit<Folder, 'id'>, { kept, log }: KeepFilesDeps): Promise<void> {
  await inTime(folder, kept).catch((cause: unknown) => {
    log.error('a session moves without its newest files', { folder: folder.workspace, cause })
  })
}

const inTime = ({ tenant, workspace }: Omit<Folder, 'id'>, kept: KeepFilesDeps['kept']) =>
  saveFiles(kept, { tenant, scope: workspace }, SAVE_WAIT_MS)

const MOVED =
  'another worker has taken the session over, and the files of this run are not part of it; send the message again'

const notStored = (cause: unknown): WarningEvent => ({
  type: 'warning',
  code: 'workspace_not_stored',
  message: 'the files of this session could not be stored: what this run has changed is on one server only',
  detail: {
    reason: cause instanceof AppError || cause instanceof TooMuch ? cause.message : 'internal error',
    suggestion:
      'They are stored as soon as it is possible. If the folder holds too many or too large files, delete some.',
  },
})
