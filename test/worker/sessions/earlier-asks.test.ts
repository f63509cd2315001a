import { expect } from 'chai'
import { EarlierAsks } from '../../../services/worker/sessions/earlier-asks.ts'
import type { StepState } from '../../../shared/agent/engine/call-progress.ts'
import type { EarlierRun } from '../../../shared/agent/sessions/open-runs.ts'
import { createMemoryPermissionStore } from '../../../shared/cluster/permissions/memory-store.ts'
import type { PermissionStore } from '../../../shared/cluster/permissions/store.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as tenant } from '../../../shared/kernel/tenant.ts'
import { settled } from '../../support/settled.ts'
import { until } from '../../support/until.ts'

const [RUN, TURN] = ['run_1', 3]
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

/** A run whose turn was under way when its worker died: `a` and `b` are requests of its calls, `s` is one of a sub-agent. */
async function setUp(around: (store: PermissionStore) => Partial<PermissionStore> = () => ({})) {
  const store = createMemoryPermissionStore()
  const ask = (id: string) => ({ id, created_at: inMs(0), expires_at: inMs(3_600_000) })
  for (const id of ['a', 'b', 's']) {
    const details = { tool_name: 'Write', tool_use_id: `call of ${id}`, input: { id }, message: `${id}?` }
    await store.open({ id, tenant, scopeId: 's1', runId: RUN, details: { ...details, ...ask(id) } })
  }
  const calls = { 'call of a': { ask: ask('a') }, 'call of b': { ask: ask('b') }, 'call of c': { hasBegun: true } }
  const step = {
    turn: TURN,
    model: 'm',
    calls,
    agents: {},
    agentAsks: [{ ...ask('s'), call: 's' }],
  } as unknown as StepState
  const resolved: string[] = []
  const deps = {
    permissions: { ...store, ...around(store) },
    reporter: {
      permissionResolved: ({ id, details }, { how }) => void resolved.push(`${id} ${details.message} ${how}`),
    },
  } satisfies ConstructorParameters<typeof EarlierAsks>[2]
  const asks = new EarlierAsks({ tenant, scopeId: 's1', runId: RUN }, { step } as EarlierRun, deps)
  const stateOf = async (id: string) => (await store.decide({ tenant, scopeId: 's1', id }, { state: 'expired' })).state
  const reply = (id: string) => store.decide({ tenant, scopeId: 's1', id }, { state: 'allowed' })
  return { asks, resolved, stateOf, reply }
}

describe('the permission requests of a run whose worker died', () => {
  it('D37.1: an end before it has gone on withdraws all, and shows the turn once more with the open ones, each resolved', async () => {
    const { asks, resolved, stateOf, reply } = await setUp()
    await reply('b')
    const events = await asks.end()
    const of = { tool_use_id: 'call of a', tool_name: 'Write' }
    expect(events[0]).to.deep.equal({ type: 'turn_start', turn_number: TURN, model: 'm' })
    expect(events[1]).to.deep.equal({ type: 'tool_use', id: 'call of a', tool_name: 'Write', input: { id: 'a' } })
    expect(events[2]).to.include({ type: 'permission_request', id: 'a', ...of, message: 'a?' })
    const end = { type: 'permission_resolved', id: 'a', ...of, allow: false, how: 'cancelled', reason: '' }
    expect(events.slice(3)).to.deep.equal([end])
    expect(resolved.sort()).to.deep.equal(['a a? cancelled', 's s? cancelled'])
    expect(await Promise.all(['a', 'b', 's'].map(stateOf))).to.deep.equal(['withdrawn', 'allowed', 'withdrawn'])
  })

  it('what it has shown again before its end is not shown a second time, and each is withdrawn and told once', async () => {
    const { asks, resolved } = await setUp()
    const types = async (shown: string[]) => (await asks.resolve(new Set(shown))).map(({ type }) => type)
    expect(await types(['a', 'call of b'])).to.deep.equal(['permission_request', 'permission_resolved'])
    expect(await types(['a', 'b'])).to.deep.equal([])
    expect(resolved).to.have.length(3)
  })

  it('D32.9c: those that no sub-agent makes again are withdrawn, and its own wait on', async () => {
    const { asks, stateOf } = await setUp()
    expect(['s', 'a', 'x'].map((id) => asks.has(id))).to.deep.equal([true, true, false])
    asks.drop(['s'])
    await settled()
    expect([await stateOf('s'), await stateOf('a')]).to.deep.equal(['withdrawn', 'expired'])
  })

  it('the end does not wait for a store that does not answer, which withdraws them when it does', async () => {
    let isAway = true
    const { asks, resolved } = await setUp((store) => ({
      async decide(...args) {
        if (isAway) throw new AppError('unavailable', 'away')
        return store.decide(...args)
      },
    }))
    expect((await asks.end()).map(({ type }) => type)).to.deep.equal(['turn_start'])
    isAway = false
    await until(() => resolved.length === 3, { what: 'all to be withdrawn' })
  })

  it('a run that had asked nothing has none', () => {
    const nothing = new EarlierAsks({ tenant, scopeId: 's1', runId: RUN }, undefined, {} as never)
    expect(nothing.isEmpty).to.equal(true)
  })
})
