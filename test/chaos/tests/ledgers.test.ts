import { expect } from 'chai'
import { check } from '../checker.ts'
import type { Entry, Frame } from '../history.ts'
import type { CustomerRun } from '../scenarios/ledger/customer-load.ts'
import { type CustomerEntry, strays, toHistory } from '../scenarios/ledger/ledgers.ts'

const RUN = { run: 'r', stream: 's' }
const opened: Entry = { kind: 'opened', t: 0, ...RUN, customer: 'c' }
const closed: Entry = { kind: 'closed', t: 101, ...RUN, how: 'ended' }
const stateless: Entry = { kind: 'frame', t: 1, ...RUN, seq: 1, event: 'warning', code: 'customer_scope_fallback' }
const end = (event: string, more: Partial<Frame> = {}): Entry[] => [
  { kind: 'frame', t: 1, ...RUN, seq: 1, event: 'text' },
  { kind: 'frame', t: 100, ...RUN, seq: 2, event, isTerminal: true, ...more },
  closed,
]
const failed = (code: string, more?: Partial<Frame>) => end('error', { code, ...more })
const lost = failed('worker_lost', { seq: 1, repeats: true })
const entry = (seq: number, run = 'r', absentAt?: number): Entry => ({
  ...{ kind: 'ledger', t: 9_000, customer: 'c', seq, run },
  ...(absentAt !== undefined && { absentAt }),
})
const others = (count: number) => Array.from({ length: count }, (_, n) => entry(n + 2, `other ${n}`))

const WHOLE: Record<string, Entry[]> = {
  'a run that is done and recorded': [opened, ...end('done'), entry(1)],
  'a recorded run that ended with its plan in the queue': [opened, ...end('plan_queued'), entry(1)],
  'a recorded run whose worker was lost before `done` was sent': [opened, ...lost, entry(1, 'r', 50)],
  'a run that was lost without an entry': [opened, ...lost],
  'a run that ended because the store was away': [opened, ...failed('storage_unavailable')],
  'a run that ended because the store was away, and was recorded nevertheless': [
    opened,
    ...failed('storage_unavailable'),
    entry(1),
  ],
  'a recorded run whose reader was disconnected': [
    opened,
    ...failed('slow_consumer', { seq: 1, repeats: true }),
    entry(1),
  ],
  'a failed run that is not recorded': [opened, ...failed('max_turns_exceeded')],
  'a recorded run without a reader': [entry(1, 'unknown')],
}

const BROKEN: [rule: string, name: string, history: Entry[]][] = [
  ['ledger-mismatch', 'is done and not recorded', [opened, ...end('done')]],
  ['ledger-mismatch', 'has its plan in the queue and is not recorded', [opened, ...end('plan_queued')]],
  ['ledger-mismatch', 'is recorded twice', [opened, ...end('done'), entry(1), entry(2)]],
  ['ledger-mismatch', 'is recorded although it failed', [opened, ...failed('max_turns_exceeded'), entry(1)]],
  [
    'ledger-mismatch',
    'is recorded although a warning said that it is not',
    [opened, stateless, { kind: 'frame', t: 100, ...RUN, seq: 2, event: 'done', isTerminal: true }, closed, entry(1)],
  ],
  ['ledger-mismatch', 'leaves a hole', [opened, ...end('done'), entry(1), ...others(3).toSpliced(1, 1)]],
  ['ledger-mismatch', 'does not begin with 1', others(2)],
  ['ledger-mismatch', 'uses a number twice', [entry(1, 'other'), opened, ...end('done'), entry(1)]],
  ['extra-effect', 'is written after its worker was lost', [opened, ...lost, entry(1, 'r', 4_000)]],
]

describe('the checker of ledgers', () => {
  for (const [name, history] of Object.entries(WHOLE))
    it(`accepts ${name}`, () => expect(check(history)).to.deep.equal([]))

  for (const [rule, name, history] of BROKEN)
    it(`reports a ledger or run that ${name} as ${rule}, with evidence`, () => {
      const found = check(history)
      expect(found.map((violation) => violation.rule)).to.deep.equal([rule])
      expect(found[0]?.evidence).to.not.have.lengthOf(0)
    })
})

describe('ledger entries without a matching run', () => {
  const sent = (prompt: string, run: string) => ({ customer: 'c', prompt, stream: { run } }) as CustomerRun
  const found = (input: string, run_id: string, customer = 'c') =>
    ({ customer, seq: 1, run_id, input }) as CustomerEntry
  const runs = [sent('one', 'r1'), sent('two', '')]

  it('are none when each entry belongs to a run, or to a prompt whose client had no answer', () => {
    expect(strays([found('one', 'r1'), found('two', 'r2')], runs)).to.deep.equal([])
  })

  const STRAYS: Record<string, CustomerEntry[]> = {
    'of an unknown prompt': [found('three', 'r3')],
    'of another run than the client received': [found('one', 'r9')],
    'of another customer': [found('one', 'r1', 'd')],
    'the second of the same prompt': [found('two', 'r2'), found('two', 'r3')],
  }
  for (const [name, entries] of Object.entries(STRAYS))
    it(`include one that is ${name}`, () => expect(strays(entries, runs)).to.deep.equal(entries.slice(-1)))

  it('are marked as absent before when the earlier reading did not have them', () => {
    const before = { at: 7, entries: [found('one', 'r1')] }
    const entries = toHistory([found('one', 'r1'), found('two', 'r2')], before)
    expect(entries.map((each) => 'absentAt' in each && each.absentAt)).to.deep.equal([false, 7])
  })
})
