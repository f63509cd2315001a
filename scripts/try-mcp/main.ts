import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { AUDIENCE, Issuer } from '../../test/support/issuer/issuer.ts'
import { newSigner } from '../../test/support/issuer/signer.ts'
import { answerDirectives } from '../../test/support/model-server/directives.ts'
import { type Product, startMembers, startStandalone } from '../../test/support/product.ts'
import { until } from '../../test/support/until.ts'
import { type Installed, install } from './install.ts'

const USAGE = `usage: npm run try:mcp -- [--form standalone|cluster] [--folder PATH]

Installs MCP servers of npm and PyPI, and lets the product use them unmodified: their lists, calls of each, and a stateful one (a browser, where
CHROMIUM names one) that two sessions and two tenants use at the same time, of which none may see anything of another. It takes minutes.
`

const { values } = parseArgs({
  options: {
    form: { type: 'string', default: 'standalone' },
    folder: { type: 'string', default: join(tmpdir(), 'agent-engine-try-mcp') },
    help: { type: 'boolean', default: false },
  },
})

const say = (line: string) => console.log(line)

const serversOf = ({ bin, python, script }: Installed, folder: string) => {
  const { CHROMIUM } = process.env
  const browser = { command: join(bin, 'playwright-mcp'), scope: 'session' }
  const flags = ['--headless', '--isolated', '--no-sandbox', '--executable-path', CHROMIUM ?? '']
  return {
    files: { command: join(bin, 'mcp-server-filesystem'), args: [folder], scope: 'shared' },
    everything: { command: join(bin, 'mcp-server-everything') },
    memory: { command: join(bin, 'mcp-server-memory'), env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
    thinking: { command: join(bin, 'mcp-server-sequential-thinking') },
    time: { command: join(python, 'mcp-server-time') },
    git: { command: join(python, 'mcp-server-git'), args: ['--repository', join(folder, 'repo')] },
    fetch: { command: join(python, 'mcp-server-fetch') },
    fast: { command: join(python, 'python'), args: [script], scope: 'session' },
    ...(CHROMIUM && { browser: { ...browser, args: flags } }),
  }
}

type Headers = Record<string, string>
type Caller = { headers: Headers; session: string }

async function callTool(product: Product, { headers, session }: Caller, name: string, input: object) {
  const prompt = `/tool mcp__${name} ${JSON.stringify(input)}`
  const stream = await product.stream(`/sessions/${session}/messages`, { prompt }, headers)
  await stream.all()
  const { data } = stream.frames.find(({ event }) => event === 'tool_result') ?? {}
  return {
    output: String(data?.['output'] ?? stream.frames.at(-1)?.data['message']),
    isError: data?.['is_error'] !== false,
  }
}

async function calledOnceThere(product: Product, caller: Caller, [name, input]: [string, object]) {
  const called = await callTool(product, caller, name, input)
  return called.output.startsWith('There is no tool') ? undefined : called
}

const CALLS = (folder: string): [string, object][] => [
  ['files__list_directory', { path: folder }],
  ['everything__echo', { message: 'hello' }],
  ['everything__get-sum', { a: 1, b: 2 }],
  ['everything__get-tiny-image', {}],
  ['everything__get-structured-content', { location: 'Chicago' }],
  ['everything__trigger-long-running-operation', { duration: 1, steps: 20 }],
  ['memory__read_graph', {}],
  ['thinking__sequentialthinking', { thought: 'x', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }],
  ['time__get_current_time', { timezone: 'Europe/Berlin' }],
  ['git__git_status', { repo_path: join(folder, 'repo') }],
  ['fast__note', { text: 'hello' }],
]

/** A call that changes the state of a server for one session, and what only that session may then see. */
const STATEFUL = (server: string, word: string): [string, object] =>
  server === 'browser'
    ? ['browser__browser_navigate', { url: `data:text/html,<h1>${word}</h1>` }]
    : ['fast__note', { text: word }]

async function checkIsolation(product: Product, callers: Caller[], server: string): Promise<string> {
  const words = callers.map((_, i) => `word${i}`)
  await Promise.all(callers.map((caller, i) => callTool(product, caller, ...STATEFUL(server, words[i] ?? ''))))
  const look: [string, object] = server === 'browser' ? ['browser__browser_snapshot', {}] : STATEFUL(server, 'more')
  const seen = await Promise.all(callers.map((caller) => callTool(product, caller, ...look)))
  const wrong = seen.filter(({ output }, i) => words.some((word, j) => output.includes(word) !== (i === j)))
  for (const { output } of wrong) say(`  ${output.slice(0, 300)}`)
  if (wrong.length > 0) throw new Error(`${wrong.length} sessions of ${server} saw what is not theirs`)
  return `${callers.length} sessions of 2 tenants on ${server}: each saw its own alone`
}

async function openSession(product: Product, headers: Headers): Promise<Caller> {
  const { body } = await product.call('POST', '/sessions', {}, headers)
  return { headers, session: (body as { session_id: string }).session_id }
}

async function main(): Promise<void> {
  const installed = await install(values.folder, say)
  say(`servers: ${installed.versions}`)
  const mcpServers = serversOf(installed, values.folder)
  const config = join(values.folder, 'mcp.json')
  await writeFile(config, JSON.stringify({ mcpServers }))
  const issuer = await Issuer.start([await newSigner('RS256', 'r1')])
  const start = values.form === 'cluster' ? startMembers : startStandalone
  const begun = performance.now()
  const product = await start({
    ...{ OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, MCP_CONFIG: config, TOOL_PERMISSIONS: '{"mcp__*":"allow"}' },
  })
  product.model.otherwise(answerDirectives)
  try {
    say(`the ${values.form} form serves after ${Math.round(performance.now() - begun)} ms`)
    const tenants = await Promise.all(
      ['acme', 'globex'].map(async (client) => ({ authorization: `Bearer ${await issuer.token(client)}` })),
    )
    const [first = {}, second = {}] = tenants
    const states = async () => {
      const { body } = await product.call('GET', '/tools', undefined, first)
      return (body as { mcp_servers: { name: string; state: string }[]; count: number }).mcp_servers
    }
    say(`at once: ${(await states()).map(({ name, state }) => `${name} ${state}`).join(', ')}`)
    await until(async () => (await states()).every(({ state }) => state === 'ready'), { what: 'all servers' })
    const callers = [
      await openSession(product, first),
      await openSession(product, first),
      await openSession(product, second),
    ]
    const [caller] = callers
    for (const [name, input] of caller ? CALLS(values.folder) : []) {
      // Each worker starts servers of its own, and calls a session's tools without those that are not ready.
      const { output, isError } = await until(() => calledOnceThere(product, caller as Caller, [name, input]), {
        what: name,
      })
      say(`${isError ? 'FAILED ' : 'ok     '} ${name}: ${output.replaceAll('\n', ' ').slice(0, 100)}`)
      if (isError) process.exitCode = 1
    }
    for (const server of ['fast', 'browser'].filter((each) => each in mcpServers))
      say(await checkIsolation(product, callers, server))
  } finally {
    await product.close()
    await issuer.close()
  }
}

if (values.help) console.log(USAGE)
else await main()
