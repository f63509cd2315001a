import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from '../../../support/until.ts'
import { call, callPatiently } from '../../api.ts'
import type { Attack, AttackPlan, Tenant } from '../attack.ts'
import { useFlows, usePlans } from '../neighbour.ts'

/** What a tenant can take with sessions, runs and requests alone. */
export const RUN_ATTACKS: readonly AttackPlan[] = [
  { title: 'all runs', begin: takeRuns },
  { title: 'all sessions', begin: takeSessions },
  { title: 'all memory for conversations', begin: takeMemory },
  { title: 'stalled bodies', begin: stallBodies, prepare: usePlans },
  { title: 'unread answers', begin: leaveUnread },
  { title: 'requests from many addresses', begin: flood, prepare: useFlows },
]

const isRefused = ({ status }: { status: number }) => status === 429
const timesOf = (count: number) => Array.from({ length: count }, (_, i) => i)

async function takeRuns({ url, headers }: Tenant): Promise<Attack> {
  const abort = new AbortController()
  const start = () =>
    fetch(`${url}/agent/run`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: '/hang' }),
      signal: abort.signal,
    })
  const answers = await Promise.all(timesOf(80).map(start))
  for (const answer of answers) void answer.arrayBuffer().catch(() => {}) // Reads until the attack ends.
  return { refused: () => answers.filter(isRefused).length, end: () => abort.abort() }
}

async function takeSessions({ url, headers }: Tenant): Promise<Attack> {
  const create = () => call(url, { method: 'POST', path: '/sessions', headers, body: {} })
  const replies = await Promise.all(timesOf(60).map(create))
  const ids = replies.flatMap(({ text }) => (JSON.parse(text) as { session_id?: string }).session_id ?? [])
  const remove = (id: string) => callPatiently(url, { method: 'DELETE', path: `/sessions/${id}`, headers })
  return { refused: () => replies.filter(isRefused).length, end: () => void Promise.all(ids.map(remove)) }
}

async function takeMemory({ url, headers }: Tenant): Promise<Attack> {
  const { text } = await call(url, { method: 'POST', path: '/sessions', headers, body: {} })
  const { session_id: id = '' } = JSON.parse(text) as { session_id?: string }
  let refused = 0
  for (let i = 0; i < 40 && refused === 0; i++) {
    const body = { prompt: `/say ok\n${'x'.repeat(99_000)}` }
    if (isRefused(await call(url, { method: 'POST', path: `/sessions/${id}/messages`, headers, body }))) refused++
  }
  return {
    refused: () => refused,
    end: () => void callPatiently(url, { method: 'DELETE', path: `/sessions/${id}`, headers }),
  }
}

/** Fifteen bodies of 10 MB that end before their last megabyte. */
async function stallBodies(hostile: Tenant): Promise<Attack> {
  const chunk = Buffer.alloc(1_000_000, ' ')
  const head = headOf(hostile, 'POST', '/agent/run', ['Content-Type: application/json', 'Content-Length: 10000000'])
  const sockets = await Promise.all(timesOf(15).map(() => open(hostile)))
  let refused = 0
  for (const socket of sockets) {
    socket.once('data', (bytes: Buffer) => (refused += String(bytes).includes(' 429 ') ? 1 : 0))
    socket.write(head)
    for (let i = 0; i < 9 && socket.writable; i++) if (!socket.write(chunk)) await settled(socket)
  }
  return { refused: () => refused, end: () => destroyAll(sockets) }
}

const UNREAD = 40

/** Answers of about 2 MB as JSON that nobody reads. No limit refuses them: each is cut off after 30 s. */
async function leaveUnread(hostile: Tenant): Promise<Attack> {
  const { url, headers } = hostile
  const record = () => {
    const body = { prompt: `/say ok\n${'\u0001'.repeat(90_000)}`, customer_id: 'unread' }
    return call(url, { method: 'POST', path: '/agent/run', headers, body })
  }
  await Promise.all(timesOf(6).map(record))
  const sockets = await Promise.all(timesOf(UNREAD).map(() => open(hostile)))
  for (const socket of sockets) socket.pause().write(headOf(hostile, 'GET', '/customers/unread/ledger', []))
  return { refused: () => UNREAD, end: () => destroyAll(sockets) }
}

/** Four requests at a time from changing addresses, until the attack ends. */
async function flood({ url, headers }: Tenant): Promise<Attack> {
  const over = new AbortController()
  let refused = 0
  const client = async (number: number) => {
    for (let i = 0; !over.signal.aborted; i = (i + 1) % 250) {
      const from = { 'x-forwarded-for': `203.0.${number}.${i}` }
      if (isRefused(await call(url, { method: 'GET', path: '/tools', headers: { ...headers, ...from } }))) refused++
    }
  }
  const clients = timesOf(4).map(client)
  await Promise.race([until(() => refused > 0, { what: 'the first refusal', withinMs: 30_000 }), ...clients])
  return { refused: () => refused, end: () => over.abort() }
}

const headOf = ({ url, headers }: Tenant, method: string, path: string, more: readonly string[]): string => {
  const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const { host, pathname } = new URL(url)
  return [`${method} ${pathname}${path} HTTP/1.1`, `Host: ${host}`, ...own, ...more, '', ''].join('\r\n')
}

async function open({ url }: Tenant): Promise<Socket> {
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname).on('error', () => {}) // The server may cut it off.
  await once(socket, 'connect')
  return socket
}

/** Resolves when the socket takes more, or is closed. */
const settled = (socket: Socket) => Promise.race([once(socket, 'drain'), once(socket, 'close')])

function destroyAll(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy()
}
