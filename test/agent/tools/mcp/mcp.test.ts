// Tests mcp.ts, list-tools.ts, offered-tools.ts, listed-server.ts and http.ts: the tools of real servers over both transports.

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { Files } from '../../../../shared/agent/files/files.ts'
import type { Tool, ToolContext } from '../../../../shared/agent/tools/port.ts'
import { createToolRegistry } from '../../../../shared/agent/tools/registry.ts'
import type { Artifact, JsonObject } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { openDisk } from '../../../../shared/platform/objects/disk.ts'
import { createSchemaCheckers } from '../../../../shared/platform/schemas/checker.ts'
import { type HttpServer, startHttpServer } from '../../../support/mcp-server/http.ts'
import { useTestStore } from '../../../support/test-store.ts'
import { until } from '../../../support/until.ts'
import { isRunning, makeFolder } from '../setup.ts'
import { useMcp } from './setup.ts'

const STDIO = {
  command: process.execPath,
  args: [join(import.meta.dirname, '../../../support/mcp-server/stdio.ts')],
  env: { GIVEN: 'by the config' },
}

const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'fake', version: '1' },
}
type Request = { id?: number; method: string; params?: JsonObject }
const answer = (id: number, result: object) => JSON.stringify({ jsonrpc: '2.0', id, result })

