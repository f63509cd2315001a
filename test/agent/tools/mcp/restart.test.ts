// Tests connection.ts and stdio.ts: servers that restart, crash and close.

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { until } from '../../../support/until.ts'
import { isRunning, makeFolder } from '../setup.ts'
import { type Opened, useMcp } from './setup.ts'

type Request = { id?: number; method: string }
type Answer = (request: Request, res: ServerResponse) => unknown

const TOOLS: JsonObject[] = [{ name: 'call', inputSchema: { type: 'object' } }]
const said = (words: string) => ({ content: [{ type: 'text', text: words }] })

const LOST = 'The MCP server one ended its response without an answer; the call may have been carried out.'

/** A server with sessions that answers an unknown one with 400, as the official one of 2025, and refuses to end one. */
function createSessionServer(answerCall: Answer) {
  const seen = { sessions: new Set<string>(), calls: 0, opened: 0 }
  const respond = async (req: IncomingMessage, res: ServerResponse) => {
    const request = JSON.parse((await text(req)) || '{"method": ""}') as Request
    const { id, method } = request
    const session = String(req.headers['mcp-session-id'])
    const json = (result: object) =>
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    if (method === 'initialize') {
      const name = `s${++seen.opened}`
      seen.sessions.add(name)
      res.setHeader('mcp-session-id', name)
      return json({
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'x', version: '1' },
      })
    }
    if (!seen.sessions.has(session) || req.method === 'DELETE')
      return res.writeHead(400).end('{"error": "no valid session"}')
    if (req.method === 'GET') return res.writeHead(405).end()
    if (id === undefined) return res.writeHead(202).end()
    if (method === 'tools/list') return json({ tools: TOOLS })
    seen.calls += 1
    return answerCall(request, res) ?? json(said(session))
  }
  return { seen, create: () => createServer((req, res) => void respond(req, res)) }
}

