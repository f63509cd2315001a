import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Play, type Received } from './play.ts'
import { readScenarios, type Scenario } from './scenario.ts'

export type ConformanceServer = {
  url: string
  scenarios: readonly Scenario[]
  /** The play of a run; the newest one of a scenario, by its name. */
  play(runOrScenario: string): Play | undefined
  close(): Promise<void>
}

/** Serves each scenario under `/<name>`, which stands for the API's base address. */
export async function startConformanceServer(port = 0): Promise<ConformanceServer> {
  const scenarios = readScenarios()
  const plays: Play[] = []
  const newest = new Map<string, Play>()
  const play = (id: string) => newest.get(id) ?? plays.findLast(({ runId }) => runId === id)

  const start = (scenario: Scenario, received: Received): void => {
    const key = received.req.headers['idempotency-key']
    const going = newest.get(scenario.head.name)
    const isRepeated = going?.takesStart(key === undefined ? undefined : String(key)) ?? false
    const taken = isRepeated && going ? going : new Play(scenario)
    if (taken !== going) plays.push(taken)
    newest.set(scenario.head.name, taken)
    taken.receive(received)
  }

  /** A request that names no run: it is for the play that goes on, or begins one. */
  const join = (scenario: Scenario, received: Received): void => {
    const going = newest.get(scenario.head.name)
    if (going && !going.isOver) going.receive(received)
    else start(scenario, received)
  }

  const server = createServer((req, res) => {
    allowOrigins(res)
    if (req.method === 'OPTIONS') res.writeHead(204).end()
    else
      answer(req, res, { scenarios, play, start, join }).catch((cause: unknown) => {
        res.writeHead(500).end(String(cause))
      })
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, scenarios, play, close: () => closeAll(server) }
}

type Stage = {
  scenarios: readonly Scenario[]
  play(id: string): Play | undefined
  start(scenario: Scenario, received: Received): void
  join(scenario: Scenario, received: Received): void
}

async function answer(req: IncomingMessage, res: ServerResponse, stage: Stage): Promise<void> {
  const { scenarios, play, start, join } = stage
  const body = await text(req)
  const { pathname } = new URL(req.url ?? '/', 'http://localhost')
  const [, name = '', noun, id = '', rest] = pathname.split('/')
  if (pathname === '/')
    return sendJson(
      res,
      200,
      scenarios.map(({ head }) => head),
    )
  if (noun === 'verdict') return sendVerdict(res, play(name))
  const scenario = scenarios.find(({ head }) => head.name === name)
  if (!scenario) return sendJson(res, 404, { error: { type: 'not_found_error', message: `no scenario ${name}` } })
  const received = { req, res, body }
  if ((noun === 'agent' && id === 'run') || (noun === 'flows' && rest === 'run')) return start(scenario, received)
  if (noun === 'plans' || noun === 'events' || noun === 'permissions') return join(scenario, received)
  const going = play(decodeURIComponent(id))
  if (!going) return sendJson(res, 404, { error: { type: 'not_found_error', message: `no ${noun} ${id}` } })
  if (noun === 'runs' && rest === 'events') going.receive(received)
  else if (noun === 'sessions' && rest === 'permissions') going.receiveReply(received)
  else sendJson(res, 200, { run_id: going.runId, status: 'running' })
}

/** The faults of the client, once the scenario is over. */
async function sendVerdict(res: ServerResponse, play: Play | undefined): Promise<void> {
  await play?.over
  sendJson(res, play ? 200 : 404, { problems: play?.problems ?? ['it was not started'], resent: play?.resent ?? 0 })
}

function sendJson(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

function allowOrigins(res: ServerResponse): void {
  res.setHeader('Access-Control-Allow-Origin', '*')
  res.setHeader('Access-Control-Allow-Headers', '*, Authorization')
  res.setHeader('Access-Control-Allow-Methods', '*')
  res.setHeader('Access-Control-Expose-Headers', 'X-Run-ID, Retry-After')
}

async function closeAll(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}
