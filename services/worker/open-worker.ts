import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import { createPrices, createWindows } from '../../shared/providers/prices.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { openTools } from '../wiring/tools.ts'
import { openModels } from './open-models.ts'
import { createWorker, type Worker, type WorkerDeps } from './worker.ts'

/** The parts of a worker that differ between the forms. */
export type WorkerParts = Pick<WorkerDeps, 'permissions' | 'fence' | 'metrics' | 'lineStore' | 'onSessionRemoved'>

export type OpenedWorker = {
  worker: Worker
  toolBox: ToolBox
  /** Closes the tools. Call it when all runs have ended. */
  close(): Promise<void>
}

/** Opens a worker with its models and tools. */
export async function openWorker(config: Config, log: Log, parts: WorkerParts): Promise<OpenedWorker> {
  const { toolBox, close } = await openTools(config, log)
  const priceOf = createPrices(config.modelPrices)
  const worker = createWorker({
    ...parts,
    models: { ...(await openModels(config)), priceOf, windowOf: createWindows() },
    toolBox,
    planQueue: () => async () => ({ note: planQueueNote(config) }),
    workspaceDir: config.workspaceDir,
    limits: config,
    log,
  })
  return { worker, toolBox, close }
}

/** Placeholder until the plan queue exists. */
const planQueueNote = ({ hasPlanQueue }: Config): string =>
  hasPlanQueue ? 'this version has no plan queue yet' : 'the plan queue is switched off (PLAN_QUEUE=false)'