describe('an MCP server over HTTP that restarts', () => {
  const { open, listen } = useMcp()
  const outputOf = async ({ call }: Opened) => (await call('mcp__one__call', {})).output
  /** A connection that was open may break only at its next use. */
  const unreachable = (opened: Opened) =>
    until(
      async () =>
        (await outputOf(opened)) === 'The MCP server one cannot be reached. Try again later, or go on without it.',
      { what: 'the refused connection to be noticed' },
    )

  it('with sessions, which it answers with 400 afterwards: the call is repeated in a new session', async () => {
    const { seen, create } = createSessionServer(() => undefined)
    const opened = await open({ one: { url: await listen(create()) } })
    expect(await outputOf(opened)).to.equal('s1')
    seen.sessions.clear()
    const outputs = await Promise.all([1, 2, 3].map(() => outputOf(opened)))
    expect(outputs).to.deep.equal(['s2', 's2', 's2'])
    expect(seen.opened).to.equal(2)
  })

  it('D5.2: with sessions that it has lost, its tools are listed in a new one', async () => {
    const { seen, create } = createSessionServer(() => undefined)
    const opened = await open({ one: { url: await listen(create()) } }, { listEveryMs: 5, retryMs: 1 })
    seen.sessions.clear()
    opened.onChange(() => {})
    await until(() => seen.opened === 2, { what: 'a new session' })
    expect([opened.problems, opened.servers()]).to.deep.equal([[], [{ name: 'one', state: 'ready' }]])
  })

  it('its protocol may be one version alone: no other one is asked for, and none is taken', async () => {
    const asked: unknown[] = []
    const respond = async (req: IncomingMessage, res: ServerResponse) => {
      const { id, method, params } = JSON.parse((await text(req)) || '{}') as Request & { params?: JsonObject }
      asked.push([method, params?.['protocolVersion']])
      if (id === undefined) return res.writeHead(202).end()
      const initialized = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
      return res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: initialized }))
    }
    const url = await listen(createServer((req, res) => void respond(req, res)))
    const { problems } = await open({ one: { url, protocolVersion: '2025-06-18' } })
    expect(asked[0]).to.deep.equal(['initialize', '2025-06-18'])
    const { servers } = await open({ one: { url, protocolVersion: '2025-03-26' } })
    const pinned = await open({ one: { url, protocolVersion: '2026-07-28' } })
    expect([problems, servers(), pinned.servers()].flat()).to.deep.equal(
      ['unavailable', 'unavailable'].map((state) => ({ name: 'one', state })),
    )
  })

  it('a call while it is down is a tool error, and the next one after its return is answered', async () => {
    const { seen, create } = createSessionServer(() => undefined)
    const first = create()
    const url = await listen(first)
    const opened = await open({ one: { url } })
    first.close().closeAllConnections()
    await once(first, 'close')
    await unreachable(opened)
    seen.sessions.clear()
    await listen(create(), Number(new URL(url).port))
    expect(await outputOf(opened)).to.equal('s2')
    expect(seen.calls).to.equal(1)
  })

  it('a call that it may have carried out is not repeated, and the next one is answered', async () => {
    const endings: Record<string, (res: ServerResponse) => unknown> = {
      'before the response': (res) => res.destroy(),
      'in a stream': (res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write(': working\n\n', () => res.destroy())
        return res
      },
      'behind a proxy': (res) => res.writeHead(502).end(),
    }
    const outputs: Record<string, string> = {}
    for (const [name, end] of Object.entries(endings)) {
      let isFirst = true
      const { seen, create } = createSessionServer((_request, res) => {
        if (!isFirst) return undefined
        isFirst = false
        seen.sessions.clear()
        return end(res)
      })
      const opened = await open({ one: { url: await listen(create()) } }, { callTimeoutMs: 5_000 })
      outputs[name] = await outputOf(opened)
      expect(seen.calls, name).to.equal(1)
      expect(await outputOf(opened), name).to.equal('s2')
    }
    const couldNot = (why: string) =>
      `The MCP server one could not answer the call${why}; the call may have been carried out. Find out before you call it again.`
    expect(outputs).to.deep.equal({
      'before the response': couldNot(''),
      'in a stream': LOST,
      'behind a proxy': couldNot(' (HTTP 502)'),
    })
  })

  it('a call that is under way gets its answer, though the server takes no new connection', async () => {
    const waiting = Promise.withResolvers<() => void>()
    const { create } = createSessionServer(({ id }, res) => {
      const result = said('late')
      waiting.resolve(() => {
        res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      })
      return res
    })
    const server = create()
    const opened = await open({ one: { url: await listen(server) } })
    const underWay = outputOf(opened)
    const answer = await waiting.promise
    server.close() // Connections that are open stay open.
    await unreachable(opened)
    answer()
    expect(await underWay).to.equal('late')
  })
})

const SCRIPT = `
const { createInterface } = require('node:readline')
const { readFileSync, watchFile } = require('node:fs')
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const serverInfo = { name: 'x', version: '1' }
let lists = 0
const results = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true } }, serverInfo }),
  'tools/list': () => {
    lists += 1
    return JSON.parse(readFileSync(process.env.TOOLS, 'utf8'))
  },
  'tools/call': ({ name }) => {
    if (name === 'crash') {
      process.stderr.write('x'.repeat(5000) + 'the cause: ' + process.env.KEY)
      process.exit(3)
    }
    if (name === 'change') say({ method: 'notifications/tools/list_changed' })
    if (name === 'lists') return { content: [{ type: 'text', text: String(lists) }] }
    return { content: [{ type: 'text', text: process.cwd() }] }
  },
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (params?.name === 'lost') return say({ id, error: { code: -32602, message: 'Unknown tool: lost' } })
  if (id !== undefined && process.env.HANG !== method) say({ id, result: results[method](params) })
})
`

