import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import { createPrices, createWindows } from '../../shared/providers/prices.ts'
import type { SchemaChecker } from '../../shared/schemas/port.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { openModels } from '../wiring/open-models.ts'
import type { OpenedTenantConfig } from '../wiring/tenant-config.ts'
import { openTools } from '../wiring/tools.ts'
import { createServerModels, type ModelSource, type ServerModels } from './models.ts'
import { TenantModels } from './tenant-models.ts'
import { createWorker, type Worker, type WorkerDeps } from './worker.ts'

/** The parts of a worker that differ between the forms. */
export type WorkerParts = Pick<WorkerDeps, 'permissions' | 'fence' | 'metrics' | 'lineStore' | 'onSessionRemoved'> & {
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
  const server = {
    ...(await openModels(config)),
    priceOf: createPrices(config.modelPrices),
    windowOf: createWindows(),
  }
  const models = openModelSource(server, tenantConfig, log)
  const worker = createWorker({
    ...parts,
    models,
    toolBox,
    planQueue: () => async () => ({ note: planQueueNote(config) }),
    workspaceDir: config.workspaceDir,
    limits: config,
    log,
  })
  return { worker, toolBox, schemas, close }
}

function openModelSource(server: ServerModels, tenantConfig: OpenedTenantConfig | undefined, log: Log): ModelSource {
  if (!tenantConfig) return createServerModels(server)
  const { configs, credentials, openInstance } = tenantConfig
  return new TenantModels({ configs, credentials, server, openProvider: openInstance, log })
}

/** Placeholder until the plan queue exists. */
const planQueueNote = ({ hasPlanQueue }: Config): string =>
  hasPlanQueue ? 'this version has no plan queue yet' : 'the plan queue is switched off (PLAN_QUEUE=false)'
