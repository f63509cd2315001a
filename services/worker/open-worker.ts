import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import type { SchemaChecker } from '../../shared/schemas/port.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { openModelSource } from '../wiring/model-source.ts'
import type { OpenedTenantConfig } from '../wiring/tenant-config.ts'
import { openTools } from '../wiring/tools.ts'
import { createWorker, type Worker, type WorkerDeps } from './worker.ts'

/** The parts of a worker that differ between the forms. */
export type WorkerParts = Pick<
  WorkerDeps,
  'permissions' | 'fence' | 'isHeapHigh' | 'metrics' | 'lineStore' | 'onSessionRemoved' | 'planQueue'
> & {
  /** `undefined`: runtime configuration is disabled, and every tenant's runs use the server's models. */
  tenantConfig: OpenedTenantConfig | undefined
}

export type OpenedWorker = {
  worker: Worker
  toolBox: ToolBox
  schemas: SchemaChecker
  /** Closes the tools. Call it when all runs have ended. */
  close(): Promise<void>
}

/** Opens a worker with its models and tools. */
export async function openWorker(
  config: Config,
  log: Log,
  { tenantConfig, ...parts }: WorkerParts,
): Promise<OpenedWorker> {
  const { toolBox, schemas, close } = await openTools(config, log)
  const models = await openModelSource(config, tenantConfig, log)
  const worker = createWorker({
    ...parts,
    models,
    toolBox,
    workspaceDir: config.workspaceDir,
    limits: config,
    log,
  })
  return { worker, toolBox, schemas, close }
}