describe('an MCP server over stdio', () => {
  const { open } = useMcp()
  const tool = (name: string, more: JsonObject = {}) => ({ name, inputSchema: { type: 'object' }, ...more })

  async function scripted(tools: object[], more: JsonObject = {}) {
    const file = join(await makeFolder(), 'tools.json')
    const list = (next: object[]) => writeFile(file, JSON.stringify({ tools: next }))
    await list(tools)
    const env = { TOOLS: file, KEY: 'sk-1234' }
    return { list, server: { command: process.execPath, args: ['-e', SCRIPT], env, ...more }, env }
  }

  it('D5.2: that changes its tools: new and different ones are offered, and those that are gone are not', async () => {
    const { list, server } = await scripted([tool('change'), tool('old'), tool('same')])
    const opened = await open({ one: server })
    const changes: { tools: string[]; gone: string[] }[] = []
    opened.onChange(({ tools, gone }) => void changes.push({ tools: tools.map(({ name }) => name), gone }))
    await list([tool('change', { description: 'new words' }), tool('new'), tool('same')])
    await opened.call('mcp__one__change', {})
    await until(() => opened.news.length > 0, { what: 'the changed tools' })
    expect(changes).to.deep.equal([{ tools: ['mcp__one__change', 'mcp__one__new'], gone: ['mcp__one__old'] }])
    expect(opened.news).to.deep.equal(['The MCP server one offers 2 tools anew and 1 tool no longer.'])
  })

  it('D5.2: that says nothing of its changes is listed again each minute, and at once when it does not know a tool', async () => {
    const { list, server } = await scripted([tool('lost'), tool('call')])
    const opened = await open({ often: server, asked: server }, { listEveryMs: 20, retryMs: 1 })
    const asked = await open({ asked: server }, { listEveryMs: 1_000_000, retryMs: 1 })
    opened.onChange(() => {})
    asked.onChange(() => {})
    await list([tool('new'), tool('call')])
    await until(() => opened.news.length === 2, { what: 'both servers to be listed again' })
    expect(asked.news).to.deep.equal([])
    const { output } = await asked.call('mcp__asked__lost', {})
    expect(output).to.equal('The MCP server asked refused the call: Unknown tool: lost')
    await until(() => asked.news.length > 0, { what: 'the new tools' })
    expect(asked.news).to.deep.equal(['The MCP server asked offers 1 tool anew and 1 tool no longer.'])
  })

  it('D5.2: that is not ready within the time to wait is starting, and its tools are offered when it has listed them', async () => {
    const { server } = await scripted([tool('call')])
    const isReady = join(await makeFolder(), 'ready')
    const wait = `while [ ! -e ${isReady} ]; do sleep 0.05; done; exec "$0" "$@"`
    const slow = { ...server, command: '/bin/sh', args: ['-c', wait, server.command, ...server.args] }
    const opened = await open({ slow }, { waitMs: 0 })
    const added: string[] = []
    opened.onChange(({ tools }) => void added.push(...tools.map(({ name }) => name)))
    expect([opened.tools, opened.servers()]).to.deep.equal([[], [{ name: 'slow', state: 'starting' }]])
    expect(opened.news).to.deep.equal([
      'The MCP server slow is starting. Its tools are offered when it has listed them.',
    ])
    await writeFile(isReady, '')
    await opened.listed
    expect([added, opened.servers()]).to.deep.equal([['mcp__slow__call'], [{ name: 'slow', state: 'ready' }]])
  })

  it('that announces one change after the other rests between two lists of its tools, and other servers do not', async () => {
    const { server } = await scripted([tool('change'), tool('lists')])
    const opened = await open({ one: server, two: server }, { retryMs: 1_000_000 })
    opened.onChange(() => {})
    const lists = async (name: string) => Number((await opened.call(`mcp__${name}__lists`, {})).output)
    const listed = (name: string) =>
      until(async () => (await lists(name)) === 2, { what: `${name} to be listed again` })
    await opened.call('mcp__one__change', {})
    await listed('one')
    await opened.call('mcp__one__change', {})
    await opened.call('mcp__two__change', {}) // Its list comes behind the one that the other would have now.
    await listed('two')
    expect(await lists('one')).to.equal(2)
  })

  it('that crashes: the log has the end of what it wrote, without secrets, and other tools of a new start are offered', async () => {
    const { list, server } = await scripted([tool('crash'), tool('call')])
    const opened = await open({ one: server })
    const added: string[] = []
    opened.onChange(({ tools }) => void added.push(...tools.map(({ name }) => name)))
    await opened.call('mcp__one__crash', {})
    await until(() => opened.problems.length > 0, { what: 'a line of the log' })
    expect(opened.problems).to.have.length(1)
    expect(opened.problems[0]).to.match(
      /^The MCP server one exited with code 3; it wrote: …x{900,1000}the cause: \[redacted\]\. It is started again when it is called again\.$/,
    )
    await list([tool('crash'), tool('call'), tool('more')])
    await opened.call('mcp__one__call', {})
    await until(() => added.length > 0, { what: 'the new tool' })
    expect(added).to.deep.equal(['mcp__one__more'])
  })

  it('that is closed while it starts leaves no process', async () => {
    const { server } = await scripted([tool('crash'), tool('call')])
    const pidFile = join(await makeFolder(), 'pids')
    const args = ['-e', `require('node:fs').appendFileSync(${JSON.stringify(pidFile)}, process.pid + ' ');${SCRIPT}`]
    const opened = await open({ one: { ...server, args } })
    await opened.call('mcp__one__crash', {})
    const calling = opened.call('mcp__one__call', {})
    await opened.close()
    await calling
    const pids = (await readFile(pidFile, 'utf8').catch(() => '')).trim().split(' ').map(Number)
    expect(pids.filter(isRunning)).to.deep.equal([])
  })

  it('that is closed as it begins to start is not waited for', async () => {
    const { server, env } = await scripted([tool('call')])
    const hanging = { ...server, env: { ...env, HANG: 'initialize' } }
    const opened = await open({ one: hanging }, { waitMs: 0, startTimeoutMs: 1_000_000, folder: await makeFolder() })
    await opened.close()
    expect(opened.servers()).to.deep.equal([{ name: 'one', state: 'unavailable' }])
  })

  it('starts in its cwd, and one whose cwd is no folder is left out with that reason', async () => {
    const cwd = await makeFolder()
    const { server } = await scripted([tool('call')], { cwd })
    const opened = await open({ one: server, two: { ...server, cwd: `${cwd}/none` } })
    expect((await opened.call('mcp__one__call', {})).output).to.equal(cwd)
    expect(opened.problems).to.deep.equal([
      `The MCP server two is left out until it can be reached: its cwd ${cwd}/none is not a folder`,
    ])
  })

  it('has its own time to start and to list its tools', async () => {
    const { server, env } = await scripted([tool('call')])
    const hanging = (method: string) => ({ ...server, env: { ...env, HANG: method } })
    const { problems, tools } = await open(
      { start: hanging('initialize'), list: hanging('tools/list') },
      { startTimeoutMs: 1_000, callTimeoutMs: 60_000 },
    )
    expect(tools).to.deep.equal([])
    expect(problems.map((problem) => problem.split(': ')[1]).toSorted()).to.deep.equal([
      'it did not list its tools within 1000 ms',
      'it was not ready within 1000 ms',
    ])
  })

  it('a tool that runs only as a task is left out, with a line for the log', async () => {
    const { server } = await scripted([
      tool('task', { execution: { taskSupport: 'required' } }),
      tool('both', { execution: { taskSupport: 'optional' } }),
    ])
    const { tools, problems } = await open({ one: server })
    expect(tools.map(({ name }) => name)).to.deep.equal(['mcp__one__both'])
    expect(problems).to.deep.equal([
      'The tool task of the MCP server one is left out: it runs only as a task, which is not supported.',
    ])
  })
})
