import { join } from 'node:path'
import type { Installed } from './install.ts'
import { report } from './report.ts'
import { type Call, type Caller, callTool, callWhenThere, type Trial } from './trial.ts'

/** The entries of MCP_CONFIG. A browser is one of them where CHROMIUM names one. */
export function serversOf({ bin, python, go, script }: Installed, folder: string) {
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
    gomcp: { command: go },
    ...(CHROMIUM && { browser: { ...browser, args: flags } }),
  }
}

/** Calls, and what their answers have in them. */
const CALLS = (folder: string): [...Call, says: string][] => [
  ['files__list_directory', { path: folder }, '[FILE] mcp.json'],
  ['everything__echo', { message: 'hello' }, 'hello'],
  ['everything__get-sum', { a: 1, b: 2 }, '3'],
  ['everything__get-tiny-image', {}, 'image'],
  ['everything__get-structured-content', { location: 'Chicago' }, 'temperature'],
  ['everything__trigger-long-running-operation', { duration: 1, steps: 20 }, 'completed'],
  ['memory__read_graph', {}, 'entities'],
  [
    'thinking__sequentialthinking',
    { thought: 'x', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
    'thoughtNumber',
  ],
  ['time__get_current_time', { timezone: 'Europe/Berlin' }, 'Europe/Berlin'],
  ['git__git_status', { repo_path: join(folder, 'repo') }, 'branch'],
  ['fast__note', { text: 'hello' }, 'hello'],
  ['gomcp__echo', { message: 'hello' }, 'hello'],
  ['gomcp__add', { a: 1, b: 2 }, '3'],
  ['gomcp__getTinyImage', {}, 'image'],
  ['gomcp__get_resource_link', {}, 'file:///example/document.pdf'],
  ['gomcp__longRunningOperation', { duration: 1, steps: 20 }, 'completed'],
]

/** Calls each server, and the stateful ones in two sessions and by two tenants. */
export async function tryServers({ product, callers }: Trial, folder: string): Promise<void> {
  const [caller] = callers
  for (const [name, input, says] of caller ? CALLS(folder) : []) {
    const { output, isError } = await callWhenThere(product, caller as Caller, [name, input])
    report(!isError && output.includes(says), `${name}: ${output}`)
  }
  for (const server of ['fast', ...(process.env['CHROMIUM'] ? ['browser'] : [])])
    await checkIsolation({ product, callers }, server)
}

/** A call that changes the state of a server for one session, and what only that session may then see. */
const STATEFUL = (server: string, word: string): Call =>
  server === 'browser'
    ? ['browser__browser_navigate', { url: `data:text/html,<h1>${word}</h1>` }]
    : ['fast__note', { text: word }]

async function checkIsolation({ product, callers }: Pick<Trial, 'product' | 'callers'>, server: string) {
  const words = callers.map((_, i) => `word${i}`)
  await Promise.all(callers.map((caller, i) => callTool(product, caller, STATEFUL(server, words[i] ?? ''))))
  const look: Call = server === 'browser' ? ['browser__browser_snapshot', {}] : STATEFUL(server, 'more')
  const seen = await Promise.all(callers.map((caller) => callTool(product, caller, look)))
  const wrong = seen.filter(({ output }, i) => words.some((word, j) => output.includes(word) !== (i === j)))
  const subject = `${callers.length} sessions of 2 tenants on ${server}`
  report(wrong.length === 0, `${subject}: ${wrong[0]?.output ?? 'each saw its own alone'}`)
}
