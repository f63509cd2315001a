import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFlowSurface } from '../../services/gateway/create-flow-surface.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../shared/platform/schemas/checker.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import { NO_TOOLS } from '../support/app-defaults.ts'
import { useOpening } from '../wiring/opening.ts'

type Parts = Parameters<typeof createFlowSurface>[1]

const FLOW = `name: triage
system_prompt_template: Sort it.
input_schema: {type: object, properties: {text: {type: string}}}
output_schema: {type: object, properties: {team: {type: string}}}
`

describe('the flows behind the API of a process', () => {
  const opening = useOpening()

  async function open(env: Record<string, string> = {}, { hasStore = true, hasConfig = true } = {}) {
    const schemas = createSchemaCheckers()
    opening.closing(() => schemas.close())
    const parts = {
      ...{ events: NO_EVENTS, toolBox: { ...NO_TOOLS, tools: [] }, schemas, log: opening.log },
      store: hasStore ? await opening.store() : undefined,
      tenantConfig: hasConfig ? { configs: {}, limits: { admission: {} } } : undefined,
    }
    return createFlowSurface(opening.settings(env).flows, parts as unknown as Parts)
  }

  it('D6: a process without a store has none', async () => {
    expect(await open({}, { hasStore: false })).to.equal(undefined)
  })

  it('D1.3 FLOWS_DIR: its files are drafts once the process is open, and one that is wrong is named in the log', async () => {
    const dir = join(opening.dir, 'flows')
    await mkdir(dir)
    await writeFile(join(dir, 'triage.yaml'), FLOW)
    await writeFile(join(dir, 'wrong.yaml'), 'name: [')
    const opened = await open({ FLOWS_DIR: dir })
    expect(await opened?.flows.library.get(TENANT, 'triage')).to.include({ version: 1, state: 'draft' })
    expect(opening.lines.join()).to.include('the flow in wrong.yaml is not loaded')
  })

  it('D1.3 DISPATCH_STORE: the history can be left out, and the runs stay', async () => {
    const { flows, dispatches } = (await open({ DISPATCH_STORE: 'false' })) ?? expect.fail('no flows')
    expect([dispatches, flows.execution === undefined]).to.deep.equal([undefined, false])
    expect((await open())?.dispatches).not.to.equal(undefined)
  })

  it('without runtime configuration flows are edited and checked, and none is run', async () => {
    const opened = await open({}, { hasConfig: false })
    expect(opened?.flows.execution).to.equal(undefined)
    expect(opened?.flows.checks).not.to.equal(undefined)
  })
})