describe('MCP servers', () => {
  const { open, listen, closing } = useMcp()
  const store = useTestStore({ perTest: true })

  async function serve(hasSessions: boolean): Promise<HttpServer> {
    const server = await startHttpServer({ hasSessions })
    closing.push(() => server.close())
    return server
  }

  /** A server that answers each request with the result that `resultOf` returns. */
  async function serveAnswers(resultOf: (method: string, params?: JsonObject) => object, port = 0): Promise<string> {
    const handle = async (req: IncomingMessage, res: ServerResponse) => {
      const { id, method, params } = JSON.parse((await text(req)) || '{}') as Request
      if (id === undefined) res.writeHead(202).end()
      else if (method === 'server/discover') res.writeHead(404).end()
      else res.writeHead(200, { 'content-type': 'application/json' }).end(answer(id, resultOf(method, params)))
    }
    return listen(
      createHttpServer((req, res) => void handle(req, res)),
      port,
    )
  }

  /** The address of a port that is free. */
  async function refusedUrl(): Promise<string> {
    const probe = createServer().listen(0, '127.0.0.1')
    await once(probe, 'listening')
    const { port } = probe.address() as AddressInfo
    probe.close()
    return `http://127.0.0.1:${port}/mcp`
  }

  const KINDS: [string, () => Promise<JsonObject>][] = [
    ['stdio', async () => STDIO],
    ['streamable HTTP', async () => ({ url: (await serve(false)).url })],
    ['streamable HTTP with sessions, of 2025', async () => ({ url: (await serve(true)).url })],
  ]

  for (const [kind, start] of KINDS) {
    describe(`over ${kind}`, () => {
      it('D5.1: its tools are offered as mcp__<server>__<tool> and ask for permission', async () => {
        const { tools, call } = await open({ one: await start() })
        const echo = tools.find(({ name }) => name === 'mcp__one__echo')
        expect([echo?.defaultPolicy, echo?.description]).to.deep.equal(['ask', 'Returns its input.'])
        expect(echo?.describe({})).to.equal('Call the tool echo of the MCP server one.')
        const checkers = createSchemaCheckers()
        closing.push(() => checkers.close())
        const schemas = checkers.of(DEFAULT_TENANT)
        expect((await createToolRegistry({ tools, permissions: new Map(), schemas })).leftOut).to.deep.equal([])
        expect(await call('mcp__one__echo', { text: 'hé' })).to.deep.equal({ output: 'hé', isError: false })
      })

      it('the model gets the text of a refusal by the tool and by the server', async () => {
        const { call } = await open({ one: await start() })
        expect(await call('mcp__one__refuse', {})).to.deep.equal({ output: 'not today', isError: true })
        const wrong = await call('mcp__one__echo', { text: 5 })
        expect(wrong.isError).to.equal(true)
        expect(wrong.output).to.include('expected string')
      })

      it('D50.5: what a result embeds and what it links to are files of the tenant, which the text names', async () => {
        const files = new Files(store.store, await openDisk(await makeFolder()))
        const { call } = await open({ one: await start() }, { files })
        const { output, isError, artifacts = [] } = await call('mcp__one__picture', {})
        expect([isError, artifacts.map(({ file_id: _id, ...file }: Artifact) => file)]).to.deep.equal([
          false,
          [
            { name: 'a report.bin', media_type: 'application/octet-stream', bytes: 3 },
            { name: 'page', media_type: 'text/plain', bytes: 8 },
          ],
        ])
        const [report = '', page = ''] = artifacts.map(({ file_id: id }) => id)
        expect(output).to.match(
          new RegExp(`\nDelivered "?a report.bin"? .* as ${report}\\.\nDelivered "?page"? .* as ${page}\\.$`),
        )
        expect([...((await files.read(DEFAULT_TENANT, report)) ?? [])]).to.deep.equal([0, 1, 2])
        expect(String(await files.read(DEFAULT_TENANT, page))).to.equal('the page')
      })

      it('progress is reported, and an abort cancels the call at the server', async () => {
        const { call } = await open({ one: await start() })
        const run = new AbortController()
        const reports: unknown[] = []
        const report: ToolContext['report'] = (...args) => void reports.push(args)
        const hanging = call('mcp__one__hang', {}, { signal: run.signal, report })
        await call('mcp__one__wait_for', { event: 'hanging' })
        run.abort()
        expect((await hanging).output).to.equal('The call was stopped because the run ended.')
        expect((await call('mcp__one__wait_for', { event: 'cancelled' })).isError).to.equal(false)
        expect(reports).to.deep.equal([[0.25, 'a quarter']])
      })

      it('a timeout is a tool error and cancels the call at the server', async () => {
        const { call } = await open({ one: await start() }, { callTimeoutMs: 300 })
        const outcome = await call('mcp__one__hang', {})
        expect(outcome).to.deep.equal({
          output: 'The MCP server one did not answer within 300 ms; the call may have been carried out.',
          isError: true,
        })
        expect((await call('mcp__one__wait_for', { event: 'cancelled' })).isError).to.equal(false)
      })
    })
  }

  it('every name is valid for all model APIs and unique', async () => {
    const { tools } = await open({ 'my server.1': STDIO })
    const names = tools.map(({ name }) => name)
    expect(new Set(names).size).to.equal(names.length)
    expect(names.filter((name) => !/^[A-Za-z0-9_-]{1,64}$/.test(name))).to.deep.equal([])
    expect(names).to.include('mcp__my_server_1__echo')
    expect(names.filter((name) => name.startsWith('mcp__my_server_1__dotted_name'))).to.have.length(2)
  })

  it('a server that cannot be reached is reported and left out; the others are used', async () => {
    const { tools, problems } = await open({
      refused: { url: await refusedUrl() },
      absent: { command: '/nonexistent/server' },
      quits: { command: '/bin/sh', args: ['-c', 'echo no licence $KEY >&2; exit 3'], env: { KEY: 'top secret-1' } },
      good: STDIO,
    })
    expect(new Set(tools.map(({ name }) => name.split('__')[1]))).to.deep.equal(new Set(['good']))
    expect(
      problems.map((problem) => /^The MCP server (\w+) is left out until it can be reached: /.exec(problem)?.[1]),
    ).to.have.members(['absent', 'quits', 'refused'])
    expect(problems.join()).to.include('no licence [redacted]').and.include('connect ECONNREFUSED 127.0.0.1')
  })

  it('D5.2: a malformed tool is left out by itself, with a line for the log', async () => {
    const tool = { name: 'good', inputSchema: { type: 'object' } }
    const tools = [tool, { name: 'bad', inputSchema: 'none' }, { ...tool, name: 7 }, null, { ...tool, name: 'fine' }]
    const server = await serveAnswers((method) => (method === 'tools/list' ? { tools } : INITIALIZED))
    const opened = await open({ one: { url: server } })
    expect(opened.tools.map(({ name }) => name)).to.deep.equal(['mcp__one__good', 'mcp__one__fine'])
    expect(opened.problems).to.have.length(3)
    expect(opened.problems[0]).to.equal(
      'The tool bad of the MCP server one is left out: its input schema is not that of an object.',
    )
  })

  it('D5.2: a list without end is read as far as there is room, with a line for the log; of malformed tools ten are named', async () => {
    let lists = 0
    const endless = (pageSize: number, toolOf: (name: string) => object) =>
      serveAnswers((method) => {
        if (method !== 'tools/list') return INITIALIZED
        lists += 1
        const tools = Array.from({ length: pageSize }, (_, i) => toolOf(`${lists}-${i}`))
        return { tools, nextCursor: `page ${lists}` }
      })
    const inputSchema = { type: 'object' }
    const many = await open({ many: { url: await endless(2_000, (name) => ({ name, inputSchema })) } })
    expect([many.tools.length, lists]).to.deep.equal([128, 1])
    const cut =
      'The list of the MCP server many is longer than 128 tools or 1024 KB: the tools behind that are left out.'
    expect(many.problems).to.deep.equal([cut])

    const large = { ...inputSchema, description: 'x'.repeat(400) }
    const properties = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`p${i}`, large]))
    const wide = await endless(20, (name) => ({ name, inputSchema: { ...inputSchema, properties } }))
    const few = await open({ wide: { url: wide } })
    expect(few.tools.length, 'tools of 44 KB').to.be.within(20, 25)
    expect(few.problems).to.have.length(1)

    const wrong = await open({ wrong: { url: await endless(200, (name) => ({ name: name.padEnd(2_000, 'x') })) } })
    expect([wrong.tools.length, wrong.problems.length]).to.deep.equal([0, 12])
    expect(wrong.problems[0]).to.match(
      /^The tool \d+-0x{96,}… of the MCP server wrong is left out: its name is too long\.$/,
    )
    expect(wrong.problems[10]).to.equal('118 more tools of the MCP server wrong are left out for such reasons.')
  })

  const ENDS: [what: string, second: () => object, problem: RegExp][] = [
    ['whose second page fails', () => expect.fail('broken'), /page 2 of its list could not be read/],
    ['that names its first page again', () => ({ tools: [], nextCursor: 'a' }), /names a page for the second time/],
  ]
  for (const [what, second, problem] of ENDS) {
    it(`D5.2: a list ${what} keeps the tools before, with a line for the log`, async () => {
      let lists = 0
      const first = { tools: [{ name: 'good', description: null, inputSchema: null }], nextCursor: 'a' }
      const handle = async (req: IncomingMessage, res: ServerResponse) => {
        const { id, method } = JSON.parse((await text(req)) || '{}') as { id?: number; method: string }
        if (id === undefined) return res.writeHead(202).end()
        if (method === 'server/discover') return res.writeHead(404).end()
        if (method === 'tools/list' && lists++ > 0 && what.includes('fails')) return res.writeHead(500).end()
        const result = method !== 'tools/list' ? INITIALIZED : lists === 1 ? first : second()
        return res.writeHead(200, { 'content-type': 'application/json' }).end(answer(id, result))
      }
      const { tools, problems } = await open({
        one: { url: await listen(createHttpServer((q, r) => void handle(q, r))) },
      })
      expect(tools.map(({ name }) => name)).to.deep.equal(['mcp__one__good'])
      expect(problems).to.have.length(1)
      expect(problems[0]).to.match(problem)
    })
  }

  it('a tool that its server calls read-only runs in plan mode, and one that it calls idempotent again after a failure, only where MCP_CONFIG trusts the server', async () => {
    const inputSchema = { type: 'object' }
    const tools = [
      { name: 'reads', inputSchema, annotations: { readOnlyHint: true } },
      { name: 'writes', inputSchema, annotations: { readOnlyHint: 'true' } },
      { name: 'sets', inputSchema, annotations: { idempotentHint: true } },
    ]
    const url = await serveAnswers((method) => (method === 'tools/list' ? { tools } : INITIALIZED))
    const opened = await open({ known: { url, trusted: true }, strange: { url }, none: { url, trusted: false } })
    const namesOf = (key: 'isReadOnly' | 'isIdempotent') =>
      opened.tools.filter((tool) => tool[key]).map(({ name }) => name)
    expect(namesOf('isReadOnly')).to.deep.equal(['mcp__known__reads'])
    expect(namesOf('isIdempotent')).to.deep.equal(['mcp__known__sets'])
    expect(opened.tools).to.have.length(9)
  })

  it('D5.2: title and hints of a tool are known, a long description is cut with a line for the log, and disabledTools are not offered', async () => {
    const inputSchema = { type: 'object', required: ['depth'], properties: { depth: { default: 3 } } }
    const annotations = { title: 'Erase', destructiveHint: true, readOnlyHint: 'no' }
    const tools = [
      { name: 'erase', inputSchema, annotations, description: 'x'.repeat(5_000) },
      { name: 'off', inputSchema },
    ]
    const calls: unknown[] = []
    const url = await serveAnswers((method, params) => {
      if (method === 'tools/call') calls.push(params)
      return method === 'tools/list' ? { tools } : { ...INITIALIZED, instructions: 'Ask first.', content: [] }
    })
    const { call, problems, servers, ...opened } = await open({ one: { url, disabledTools: ['off'] } })
    const [tool, ...others] = opened.tools
    expect(others).to.deep.equal([])
    expect(tool).to.deep.include({ title: 'Erase', hints: { destructive: true } })
    expect(tool?.description).to.have.length(4_001)
    expect(tool?.describe({})).to.equal(
      'Call the tool erase of the MCP server one (Erase). The server says that it may destroy or overwrite something.',
    )
    expect(problems).to.deep.equal([
      'The tool erase of the MCP server one is offered, but its description is cut at 4000 characters.',
    ])
    expect(servers()).to.deep.equal([{ name: 'one', state: 'ready', instructions: 'Ask first.' }])
    await call('mcp__one__erase', {})
    expect(calls).to.have.deep.nested.property('[0].arguments', { depth: 3 })
  })

  it('the pattern of an output schema takes no time: the model reads the output as text', async () => {
    const slow = { type: 'string', pattern: '^(a+)+$' }
    const object = (properties: object) => ({ type: 'object', properties })
    const tool = { name: 'slow', inputSchema: object({}), outputSchema: object({ text: slow }) }
    const structuredContent = { text: `${'a'.repeat(40)}!` }
    const server = await serveAnswers((method) => {
      if (method === 'tools/list') return { tools: [tool] }
      return method === 'tools/call' ? { content: [], structuredContent } : INITIALIZED
    })
    const { call } = await open({ one: { url: server } })
    expect(await call('mcp__one__slow', {})).to.deep.equal({
      output: JSON.stringify(structuredContent),
      isError: false,
    })
  })

  it('D5.2: a server that is down at start is tried again, and its tools are offered then', async () => {
    const url = await refusedUrl()
    const opened = await open({ late: { url } }, { retryMs: 5 })
    expect(opened.tools).to.deep.equal([])
    const added = Promise.withResolvers<readonly Tool[]>()
    opened.onChange(({ tools }) => added.resolve(tools))
    await serveAnswers(
      () => ({ ...INITIALIZED, tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
      Number(new URL(url).port),
    )
    expect((await added.promise).map(({ name }) => name)).to.deep.equal(['mcp__late__echo'])
    await until(() => opened.news.length > 0, { what: 'the line of the log' })
    expect(opened.news).to.deep.equal(['The MCP server late can be reached now and offers 1 tool.'])
  })

  it('a compressed answer and one that is too long are refused, whatever they would hold', async () => {
    const zeros = gzipSync(Buffer.alloc(50_000_000))
    for (const [headers, body] of [
      [{ 'content-encoding': 'gzip' }, zeros],
      [{}, Buffer.alloc(2_000_000, ' ')],
    ] as const) {
      const server = createHttpServer((_req, res) => {
        res.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body)
      })
      const url = await listen(server)
      const before = process.memoryUsage().rss
      const { tools, problems } = await open({ one: { url } })
      expect([tools.length, problems.length]).to.deep.equal([0, 1])
      expect(process.memoryUsage().rss - before).to.be.lessThan(50_000_000)
    }
  })

  it('a server that does not answer is left out after the connect timeout, and its process is ended', async () => {
    const silent = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const pidFile = join(await makeFolder(), 'pid')
    const mute = { command: '/bin/sh', args: ['-c', `echo $$ > ${pidFile}; exec sleep 1000`] }
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`
    const { tools, problems } = await open({ mute, silent: { url } }, { startTimeoutMs: 300 })
    silent.close()
    expect([tools.length, problems.length]).to.deep.equal([0, 2])
    expect(isRunning(Number(await readFile(pidFile, 'utf8')))).to.equal(false)
  })

  it('a crash of a stdio server is a tool error that says so, and the next call starts the server again', async () => {
    const { call } = await open({ one: STDIO })
    expect(await call('mcp__one__crash', {})).to.deep.equal({
      output:
        'The MCP server one ended during the call; the call may have been carried out. It is started again when it is called again.',
      isError: true,
    })
    const both = await Promise.all([call('mcp__one__pids', {}), call('mcp__one__pids', {})])
    const [first, second] = both.map(({ output }) => output.split(' ')[0])
    expect(first).to.match(/^\d+$/).and.to.equal(second) // Both calls use one new server.
  })

  it('every request carries the headers of the config', async () => {
    const server = await serve(true)
    const { call } = await open({ one: { url: server.url, headers: { 'X-Key': 'k1' } } })
    await call('mcp__one__echo', { text: 'a' })
    expect(new Set(server.requests.map((headers) => headers.get('x-key')))).to.deep.equal(new Set(['k1']))
  })

  it("a stdio server gets the config's environment and no secret from ours", async () => {
    process.env['SECRET_OF_THE_TEST'] = 'hunter2'
    try {
      const { call } = await open({ one: STDIO })
      const names = (await call('mcp__one__environment', {})).output.split(' ')
      expect(names).to.include('GIVEN').and.to.include('PATH').and.not.to.include('SECRET_OF_THE_TEST')
    } finally {
      delete process.env['SECRET_OF_THE_TEST']
    }
  })

  it('close ends the servers and all their processes, also those that ignore SIGTERM; later calls are tool errors', async () => {
    const { call, close } = await open({ one: STDIO })
    const pids = (await call('mcp__one__pids', {})).output.split(' ').map(Number)
    expect(pids.filter(isRunning)).to.have.length(2)
    await close()
    expect(pids.filter(isRunning)).to.deep.equal([])
    expect((await call('mcp__one__echo', { text: 'a' })).output).to.include('cannot be reached')
  })

  it('a run that ends while the server is starting again does not wait for it', async () => {
    const { call } = await open({ one: STDIO })
    await call('mcp__one__crash', {})
    const run = new AbortController()
    const calling = call('mcp__one__echo', { text: 'a' }, { signal: run.signal })
    run.abort()
    expect((await calling).output).to.equal('The call was stopped because the run ended.')
  })
})
