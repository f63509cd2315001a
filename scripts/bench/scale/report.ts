import { align } from '../align.ts'
import { median } from '../statistics.ts'
import type { Part, PerPart } from './cluster.ts'
import type { Cost } from './measures.ts'
import { nodesFor, spreadOfChannels } from './redis-nodes.ts'
import { FORMS, type Form, mediansOf, type NodesRound, type Round } from './rounds.ts'
import { placeRuns, placeSessions } from './simulation.ts'
import { type Costs, HABITS, type Need, sizeFor, usersOf } from './sizing.ts'

const PARTS: readonly Part[] = ['gateway', 'worker', 'executor', 'redis', 'mongo']
const USERS = [1_000, 10_000, 17_000, 50_000, 100_000, 170_000]
const PROCESSES = 1_000
const SESSIONS_PER_WORKER = 200

/** The whole report: measured costs, what a second process adds, sizes, and the simulation of 1,000 processes. */
export function reportOf(rounds: readonly Round[], random: () => number): string {
  const costs = costsOf(rounds)
  return [
    'What one unit costs (medians; CPU in ms, memory in KiB or MiB)',
    renderCosts(rounds),
    '\nWhat a second gateway and a second worker add (all of one kind together)',
    renderForms(rounds),
    `\nWhat users at work need: each sends a message every ${HABITS.everySecs} s and reads ${HABITS.events} events over ${HABITS.answerSecs} s`,
    renderSizes(costs, random),
    `\n${PROCESSES} processes (simulated with the product's ring and its choice of workers)`,
    renderSimulation(costs, random),
  ].join('\n')
}

/** A table of the CPU time that the same streams take at each node of a Redis Cluster. */
export function nodesReportOf(rounds: readonly NodesRound[]): string {
  const rows = Object.keys(rounds[0] ?? {}).map((form) => {
    const all = rounds.flatMap((round) => round[form] ?? [])
    const middle = (part: Part) => numberOf(median(all.map(({ each }) => each[part] ?? 0)))
    const nodes = all.map((each) => each.nodes.map((ms) => ms.toFixed(1)).join(' + '))
    return [form, middle('redis'), middle('gateway'), middle('worker'), nodes.join(', ')]
  })
  return [
    'CPU in ms of 1,000 events with a Redis Cluster (medians), and of each node in each round',
    align([['', 'Redis', 'gateway', 'worker', 'nodes'], ...rows]),
  ].join('\n')
}

function costsOf(rounds: readonly Round[]): Costs {
  return {
    events: mediansOf(rounds.map(({ events }) => events['1 + 1'].each)),
    run: mediansOf(rounds.map(({ runs }) => runs['1 + 1'].each)),
    session: mediansOf(rounds.map(({ sessions }) => sessions.kib)),
    stream: mediansOf(rounds.map(({ streams }) => streams.kib)),
    baseMib: mediansOf(rounds.map(({ executorRest }) => executorRest.mib)),
    restCpu: mediansOf(rounds.map(({ executorRest }) => executorRest.cpu)),
  }
}

function renderCosts(rounds: readonly Round[]): string {
  const rows: (readonly [string, PerPart])[] = [
    ['1,000 events of streams at 20 a second, CPU', mediansOf(rounds.map(({ events }) => events['1 + 1'].each))],
    ['a short run, CPU', mediansOf(rounds.map(({ runs }) => runs['1 + 1'].each))],
    ["a customer's short run, CPU", mediansOf(rounds.map(({ customerRun }) => customerRun.each))],
    ['a run of a flow, CPU', mediansOf(rounds.map(({ flow }) => flow.each))],
    ['an idle session, KiB', mediansOf(rounds.map(({ sessions }) => sessions.kib))],
    ['an idle session, CPU a minute', mediansOf(rounds.map(({ sessions }) => sessions.cpuPerMin))],
    ['a waiting stream, KiB', mediansOf(rounds.map(({ streams }) => streams.kib))],
    ['a waiting stream, CPU a minute', mediansOf(rounds.map(({ streams }) => streams.cpuPerMin))],
    ['a process at rest, MiB', mediansOf(rounds.map(({ executorRest }) => executorRest.mib))],
    ['a process at rest, CPU a second', mediansOf(rounds.map(({ executorRest }) => executorRest.cpu))],
  ]
  const cells = rows.map(([title, values]) => [title, ...PARTS.map((part) => numberOf(values[part]))])
  return align([['', ...PARTS], ...cells])
}

