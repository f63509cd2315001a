// Tests instances.ts with processes: who shares one, and when it ends.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Answer, Question } from '../../../../shared/agent/tools/port.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { until } from '../../../support/until.ts'
import { isRunning, makeFolder } from '../setup.ts'
import { type Opened, useMcp } from './setup.ts'

/** Remembers what was set, and tells its process, its folder and the roots that it was offered. */
const SCRIPT = `
const { createInterface } = require('node:readline')
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const hold = process.env.HOLD ? Buffer.alloc(Number(process.env.HOLD), 1) : undefined
const schema = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } }
const question = (params) => ({ method: 'elicitation/create', params })
const ASKED = {
  roots: { method: 'roots/list' },
  form: question({ mode: 'form', message: 'Who?', requestedSchema: schema }),
  link: question({ mode: 'url', message: 'Sign in.', url: 'https://example.com/', elicitationId: '1' }),
}
let [value, asking] = ['', undefined]
const tools = ['set', 'get', 'pid', 'cwd', 'roots', 'form', 'link', 'hang'].map((name) => ({ name, inputSchema: { type: 'object' } }))
const results = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name, arguments: given }) => {
    if (name === 'set') value = given.value
    const text = { set: '', get: value, pid: String(process.pid), cwd: process.cwd() }[name]
    return { content: [{ type: 'text', text }] }
  },
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result } = JSON.parse(line)
  if (method === undefined) return say({ id: asking, result: { content: [{ type: 'text', text: JSON.stringify(result) }] } })
  if (id === undefined || params?.name === 'hang') return
  const asked = ASKED[params?.name]
  if (asked) {
    asking = id
    return say({ id: 'r', ...asked })
  }
  say({ id, result: results[method](params) })
})
`

const server = (more: JsonObject = {}) => ({ command: process.execPath, args: ['-e', SCRIPT], ...more })
const BOUNDS = { max: 10, maxPerTenant: 10, idleMs: 1_000_000, maxMemoryBytes: 1024 ** 4 }

