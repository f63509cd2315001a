import { expect } from 'chai'
import type { Store } from '../../shared/platform/store/port.ts'
import type { FlowDefinition } from '../../shared/work/flows/port.ts'
import type { FlowHead } from '../../shared/work/flows/store/flow-head.ts'
import { FLOW_REVISIONS, type FlowSave, FlowStore } from '../../shared/work/flows/store/flows.ts'
import { tenantId } from '../support/tenant.ts'

export const TENANT = tenantId('t_1')

export const definition = (title: string): FlowDefinition => ({
  input_schema: { type: 'object', title },
  output_schema: {},
  tools: [],
  sub_agents: [],
  evolve: false,
})

export const countDown = (from: number): number[] => Array.from({ length: from }, (_, i) => from - i)

/** Writes and reads flows in the store of a `describe`; their names begin with `prefix`. */
export function createFlowWriter(prefix: string, opened: () => Store) {
  let names = 0
  const flows = () => new FlowStore(opened())
  const save = (name: string, title: string, more: Partial<FlowSave> = {}, by = flows()) =>
    by.save(TENANT, name, { definition: definition(title), ...more })
  return {
    newName: () => `${prefix}-${++names}`,
    save,
    /** Saves the versions `v1`, `v2` … */
    async create(name: string, versions = 1): Promise<FlowHead> {
      for (let n = 1; n < versions; n++) await save(name, `v${n}`)
      return (await save(name, `v${versions}`)) ?? expect.fail('the flow was not created')
    },
    versionsOf: async (head: Pick<FlowHead, 'uid' | 'version'>) =>
      (await flows().revisions(TENANT, head)).map(({ version }) => version),
    /** Also those above the flow's version. */
    async storedRevisions(uid: string) {
      const page = await opened().collection(FLOW_REVISIONS).page(TENANT, { where: { uid }, limit: 1_000 })
      return page.map(({ doc }) => doc['revision'])
    },
  }
}
