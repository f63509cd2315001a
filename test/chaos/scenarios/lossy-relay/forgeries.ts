import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { type AgentEvent, errorEvent } from '../../../../shared/kernel/events.ts'
import type { Random } from '../../../harness/seed.ts'
import { Chain } from './chain.ts'
import { ChainReader, type Fault } from './chain-reader.ts'

const NAME = 'forged'
const COUNT = 40
export const FAULTS: readonly Fault[] = ['gap', 'reordering', 'duplicate', 'change']

/** The events of a run whose text is this chain. */
export function eventsOf(name: string, count: number): AgentEvent[] {
  const chain = new Chain(name)
  const deltas = Array.from({ length: count }, (): AgentEvent => ({ type: 'text_delta', text: chain.next() }))
  const text = deltas.map((delta) => ('text' in delta ? delta.text : '')).join('')
  return [{ type: 'turn_start', turn_number: 1, model: 'm' }, ...deltas, { type: 'text', text }, DONE]
}

const DONE: AgentEvent = {
  type: 'done',
  total_input_tokens: 1,
  total_output_tokens: 1,
  total_tokens: 2,
  cost_usd: 0,
  turn_count: 1,
  stop_reason: 'end_turn',
}

/** Renders the events with a fault. With `isRenumbered`, the frames' numbers do not reveal it. */
export function forge(events: readonly AgentEvent[], fault: Fault, { at, isRenumbered }: Place): string {
  const numbered = events.map((event, i) => ({ seq: i + 1, event }))
  const [here, next] = [numbered[at], numbered[at + 1]]
  if (!here || !next) throw new RangeError(`there are no two events at ${at}`)
  if (fault === 'gap') numbered.splice(at, 1)
  if (fault === 'duplicate') numbered.splice(at, 0, here)
  if (fault === 'reordering') numbered.splice(at, 2, next, here)
  if (fault === 'change') numbered.splice(at, 1, { ...here, event: { type: 'text_delta', text: `${at}.0 ` } })
  return numbered.map(({ seq, event }, i) => renderFrame(isRenumbered ? i + 1 : seq, event)).join('')
}

/** `at`: index of the altered delta. */
export type Place = { at: number; isRenumbered: boolean }

/** How many of `forgeries` altered streams the reader detects, and whether it accepts intact ones (complete, and cut and resumed). */
export function detectForgeries(random: Random, forgeries: number): { found: number; passed: boolean } {
  const events = eventsOf(NAME, COUNT)
  let found = 0
  for (let i = 0; i < forgeries; i++) {
    const place = { at: random.between(1, COUNT - 1), isRenumbered: random.chance(0.5) }
    const reader = new ChainReader(NAME, COUNT)
    reader.read(forge(events, random.pick(FAULTS), place))
    if (reader.faults.length > 0) found++
  }
  return { found, passed: acceptsIntact(events) }
}

function acceptsIntact(events: readonly AgentEvent[]): boolean {
  const reader = new ChainReader(NAME, COUNT)
  const frames = events.map((event, i) => renderFrame(i + 1, event))
  const cut = COUNT / 2
  reader.read(frames.slice(0, cut).join('') + renderFrame(cut, errorEvent('stream_gap', 'cut')))
  reader.resume()
  reader.read(frames.slice(cut).join(''))
  return reader.faults.length === 0 && reader.isWhole
}
