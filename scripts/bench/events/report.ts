import { align } from '../align.ts'
import type { Row } from '../relay/row.ts'
import { renderTable } from '../relay/table.ts'
import { quantile } from '../statistics.ts'
import type { Measured } from './measure.ts'

const GOAL = 'events'

/** The measured values beside each other, and the goals for the greatest number of readers. */
export function reportOf(measured: readonly Measured[], rows: readonly Row[]): string {
  return `${renderColumns(measured)}\n\n${renderTable(rows)}`
}

/** `most` has the greatest number of readers, and `one` a single one. */
export function goalsOf({ most, one, gateways }: { most: Measured; one: Measured; gateways: number }): Row[] {
  const { events, expected, delays, coreWait } = most
  return [
    {
      goal: GOAL,
      what: `delay of an event to ${most.readers} readers, p99`,
      ...(delays.length > 0 && { value: quantile(delays, 0.99) }),
      bound: { atMost: 100 },
      unit: ' ms',
      detail: `${delays.length} arrivals; a process waited ${coreWait.toFixed(2)} s a second for a core`,
    },
    {
      goal: GOAL,
      what: 'readers without each event once and in order',
      value: most.faulty + one.faulty,
      bound: { atMost: 0 },
      unit: '',
      detail: `${events} of ${expected} events were written`,
    },
    {
      goal: GOAL,
      what: 'events that were not written',
      value: expected - events + one.expected - one.events,
      bound: { atMost: 0 },
      unit: '',
      detail: '',
    },
    {
      goal: GOAL,
      what: 'Redis connections that receive the events, per gateway',
      value: most.subscribers / gateways,
      bound: { atMost: 1 },
      unit: '',
      detail: `${most.subscribers} connections, ${gateways} gateways`,
    },
    {
      goal: GOAL,
      what: `commands of Redis, ${most.readers} readers to one`,
      value: most.commandsPerSec / one.commandsPerSec,
      bound: { atMost: 1.1 },
      unit: 'x',
      detail: `${one.commandsPerSec.toFixed(0)} and ${most.commandsPerSec.toFixed(0)} a second`,
    },
  ]
}

function renderColumns(measured: readonly Measured[]): string {
  const rowOf = (what: string, of: (one: Measured) => string) => [what, ...measured.map(of)]
  const names = [...new Set(measured.flatMap(({ cpu }) => [...cpu.keys()]))]
  const delay = (part: number) => rowOf(`delay, ${nameOf(part)}: ms`, ({ delays }) => quantileText(delays, part))
  return align([
    rowOf('readers', ({ readers }) => String(readers)),
    ...names.map((name) => rowOf(`CPU of ${name}: s a second`, ({ cpu }) => cpu.get(name)?.toFixed(3) ?? '-')),
    rowOf('CPU of other work on this machine: s a second', ({ foreignCpu }) => foreignCpu.toFixed(3)),
    rowOf('longest wait of a process for a core: s a second', ({ coreWait }) => coreWait.toFixed(3)),
    rowOf('commands of Redis a second', ({ commandsPerSec }) => commandsPerSec.toFixed(1)),
    rowOf('reads of streams a second', ({ readsPerSec }) => readsPerSec.toFixed(1)),
    rowOf('connections that receive the events', ({ subscribers }) => String(subscribers)),
    rowOf('events', ({ events }) => String(events)),
    ...[0.5, 0.99, 1].map(delay),
  ])
}

const nameOf = (part: number): string => (part === 1 ? 'max' : `p${part * 100}`)

const quantileText = (values: readonly number[], part: number): string =>
  values.length === 0 ? '-' : quantile(values, part).toFixed(1)
