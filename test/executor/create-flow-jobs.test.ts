import { expect } from 'chai'
import { createFlowJobs } from '../../services/executor/create-flow-jobs.ts'
import { createDemoProvider } from '../../shared/agent/providers/demo/demo.ts'
import { ALWAYS_HELD } from '../../shared/cluster/members/fence.ts'
import { newTraceId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../shared/platform/schemas/checker.ts'
import { NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import { NO_METER } from '../../shared/tenancy/limits/meter.ts'
import { EMPTY_CONFIG, type StoredInstance, type TenantConfig } from '../../shared/tenancy/tenant-config/config.ts'
import { createFlowCompiler } from '../../shared/work/flows/compile.ts'
import type { FlowDefinition } from '../../shared/work/flows/port.ts'
import { Runs } from '../../shared/work/runs/runs.ts'
import { NO_TOOLS } from '../support/app-defaults.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { useHistory } from '../work/flows/history-setup.ts'

type Parts = Parameters<typeof createFlowJobs>[1]

const DEFINITION: FlowDefinition = {
  input_schema: { type: 'object' },
  output_schema: { type: 'object' },
  user_prompt_template: '/say {}',
  tools: [],
  sub_agents: [],
  evolve: false,
}
const AT = '2026-11-22T09:00:00.000Z'
const instance = (name: string): StoredInstance => ({
  ...{ name, type: 'demo', revision: 'rev_1', created_at: AT, updated_at: AT },
})

describe('the jobs of flows, as an executor opens them', () => {
  const history = useHistory()
  const schemas = createSchemaCheckers()
  after(() => schemas.close())

  /** An executor whose tenant has these configurations, one after the other; the last one stays. */
  function open(...configs: Partial<TenantConfig>[]) {
    const opened: string[] = []
    let reads = 0
    const tenantConfig = {
      configs: { get: async () => ({ ...EMPTY_CONFIG, ...configs[Math.min(reads++, configs.length - 1)] }) },
      credentials: { read: () => ({}) },
      openInstance: async ({ name }: StoredInstance) => {
        opened.push(name)
        return createDemoProvider()
      },
      limits: { admission: NO_ADMISSION, meter: NO_METER },
    }
    const runs = new Runs(
      { maxLive: 10, resumeMs: 60_000, maxJournalBytes: 1_000_000 },
      { onBug: () => {}, onEvent: () => {}, onForgotten: () => {} },
    )
    const parts = {
      flows: {
        ...{
          dispatches: history.dispatches,
          schemas,
          memory: { promptText: async () => '', remember: async () => true },
        },
        library: { definitionOf: async () => DEFINITION },
        compile: createFlowCompiler({ checkers: schemas, tools: () => [] }),
      },
      ...{ fence: ALWAYS_HELD, executor: { runs }, workspaces: { open: () => '/nowhere' } },
      tools: { toolBox: { ...NO_TOOLS, tools: [] }, maxOutputChars: 100, canAct: async () => true, mayAct: () => true },
      store: { capabilities: { read: async () => ({ probes: [] }) } },
      tenantConfig: configs.length > 0 ? tenantConfig : undefined,
      log: SILENT_LOG,
    } as unknown as Parts
    const membership = {
      ...{ epoch: () => 7, announce: () => {}, executors: { isAlive: async () => true }, isMember: async () => true },
    }
    const jobs = createFlowJobs({ maxTurns: 2, modelPrices: undefined } as never, parts, membership)
    const run = async (name = 'main') => {
      const { trace_id: id } = await history.queue({
        ...{ trace_id: newTraceId(), provider_instance: name, model: 'demo', fallback: null },
      })
      await jobs.handle({ kind: 'flow', tenant: TENANT, id })
      const { status, error } = (await history.dispatches.get(TENANT, id)) ?? expect.fail()
      return { status, code: error?.code }
    }
    return { run, opened }
  }

  it('D8.5: an instance is opened once, and again when its tenant has changed it', async () => {
    const [first, second] = [{ instances: [instance('main')] }, { instances: [instance('main')] }]
    const { run, opened } = open(first)
    await run()
    await run()
    expect(opened).to.deep.equal(['main'])
    const changed = open(first, first, second)
    await changed.run()
    await changed.run()
    expect(changed.opened).to.deep.equal(['main', 'main'])
  })

  it('without runtime configuration no flow can call a model, and the run says how that is changed', async () => {
    expect(await open().run()).to.include({ status: 'error', code: 'config_disabled' })
  })
})
