import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Child, spawnChild } from './local-services/child.ts'
import { openRedis } from './local-services/redis.ts'

// Runs gateways and workers as processes of their own (D1.1), started by scripts/cluster.
const { values } = parseArgs({
  options: {
    gateways: { type: 'string', default: '2' },
    workers: { type: 'string', default: '2' },
    executors: { type: 'string', default: '1' },
    'no-restart': { type: 'boolean', default: false },
  },
})

type Role = 'gateway' | 'worker'
type Member = { role: Role; id: string; pid: number; port: number | null; ops_port: number | null }

const READY_MS = 30_000
const STOP_MS = 50_000
const RESTART_MS = 500
const EXIT_CONFIG = 78

const dataDir = resolve(process.env['DATA_DIR'] ?? './data')
const say = (line: string) => console.log(line)
const members = new Map<string, { child: Child; member: Member }>()
let isStopping = false

const redis = await openRedis(process.env['REDIS_URL'], say)
const base = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value ? [[name, value]] : [])))
if (!base['MODEL'] && !base['MODEL_PROVIDER']) {
  say('No model is configured: MODEL_PROVIDER=demo.')
  base['MODEL_PROVIDER'] = 'demo'
}
say('Queued work has no executors yet: --executors has no effect.')

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(0))

const firstPort = Number(base['PORT'] ?? 8080)
const slots = [
  ...Array.from({ length: Number(values.workers) }, (_, i) => ({
    name: `worker ${i + 1}`,
    role: 'worker' as const,
    port: null,
  })),
  ...Array.from({ length: Number(values.gateways) }, (_, i) => ({
    name: `gateway ${i + 1}`,
    role: 'gateway' as const,
    port: firstPort + i,
  })),
]
try {
  await Promise.all(slots.map(start))
  await writeMembers()
  say(`The cluster is ready: http://127.0.0.1:${firstPort}/api/v1`)
} catch (cause) {
  console.error(cause instanceof Error ? cause.message : cause)
  await stop(1)
}

async function start(slot: (typeof slots)[number]): Promise<void> {
  const { name, role, port } = slot
  const env = {
    ...base,
    REDIS_URL: redis.url,
    DATA_DIR: dataDir,
    NODE_COMPILE_CACHE: base['NODE_COMPILE_CACHE'] ?? resolve('node_modules/.cache/compile'),
    ...(port !== null && { PORT: String(port) }),
  }
  const args = ['--max-semi-space-size=4', '--heap-growing-percent=50', `services/${role}/main.ts`]
  const child = await spawnChild({ name, command: process.execPath, args, env })
  void child.exited.then(({ code }) => onExit(slot, code, child.output))
  const [line] = await child.line(/^\{.*"msg":"listening".*\}$/m, READY_MS)
  const { id } = JSON.parse(line) as { id: string }
  members.set(name, { child, member: { role, id, pid: child.pid, port, ops_port: null } })
  say(`${name}: ${id}, pid ${child.pid}${port === null ? '' : `, port ${port}`}`)
}

async function onExit(slot: (typeof slots)[number], code: number | null, output: string): Promise<void> {
  members.delete(slot.name)
  if (isStopping) return
  if (code === EXIT_CONFIG) {
    console.error(output.trim())
    return stop(EXIT_CONFIG)
  }
  if (values['no-restart']) return writeMembers()
  say(`${slot.name} has died (${code}) and is started again.`)
  setTimeout(() => {
    if (!isStopping) start(slot).then(writeMembers, (cause: unknown) => console.error(cause))
  }, RESTART_MS)
}

async function writeMembers(): Promise<void> {
  await mkdir(dataDir, { recursive: true })
  const processes = [...members.values()].map(({ member }) => member)
  const text = JSON.stringify({ processes, redis_url: redis.url, mongodb_url: null }, null, 2)
  await writeFile(join(dataDir, 'cluster.json'), `${text}\n`)
}

async function stop(code: number): Promise<void> {
  if (isStopping) return
  isStopping = true
  await Promise.all([...members.values()].map(({ child }) => child.stop(STOP_MS)))
  await redis.server?.stop()
  await rm(join(dataDir, 'cluster.json'), { force: true })
  process.exit(code)
}
