import { AppError } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'
import { ConfigError } from '../../shared/platform/config/config.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { Objects } from '../../shared/platform/objects/port.ts'
import type { Sweeps } from '../../shared/work/runs/kept/kept-workspaces.ts'
import { createWorkspaces, type LeaveListener, type Workspaces } from '../../shared/work/runs/workspaces.ts'

export type WorkspaceSettings = Settings['worker']['workspaces']

export type OpenedWorkspaces = { workspaces: Workspaces; close(): Promise<void> }

type Opening = {
  /** Which folders of dead processes this process removes from the store. */
  sweeps: Sweeps
  /** Called when this process stops using the folder of a session, plan or run, because that has ended or continues elsewhere. */
  onLeft?: LeaveListener | undefined
  log: Log
}

const MAX_FILES = 10_000
/** How many files are copied to or from the store at a time. */
const TRANSFERS = 16

/** Opens the folders of a process: in a folder that the processes share, or kept in a store (D35). */
export async function openWorkspaces(
  settings: WorkspaceSettings,
  { sweeps, onLeft, log }: Opening,
): Promise<OpenedWorkspaces> {
  const { workspaceDir, workspaceQuotaBytes: maxBytes } = settings
  const objects = await openWorkspaceStore(settings)
  if (!objects) {
    if (!('storedMs' in sweeps))
      return { workspaces: createWorkspaces(workspaceDir, { onLeft }), close: async () => {} }
    const workspaces = createWorkspaces(workspaceDir, { storedMs: sweeps.storedMs, onLeft })
    const stop = startSweep(workspaces, log)
    return { workspaces, close: async () => stop() }
  }
  await checkStore(objects, log)
  const { openKeptWorkspaces } = await import('../../shared/work/runs/kept/kept-workspaces.ts')
  const { Gate } = await import('../../shared/work/runs/kept/gate.ts')
  const parts = { objects, limits: { maxBytes, maxFiles: MAX_FILES }, gate: new Gate(TRANSFERS), sweeps, onLeft, log }
  const workspaces = await openKeptWorkspaces(workspaceDir, parts)
  const stop = startSweep(workspaces, log)
  return {
    workspaces,
    async close() {
      stop()
      await workspaces.kept.close()
    },
  }
}

/** Opens the store that the settings name, and loads its code only then. */
export async function openWorkspaceStore(settings: WorkspaceSettings): Promise<Objects | undefined> {
  const { workspaceStore: place, workspaceStoreEndpoint: endpoint, workspaceStoreRegion: region } = settings
  const { workspaceStoreAccessKey: accessKey, workspaceStoreSecretKey: secretKey } = settings
  if (!place || accessKey === undefined || secretKey === undefined) return undefined
  const [{ openS3 }, { createEgress }] = await Promise.all([
    import('../../shared/platform/objects/s3.ts'),
    import('../../shared/platform/net/egress.ts'),
  ])
  return openS3({ ...place, endpoint, region, accessKey, secretKey }, { egress: createEgress(EGRESS) })
}

/** The operator chose the store, so it may be private. */
const EGRESS = { allowPrivate: true, idleTimeoutMs: 10_000, maxBodyBytes: Number.MAX_SAFE_INTEGER }

/** Throws `ConfigError` for a store that cannot be used. If the store does not answer, that is only logged: it may still be starting. */
async function checkStore(objects: Objects, log: Log): Promise<void> {
  try {
    const { keepsConditions } = await import('../../shared/platform/objects/check.ts')
    if (await keepsConditions(objects)) return
  } catch (cause) {
    const reason = cause instanceof AppError && cause.cause instanceof Error ? cause.cause : cause
    log.error('the store of the workspaces (WORKSPACE_STORE) cannot be used', { cause: reason })
    return
  }
  await objects.close()
  throw new ConfigError([
    'WORKSPACE_STORE is a store that ignores If-Match and If-None-Match of a write: wanted one that keeps them, since a process that was thought dead could overwrite newer files',
  ])
}

const SWEEP_EVERY_MS = 600_000

/** Sweeps the folders at once and from time to time. Returns a function that stops that. */
function startSweep(workspaces: Workspaces, log: Log): () => void {
  let hasEnded = false
  const sweep = () => {
    workspaces.sweep().catch((cause: unknown) => {
      if (hasEnded) return
      log.warn('the folders of dead processes could not be removed; it is tried again', { cause })
    })
  }
  sweep()
  const timer = setInterval(sweep, SWEEP_EVERY_MS).unref()
  return () => {
    hasEnded = true
    clearInterval(timer)
  }
}
