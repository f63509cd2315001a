import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWorker, type Worker, type WorkerDeps, type WorkerLimits } from '../../services/worker/worker.ts'
import { createDemoProvider } from '../../shared/agent/providers/demo/demo.ts'
import { succeed } from '../../shared/agent/tools/port.ts'
import { ALWAYS_HELD } from '../../shared/cluster/members/fence.ts'
import type { SessionClaims } from '../../shared/cluster/owners/held-claims.ts'
import { type PermissionStore } from '../../shared/cluster/permissions/store.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { createSchemaCheckers } from '../../shared/platform/schemas/checker.ts'
import { NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import { createServerModels, type ServerModels } from '../../shared/work/runs/models.ts'
import { createWorkspaces } from '../../shared/work/runs/workspaces.ts'
import { NO_REPORTER } from './no-reporter.ts'
import { SILENT_LOG } from './silent-log.ts'

const SCHEMAS = createSchemaCheckers()

const LIMITS: WorkerLimits = {
  runsPerWorker: 100,
  runsPerTenant: 100,
  runResumeMs: 60_000,
  sessionsPerWorker: 1_000,
  sessionsPerTenant: 1_000,
  sessionMemoryBytes: 1e6,
  tenantShare: 1,
  sessionIdleMs: 60_000,
  permissionTimeoutMs: 60_000,
  clientToolTimeoutMs: 60_000,
  maxTurns: 8,
  customerEngines: 8,
  customerIdleMs: 60_000,
  customerHistoryEntries: 10,
  customerHistoryChars: 4_000,
}

export const DEMO_MODELS: ServerModels = {
  primary: { provider: createDemoProvider(), model: 'demo' },
  fallback: undefined,
  priceOf: () => 0,
  windowOf: () => undefined,
}

/** Every session is this worker's. */
export const NO_CLAIMS: SessionClaims = {
  find: async () => undefined,
  confirm: async () => true,
  release: async () => true,
  moved: async () => {},
}

/** Creates a worker with the demo model and one tool, `Ask`, which asks for permission. */
export function createDemoWorker(
  permissions: PermissionStore,
  limits: Partial<WorkerLimits> = {},
  deps: Partial<WorkerDeps> = {},
): Worker {
  const ask = {
    name: 'Ask',
    description: 'asks',
    inputSchema: {},
    defaultPolicy: 'ask',
    describe: () => 'Ask wants to run',
    run: async () => succeed('it ran'),
  } as const
  return createWorker({
    models: createServerModels(DEMO_MODELS),
    toolBox: {
      tools: [ask],
      find: (name) => (name === ask.name ? ask : undefined),
      policyOf: () => 'ask',
      problemWith: async () => undefined,
    },
    schemas: SCHEMAS,
    permissions,
    stored: undefined,
    keptSessions: undefined,
    claims: undefined,
    planQueue: () => async () => ({ note: 'no queue' }),
    fence: ALWAYS_HELD,
    isHeapHigh: () => false,
    reporter: NO_REPORTER,
    admission: NO_ADMISSION,
    metrics: NO_METRICS,
    workspaces: createWorkspaces(join(tmpdir(), 'agent-engine-no-workspace')),
    limits: { ...LIMITS, ...limits },
    log: SILENT_LOG,
    ...deps,
  })
}
