import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { allOf, type Guarantee, none, noneOf, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { type Attempt, FetchingModel, type Target, TYPES, tryInstance, tryPut } from '../egress/doors.ts'
import { rebind } from '../egress/rebinding.ts'
import { METADATA_SPELLINGS, PRIVATE_SPELLINGS } from '../egress/spellings.ts'
import { storeInstances } from '../egress/stored.ts'
import { Trap } from '../egress/trap.ts'
import { Processes } from '../processes.ts'

const WANTED_SPELLINGS = 120
const REFUSED_WITHIN_MS = 5_000
const REDIRECTS = [301, 302, 303, 307, 308]

/** Points every way out that tenants and models have at addresses that must not be reached. */
export const egress: Scenario = {
  id: 'P14',
  promise: 'no address that a tenant supplies opens a connection to a private one, however it is spelled',
  run,
}

async function run({ isFull, random }: ScenarioOptions): Promise<Guarantee[]> {
  await using trap = await Trap.open()
  const shift = isFull ? undefined : random.between(0, TYPES.length - 1)
  const guarantees = [
    ...(await tryPrivate(trap, shift)),
    ...(await tryMetadata(trap, shift)),
    none('connections by names that change their address', await tryRebinding(trap, random.fork('names'), isFull)),
  ]
  return [...guarantees, none('connections to the guarded listener in all', trap.connections)]
}

/** Every type for every URL in the long form; in the short one the types take turns. */
function targetsOf(urls: readonly string[], shift: number | undefined): Target[] {
  return urls.flatMap((url, i) => {
    const types = shift === undefined ? TYPES : TYPES.slice((i + shift) % TYPES.length).slice(0, 1)
    return types.map((type) => ({ name: `${type}-${i}`, type, url }))
  })
}

/** The normalised URLs that a server has stored while it allowed private addresses. */
const storedOf = (targets: readonly Target[]): Target[] =>
  targets.flatMap((target) => {
    const url = URL.parse(target.url)
    return url && /^https?:$/.test(url.protocol) ? [{ ...target, url: url.href }] : []
  })

async function tryPrivate(trap: Trap, shift: number | undefined): Promise<Guarantee[]> {
  const urls = PRIVATE_SPELLINGS.map((spelling) => spelling.replace('PORT', String(trap.port)))
  const attempts = await tryAll(urls, shift, 'false')
  return [
    { title: 'spellings of private addresses', value: urls.length, unit: '', goal: { atLeast: WANTED_SPELLINGS } },
    ...guaranteesOf('private addresses', attempts),
    none('connections to them', trap.connections, `of ${attempts.length} attempts`),
  ]
}

async function tryMetadata(trap: Trap, shift: number | undefined): Promise<Guarantee[]> {
  const attempts = await tryAll(METADATA_SPELLINGS, shift, 'true')
  const unclear = attempts.filter(({ message }) => !/may not be reached|egress_refused/.test(message))
  return [
    ...guaranteesOf('metadata addresses, where private ones are allowed,', attempts),
    noneOf('of them not refused for their address', unclear.map(describe)),
    ...(await tryRedirects(trap)),
  ]
}

/** Stores the addresses, starts a server on the database, and tries all doors. */
async function tryAll(
  urls: readonly string[],
  shift: number | undefined,
  allowsPrivateUrls: string,
): Promise<Attempt[]> {
  await using model = await FetchingModel.start()
  await using processes = new Processes({
    MASTER_KEY: randomBytes(32).toString('base64'),
    ALLOW_PRIVATE_URLS: allowsPrivateUrls,
    ...model.env,
  })
  const targets = targetsOf(urls, shift)
  const stored = storedOf(targets)
  await storeInstances(processes.dataDir, stored)
  const { url: base, stop } = await processes.start('standalone')
  const attempts = await model.fetchAll(base, urls)
  for (const target of targets) {
    const put = await tryPut(base, target)
    // Whether a name leads to a private address is known when it is looked up: at each call, which `tryInstance` makes.
    if (put.outcome !== '200' || !isName(target.url)) attempts.push(put)
  }
  for (const target of stored) attempts.push(...(await tryInstance(base, target)))
  await stop()
  return attempts
}

const isName = (url: string): boolean => /[a-z]$/i.test(URL.parse(url)?.hostname.replace(/\.$/, '') ?? '')

function guaranteesOf(what: string, attempts: readonly Attempt[]): Guarantee[] {
  const doors = ['PUT instance', 'discover', 'probe', 'run', 'transcription', 'WebFetch']
  const tried = new Set(attempts.map(({ door }) => door))
  const open = attempts.filter(({ outcome }) => !/^(4\d\d|502|503|error|tool error)$/.test(outcome))
  return [
    allOf(`doors tried with ${what}`, doors.filter((door) => tried.has(door)).length, doors.length),
    noneOf(`attempts on ${what} without a clear refusal`, open.map(describe)),
    slowest(
      `time of an attempt on ${what}`,
      attempts.filter(({ door }) => door !== 'WebFetch').map(({ ms }) => ms),
      REFUSED_WITHIN_MS,
    ),
  ]
}

const describe = ({ door, url, outcome, message }: Attempt) => `${door} ${url}: ${outcome} ${message.slice(0, 200)}`

/** A server that may be called redirects to one that may not, and to another that may: nobody follows. */
async function tryRedirects(trap: Trap): Promise<Guarantee[]> {
  const redirecting = createServer((req, res) => {
    const [, status = '302', to = ''] = /^\/(\d+)\/(trap|metadata)/.exec(req.url ?? '') ?? []
    const location = to === 'trap' ? `http://127.0.0.1:${trap.port}/` : 'http://169.254.169.254/latest/'
    res.writeHead(Number(status), { location }).end()
  }).listen(0, '127.0.0.1')
  await once(redirecting, 'listening')
  const origin = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}`
  const before = trap.connections
  await using model = await FetchingModel.start()
  await using processes = new Processes({
    MASTER_KEY: randomBytes(32).toString('base64'),
    ALLOW_PRIVATE_URLS: 'true',
    ...model.env,
  })
  const targets = REDIRECTS.flatMap((status, i) =>
    ['trap', 'metadata'].map((to, j): Target => {
      const type = TYPES[(2 * i + j) % TYPES.length] ?? 'openai'
      return { name: `r${status}-${to}`, type, url: `${origin}/${status}/${to}` }
    }),
  )
  await storeInstances(processes.dataDir, targets)
  const { url: base, stop } = await processes.start('standalone')
  const toMetadata = REDIRECTS.map((status) => `${origin}/${status}/metadata`)
  const attempts = await model.fetchAll(base, toMetadata)
  for (const target of targets) attempts.push(...(await tryInstance(base, target)))
  await stop()
  redirecting.close()
  redirecting.closeAllConnections()
  const isClear = ({ outcome, message }: (typeof attempts)[number]) =>
    /^(4\d\d|502|error|tool error)$/.test(outcome) || message.includes('which was not fetched')
  const open = attempts.filter((attempt) => !isClear(attempt))
  return [
    noneOf('redirects without a clear refusal', open.map(describe)),
    none('connections by redirects', trap.connections - before, `of ${attempts.length} attempts`),
  ]
}

/** Returns the connections. */
async function tryRebinding(trap: Trap, random: ScenarioOptions['random'], isFull: boolean): Promise<number> {
  const before = trap.connections
  await rebind(trap, random, isFull ? 500 : 15)
  return trap.connections - before
}