const numberOf = (value: number | undefined): string =>
  value === undefined ? '-' : value.toFixed(Math.abs(value) < 10 ? 2 : 0)

function renderForms(rounds: readonly Round[]): string {
  const rowsOf = (what: string, of: (round: Round) => Record<Form, Cost>) =>
    (Object.keys(FORMS) as Form[]).map((form) => {
      const each = mediansOf(rounds.map((round) => of(round)[form].each))
      const perSecond = median(rounds.map((round) => of(round)[form].perSecond))
      const cells = (['gateway', 'worker', 'redis'] as const).map((part) => numberOf(each[part]))
      return [`${form}: ${what}`, ...cells, perSecond.toFixed(0)]
    })
  return align([
    ['gateways + workers', 'gateway', 'worker', 'redis', 'a second, on this machine'],
    ...rowsOf('CPU of 1,000 events', ({ events }) => events),
    ...rowsOf('CPU of a short run', ({ runs }) => runs),
  ])
}

function renderSizes(costs: Costs, random: () => number): string {
  const cells = USERS.map((users) => {
    const need = sizeFor(users, costs)
    const nodes = nodesFor({ cores: need.redisCores, gateways: need.gateways, random })
    return [...cellsOf(need), nodes ? `${nodes.nodes} (${nodes.fullest.toFixed(2)})` : '-']
  })
  const head = [
    'users',
    'streams',
    'runs/s',
    'events/s',
    'gateways',
    'MiB each',
    'workers',
    'MiB each',
    'Redis cores',
    'Redis MiB',
    'nodes (fullest)',
  ]
  return align([head, ...cells])
}

const cellsOf = (need: Need): string[] => [
  ...[need.users, need.streams, need.runsPerSec, need.eventsPerSec].map((value) => value.toFixed(0)),
  ...[need.gateways, need.gatewayMib, need.workers, need.workerMib].map((value) => value.toFixed(0)),
  need.redisCores.toFixed(2),
  need.redisMib.toFixed(0),
]

function renderSimulation(costs: Costs, random: () => number): string {
  const users = usersOf(PROCESSES, costs)
  const need = sizeFor(users, costs)
  const { workers, gateways } = need
  const placed = placeSessions(PROCESSES, PROCESSES * SESSIONS_PER_WORKER)
  const runs = placeRuns({ gateways: 100, workers: PROCESSES, runs: PROCESSES * 20, random })
  const percent = (part: number) => `${(part * 100).toFixed(2)} %`
  return align([
    ['users', `${users}: ${gateways} gateways, ${workers} workers, ${need.redisCores.toFixed(1)} cores of Redis`],
    [
      'sessions on 1,000 workers, 200 each',
      `fullest ${placed.max.toFixed(2)} x the mean, p99 ${placed.p99.toFixed(2)} x`,
    ],
    [
      'one-shot runs on 1,000 workers, 20 each',
      `fullest ${runs.max.toFixed(2)} x the mean, p99 ${runs.p99.toFixed(2)} x`,
    ],
    [
      'channels of 100 gateways on nodes of Redis',
      [3, 6, 12, 24]
        .map((nodes) => `${nodes}: ${spreadOfChannels({ gateways: 100, nodes, random }).toFixed(2)} x`)
        .join(', '),
    ],
    [
      'new sessions that hash elsewhere',
      `${percent(placed.joinMoves)} when one joins, ${percent(placed.leaveMoves)} when one leaves`,
    ],
  ])
}
