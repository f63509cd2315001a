import { randomBytes } from 'node:crypto'
import { allOf, type Guarantee, none, noneOf, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { type Attempt, FetchingModel, type Target, TYPES, tryInstance, tryPut } from '../egress/doors.ts'
import { rebind } from '../egress/rebinding.ts'
import { Redirecting } from '../egress/redirecting.ts'
import { METADATA_SPELLINGS, PRIVATE_SPELLINGS } from '../egress/spellings.ts'
import { storeInstances } from '../egress/stored.ts'
import { Trap } from '../egress/trap.ts'
import { Processes } from '../processes.ts'

const WANTED_SPELLINGS = 120
const REFUSED_WITHIN_MS = 5_000
/** In the short form one of so many stored addresses is called: `platform/net/egress.test.ts` has them all. */
const SHORT_PART = 4

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
    ...(await tryAllowed(trap, shift)),
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
  const { attempts } = await tryAll(urls, shift, { allowsPrivateUrls: 'false' })
  return [
    { title: 'spellings of private addresses', value: urls.length, unit: '', goal: { atLeast: WANTED_SPELLINGS } },
    ...guaranteesOf('private addresses', attempts),
    none('connections to them', trap.connections, `of ${attempts.length} attempts`),
  ]
}

/** One server for both: it allows private addresses. */
async function tryAllowed(trap: Trap, shift: number | undefined): Promise<Guarantee[]> {
  await using redirecting = await Redirecting.start(trap.port)
  const before = trap.connections
  const { attempts, redirects } = await tryAll(METADATA_SPELLINGS, shift, { allowsPrivateUrls: 'true', redirecting })
  const unclear = attempts.filter(({ message }) => !/may not be reached|egress_refused/.test(message))
  return [
    ...guaranteesOf('metadata addresses, where private ones are allowed,', attempts),
    noneOf('of them not refused for their address', unclear.map(describe)),
    noneOf('redirects without a clear refusal', redirects.filter((attempt) => !isClear(attempt)).map(describe)),
    none('connections by redirects', trap.connections - before, `of ${redirects.length} attempts`),
  ]
}

const isClear = ({ outcome, message }: Attempt) =>
  /^(4\d\d|502|error|tool error)$/.test(outcome) || message.includes('which was not fetched')

type Tried = { attempts: Attempt[]; redirects: Attempt[] }

/** Stores the addresses, starts a server on the database, and tries all doors; then those that redirect. */
async function tryAll(
  urls: readonly string[],
  shift: number | undefined,
  { allowsPrivateUrls, redirecting }: { allowsPrivateUrls: string; redirecting?: Redirecting },
): Promise<Tried> {
  await using model = await FetchingModel.start()
  await using processes = new Processes({
    MASTER_KEY: randomBytes(32).toString('base64'),
    ALLOW_PRIVATE_URLS: allowsPrivateUrls,
    ...model.env,
  })
  const targets = targetsOf(urls, shift)
  const stored = storedOf(targets)
  const { targets: turning = [], toMetadata = [] } = redirecting ?? {}
  await storeInstances(processes.dataDir, [...stored, ...turning])
  const { url: base, stop } = await processes.start('standalone')
  // Before any instance is the main route, which runs would use.
  const attempts = await model.fetchAll(base, urls)
  const redirects = await model.fetchAll(base, toMetadata)
  for (const target of targets) {
    const put = await tryPut(base, target)
    // Whether a name leads to a private address is known when it is looked up: at each call, which `tryInstance` makes.
    if (put.outcome !== '200' || !isName(target.url)) attempts.push(put)
  }
  const called = shift === undefined ? stored : stored.filter((_, i) => i % SHORT_PART === shift % SHORT_PART)
  for (const target of called) attempts.push(...(await tryInstance(base, target)))
  for (const target of turning) redirects.push(...(await tryInstance(base, target)))
  await stop()
  return { attempts, redirects }
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

/** Returns the connections. */
async function tryRebinding(trap: Trap, random: ScenarioOptions['random'], isFull: boolean): Promise<number> {
  const before = trap.connections
  await rebind(trap, random, isFull ? 500 : 15)
  return trap.connections - before
}
