import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import { createPrices, createWindows } from '../../shared/providers/prices.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { openTools } from '../wiring/tools.ts'
import { openModels } from './open-models.ts'
import { createWorker, type Worker, type WorkerDeps } from './worker.ts'

type WorkerParts = Pick<WorkerDeps, 'book' | 'fence' | 'metrics' | 'lineStore'>

/** A worker with its models and tools, as it is in every form. `close` is for when nothing of it runs any more. */
export async function openWorker(
  config: Config,
  log: Log,
  parts: WorkerParts,
): Promise<{ worker: Worker; toolBox: ToolBox; close(): Promise<void> }> {
  const { toolBox, close } = await openTools(config, log)
  const worker = createWorker({
    ...parts,
    ...(await openModels(config)),
    toolBox,
    priceOf: createPrices(config.modelPrices),
    windowOf: createWindows(),
    planQueue: () => async () => ({ note: noteOf(config) }),
    workspaceDir: config.workspaceDir,
    limits: config,
    log,
  })
  return { worker, toolBox, close }
}

/** Until there is a queue, who asks for it is told so. */
const noteOf = ({ hasPlanQueue }: Config): string =>
  hasPlanQueue ? 'this version has no plan queue yet' : 'the plan queue is switched off (PLAN_QUEUE=false)'