describe('the processes of an MCP server', () => {
  const { open } = useMcp()

  /** The text of a call of a tenant's session, which has a folder of its own below the returned one. */
  async function callers(opened: Opened) {
    const root = await makeFolder()
    const call = async (name: string, [tenant, scope]: readonly [string, string], input: JsonObject = {}) => {
      const owner = { tenant: tenant as TenantId, scope }
      return (await opened.call(`mcp__one__${name}`, input, { owner, workspace: join(root, tenant, scope) })).output
    }
    return { root, call }
  }

  const SESSIONS = [
    ['a', '1'],
    ['a', '2'],
    ['b', '1'],
  ] as const

  const EXPECTED = { session: ['a1', 'a2', 'b1'], tenant: ['a2', 'a2', 'b1'], shared: ['b1', 'b1', 'b1'] }
  for (const [scope, expected] of Object.entries(EXPECTED)) {
    it(`D40: with the scope ${scope}, each ${scope === 'shared' ? 'call sees what any has left there' : `${scope} sees what it has left there, and nothing of another one`}`, async () => {
      const { call } = await callers(await open({ one: server({ scope }) }))
      for (const each of SESSIONS) await call('set', each, { value: each.join('') })
      const seen = await Promise.all(SESSIONS.map((each) => call('get', each)))
      expect(seen).to.deep.equal(expected)
    })
  }

  it('D40: without a scope, a server over stdio has that of the installation', async () => {
    const { call } = await callers(await open({ one: server() }, { defaultScope: 'tenant' }))
    const [first, second, other] = await Promise.all(SESSIONS.map((each) => call('pid', each)))
    expect(first).to.equal(second).and.not.to.equal(other)
  })

  it('D40: it works in the folder of its session, or in one below that of the servers, and is offered it as a root with those that its arguments name', async () => {
    const [folder, given] = [await makeFolder(), await makeFolder()]
    const args = ['-e', SCRIPT, given, '/no/such/folder']
    const own = await open({ one: server({ scope: 'session', args }) }, { folder })
    const { root, call } = await callers(own)
    expect(await call('cwd', ['a', '1'])).to.equal(join(root, 'a', '1'))
    const roots = [{ uri: `file://${join(root, 'a', '1')}` }, { uri: `file://${given}` }]
    expect(JSON.parse(await call('roots', ['a', '1']))).to.deep.equal({ roots })
    const tenants = await callers(await open({ one: server({ scope: 'tenant' }) }, { folder }))
    const folders = [await tenants.call('cwd', ['a', '1']), await tenants.call('cwd', ['b', '1'])]
    expect(folders).to.deep.equal([join(folder, 'one', 'a'), join(folder, 'one', 'b')])
    expect(await readdir(join(folder, 'one'))).to.include.members(['a', 'b'])
  })

  it('D40.4: it may ask the person of its call for a form or to open an address, also for longer than it may be silent', async () => {
    const opened = await open({ one: server({ scope: 'session' }) }, { callTimeoutMs: 300 })
    const asked: Question[] = []
    const answer = (each: Answer) => async (question: Question) => {
      asked.push(question)
      await sleep(400)
      return each
    }
    const ask = async (name: string, each: Answer) => {
      const { output } = await opened.call(
        `mcp__one__${name}`,
        {},
        { ask: answer(each), workspace: await makeFolder() },
      )
      return JSON.parse(output) as unknown
    }
    const content = { name: 'Ada' }
    const answers = await Promise.all([
      ask('form', { action: 'accept', content }),
      ask('form', { action: 'decline' }),
      ask('link', { action: 'accept' }),
    ])
    expect(answers).to.deep.equal([{ action: 'accept', content }, { action: 'decline' }, { action: 'accept' }])
    const form = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } }
    expect(asked).to.have.deep.members([
      { message: 'The MCP server one asks: Who?', form },
      { message: 'The MCP server one asks: Who?', form },
      { message: 'The MCP server one asks: Sign in.', url: 'https://example.com/' },
    ])
  })

  it('D40.4: while several calls of it run, nobody is asked, and the log says why', async () => {
    const opened = await open({ one: server() }, { callTimeoutMs: 1_000 })
    const { call } = await callers(opened)
    const hanging = call('hang', ['a', '1'])
    expect(JSON.parse(await call('form', ['a', '2']))).to.deep.equal({ action: 'cancel' })
    expect(opened.problems.join()).to.include('asked a question while several calls ran')
    await hanging
  })

  it('D40: it ends with its session, also in the middle of a call, and those of others go on', async () => {
    const opened = await open({ one: server({ scope: 'session' }) })
    const { call } = await callers(opened)
    const [first, second] = [await call('pid', ['a', '1']), await call('pid', ['a', '2'])]
    const hanging = call('hang', ['a', '1'])
    await call('get', ['a', '1']) // Its server reads one call after the other.
    opened.release({ tenant: 'a' as TenantId, scope: '1' })
    expect(await hanging).to.include('ended during the call; the call may have been carried out')
    await until(() => !isRunning(Number(first)), { what: 'the process to end' })
    expect(await call('pid', ['a', '2'])).to.equal(second)
  })

  it('D40: above the number of one tenant, or of all, the one that is idle for the longest time ends; while all are called there is none for more', async () => {
    const bounds = { ...BOUNDS, max: 3, maxPerTenant: 2 }
    const { call } = await callers(await open({ one: server({ scope: 'session' }) }, { bounds, callTimeoutMs: 1_500 }))
    const pids = { first: await call('pid', ['a', '1']), second: await call('pid', ['a', '2']) }
    expect(await call('pid', ['a', '1'])).to.equal(pids.first)
    await call('pid', ['a', '3'])
    await until(() => !isRunning(Number(pids.second)), { what: 'the process that was idle for longest to end' })
    expect(await call('pid', ['a', '1'])).to.equal(pids.first)
    const hanging = [call('hang', ['a', '1']), call('hang', ['a', '3'])]
    expect(await call('pid', ['a', '4'])).to.match(/^Too many servers .* was not called\. Try again later/)
    expect(await call('pid', ['b', '1'])).to.match(/^\d+$/)
    await Promise.all(hanging)
  })

  it('D40: one that is idle for too long ends, and one that takes too much memory, with a line for the log', async () => {
    const bounds = { ...BOUNDS, idleMs: 50 }
    const idle = await callers(await open({ one: server({ scope: 'session' }) }, { bounds }))
    const pid = Number(await idle.call('pid', ['a', '1']))
    await until(() => !isRunning(pid), { what: 'the idle process to end' })

    const greedy = { ...server({ scope: 'shared' }), env: { HOLD: String(200 * 1024 ** 2) } }
    const opened = await open({ one: greedy }, { bounds: { ...bounds, maxMemoryBytes: 150 * 1024 ** 2 } })
    await until(() => opened.problems.length > 0, { what: 'the line of the log' })
    expect(opened.problems[0]).to.equal('The MCP server one is ended, because it takes more than 150 MB of memory.')
  })
})
