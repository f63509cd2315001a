import { expect } from 'chai'
import * as fc from 'fast-check'
import { check } from '../checker.ts'
import type { Entry, Frame, Rule } from '../history.ts'

type Rest = { t?: number; [field: string]: unknown }

/** An entry of a history; its time is its place unless it says otherwise. */
const entry = (kind: Entry['kind'], rest: Rest = {}) => ({ kind, run: 'r', ...rest }) as Entry
const opened = (rest?: Rest) => entry('opened', rest)
const delta = (seq: number, rest?: Rest) => entry('frame', { seq, event: 'text_delta', ...rest })
const done = (seq: number, rest?: Rest) => entry('frame', { seq, event: 'done', isTerminal: true, ...rest })
const failed = (seq: number, code: string, rest?: Rest) =>
  entry('frame', { seq, event: 'error', code, isTerminal: true, ...rest })
const closed = (how = 'ended', rest?: Rest) => entry('closed', { how, ...rest })
const owned = (process = 'wk1', rest?: Rest) => entry('owned', { process, ...rest })
const killed = (signal: string, rest?: Rest) => entry('killed', { what: 'wk1', signal, ...rest })
const exited = (code: number | null, signal: string | null = null, rest?: Rest) =>
  entry('exited', { what: 'wk1', code, signal, ...rest })
const tool = (epoch: number, rest?: Rest) => entry('tool', { epoch, ...rest })
const step = (state: string, rest?: Rest) => entry('step', { plan: 'p', step: 's', epoch: 1, state, ...rest })
const ledger = (seq: number, run = 'r') => entry('ledger', { customer: 'c', seq, run })
const reply = (isAllow: boolean, status = 200) => entry('reply', { request: 'perm', isAllow, status })
const decision = (isAllow: boolean) => entry('decision', { request: 'perm', isAllow })
const claim = (by: string, isWon: boolean) => entry('claim', { what: 'session s', by, isWon })
const memory = (rssMiB: number) => entry('memory', { what: 'gw1', rssMiB })
const answer = (wrong: string, status: number) => entry('answer', { route: 'POST /agent/run', wrong, status })

const timed = (entries: readonly Entry[]) => entries.map((each, at) => ({ ...each, t: each.t ?? 1000 + at }))
const rulesIn = (entries: readonly Entry[]) => check(timed(entries)).map(({ rule }) => rule)

const listed = (entries: readonly Entry[]) =>
  check(entries)
    .map(({ rule, what }) => `${rule} ${what}`)
    .toSorted()

const frames = (count: number) =>
  timed([...Array.from({ length: count - 1 }, (_, i) => delta(i + 1)), done(count)]) as Frame[]

const CLEAN: Record<string, Entry[]> = {
  nothing: [],
  'a whole stream': [opened(), delta(1), delta(2), done(3), closed()],
  'frames alone, as the shortest log has them': [delta(1), done(2)],
  'many frames in one entry': [opened(), delta(1, { lastSeq: 500 }), done(501), closed()],
  'two streams of one run, the second from where the first was left': [
    opened({ stream: 'a' }),
    delta(1, { stream: 'a', digest: 'x' }),
    closed('left', { stream: 'a' }),
    opened({ stream: 'b', after: 1 }),
    delta(2, { stream: 'b' }),
    done(3, { stream: 'b' }),
    closed('ended', { stream: 'b' }),
    entry('produced', { seq: 1, event: 'text_delta', digest: 'x' }),
  ],
  'a gap that was told': [opened({ after: 3 }), failed(3, 'stream_gap'), closed()],
  'a run that goes on behind a gateway’s error': [
    opened({ stream: 'a' }),
    delta(1, { stream: 'a' }),
    failed(1, 'relay_unavailable', { stream: 'a' }),
    closed('ended', { stream: 'a' }),
    tool(1),
    opened({ stream: 'b', after: 1 }),
    done(2, { stream: 'b' }),
    closed('ended', { stream: 'b' }),
  ],
  'a connection cut by the death of its gateway': [
    opened(),
    delta(1),
    killed('SIGKILL', { what: 'gw1' }),
    closed('reset'),
  ],
  'a run that goes on behind a gateway that drains': [
    opened({ stream: 'a', gateway: 'gw1' }),
    delta(1, { stream: 'a' }),
    killed('SIGTERM', { what: 'gw1' }),
    failed(1, 'worker_draining', { stream: 'a', repeats: true }),
    closed('ended', { stream: 'a' }),
    opened({ stream: 'b', gateway: 'gw2', after: 1 }),
    delta(2, { stream: 'b' }),
    tool(1),
    failed(3, 'worker_draining', { stream: 'b' }),
    closed('ended', { stream: 'b' }),
  ],
  'half a frame at a kill': [
    opened({ gateway: 'gw1' }),
    delta(1),
    killed('SIGKILL', { what: 'gw1' }),
    closed('reset', { isCut: true }),
  ],
  'a worker’s death told in time': [
    opened({ t: 0 }),
    owned('wk1', { t: 0 }),
    delta(1, { t: 1 }),
    killed('SIGKILL', { t: 100 }),
    exited(null, 'SIGKILL', { t: 101 }),
    failed(1, 'worker_lost', { t: 5000 }),
    closed('ended', { t: 5001 }),
  ],
  'a short freeze': [
    opened({ t: 0 }),
    owned('wk1', { t: 0 }),
    killed('SIGSTOP', { t: 100 }),
    killed('SIGCONT', { t: 3000 }),
    done(1, { t: 9000 }),
    closed('ended', { t: 9001 }),
  ],
  'an orderly end, and a life after it': [killed('SIGTERM'), exited(0), killed('SIGKILL'), exited(null, 'SIGKILL')],
  'tools of rising epochs': [tool(1, { call: 'a' }), tool(1, { call: 'b' }), tool(2, { call: 'c' })],
  'a tool that was told of, frozen, and acted when thawed': [
    delta(1, { event: 'tool_use', t: 0 }),
    tool(1, { call: 'a', t: 1 }),
    delta(2, { event: 'tool_use', t: 2 }),
    failed(2, 'worker_lost', { t: 3 }),
    tool(1, { call: 'b', t: 900 }),
  ],
  'a done customer run and its ledger': [opened({ customer: 'c' }), done(1), closed(), ledger(1), ledger(2, 'r2')],
  'a customer run that said it fell back': [
    opened({ customer: 'c' }),
    delta(1, { event: 'warning', code: 'customer_scope_fallback' }),
    done(2),
    closed(),
  ],
  'one winner of two replies': [reply(true), reply(false, 409), decision(true)],
  'an unanswered request': [decision(false), reply(true, 404)],
  'a reply to a run that was lost before it could act': [reply(true), delta(1), failed(1, 'worker_lost')],
  'one winner of two claims': [claim('gw1', true), claim('gw2', false)],
  'an idempotent step run again': [
    step('running', { isIdempotent: true }),
    step('running', { isIdempotent: true }),
    step('done'),
  ],
  'bounded memory': [memory(100), memory(300), memory(90)],
  'refused tokens and bad input': [answer('token', 401), answer('token', 503), answer('input', 400)],
  'a tenant’s own data': [entry('sighting', { where: 'GET /flows', of: 't1', by: 't1' })],
}

const BROKEN: [Rule, string, Entry[]][] = [
  ['N1', 'never ends', [opened(), delta(1)]],
  ['N1', 'is closed without a terminal event', [opened(), delta(1), closed()]],
  ['N1', 'is not closed after it', [opened(), done(1)]],
  ['N1', 'is closed long after it', [opened({ t: 0 }), done(1, { t: 0 }), closed('ended', { t: 1500 })]],
  ['N1', 'is reset though nothing was killed', [opened(), delta(1), closed('reset')]],
  ['N1', 'is reset by a process that was asked to end', [opened(), delta(1), killed('SIGTERM'), closed('reset')]],
  [
    'N1',
    'is reset though another process was killed',
    [opened({ gateway: 'gw1' }), delta(1), killed('SIGKILL', { what: 'gw2' }), closed('reset')],
  ],
  [
    'N1',
    'outlives its worker by more than 5 s',
    [
      opened({ t: 0 }),
      owned('wk1', { t: 0 }),
      killed('SIGKILL', { t: 100 }),
      failed(0, 'worker_lost', { t: 5200 }),
      closed('ended', { t: 5201 }),
    ],
  ],
  [
    'N1',
    'outlives a frozen worker by more than 5 s',
    [
      opened({ t: 0 }),
      owned('wk1', { t: 0 }),
      killed('SIGSTOP', { t: 100 }),
      killed('SIGCONT', { t: 9000 }),
      done(1, { t: 9100 }),
      closed('ended', { t: 9101 }),
    ],
  ],
  ['N2', 'is done and in no ledger', [opened({ customer: 'c' }), done(1), closed()]],
  ['N2', 'is twice in the ledger', [opened({ customer: 'c' }), done(1), closed(), ledger(1), ledger(2)]],
  ['N2', 'has a hole in the ledger', [ledger(1), ledger(3, 'r2')]],
  ['N3', 'starts one call twice', [tool(1, { call: 'a' }), tool(1, { call: 'a' })]],
  ['N3', 'is acted for by a ghost', [tool(2), tool(1)]],
  [
    'N3',
    'is acted for after its worker was lost',
    [delta(1, { t: 0 }), failed(1, 'worker_lost', { t: 1 }), tool(1, { t: 200 })],
  ],
  [
    'N3',
    'is acted for by a ghost that nobody was told of',
    [
      delta(1, { event: 'tool_use', t: 0 }),
      failed(1, 'worker_lost', { t: 3 }),
      tool(1, { call: 'a', t: 900 }),
      tool(1, { call: 'b', t: 901 }),
    ],
  ],
  ['N3', 'is acted for after its end', [done(1, { t: 0 }), tool(1, { t: 200 })]],
  ['N3', 'starts a step twice', [step('running'), step('running')]],
  ['N3', 'starts a step that was done', [step('running'), step('done'), step('running', { isIdempotent: true })]],
  ['N3', 'finishes a step twice', [step('running'), step('done'), step('done')]],
  ['N4', 'is shown to another tenant', [entry('sighting', { where: 'GET /flows', of: 't1', by: 't2' })]],
  ['N5', 'has a hole', [delta(1), done(3)]],
  ['N5', 'has no beginning', [delta(2), done(3)]],
  ['N5', 'has a duplicate', [delta(1), delta(1), done(2)]],
  ['N5', 'hides a hole behind an entry of many frames', [delta(1, { lastSeq: 10 }), done(12)]],
  ['N5', 'resumes too late', [opened({ after: 2 }), done(4), closed()]],
  ['N5', 'ends within a frame', [opened(), done(1), closed('ended', { isCut: true })]],
  [
    'N5',
    'repeats a number with the run’s own end',
    [opened({ after: 1 }), failed(1, 'timeout', { repeats: true }), closed()],
  ],
  ['N5', 'has a gateway’s error of another number', [delta(1), failed(2, 'worker_lost')]],
  [
    'N5',
    'reads otherwise than it was produced',
    [entry('produced', { seq: 1, event: 'done', digest: 'x' }), done(1, { digest: 'y' })],
  ],
  ['N5', 'has two ends of one number', [done(1, { stream: 'a' }), failed(1, 'internal', { stream: 'b' })]],
  ['N6', 'tells two replies ok', [reply(true), reply(false), decision(true)]],
  ['N6', 'does not do what it told ok', [reply(true), decision(false)]],
  ['N6', 'does nothing about what it told ok', [reply(true), done(1)]],
  ['N7', 'shows a secret', [entry('leak', { where: 'gw1.log', secret: 'canary-7' })]],
  ['N8', 'dies of itself', [exited(1)]],
  ['N8', 'dies again of itself', [killed('SIGKILL'), exited(null, 'SIGKILL'), exited(null, 'SIGSEGV')]],
  ['N8', 'dies of a freeze', [killed('SIGSTOP'), killed('SIGCONT'), exited(1)]],
  ['N8', 'is told to end and crashes', [killed('SIGTERM'), exited(1)]],
  ['N8', 'is told to end and has to be killed', [killed('SIGTERM'), exited(null, 'SIGKILL')]],
  ['N9', 'grows without a bound', [memory(100), memory(450), memory(200)]],
  ['N10', 'lets a forged token in', [answer('token', 200)]],
  ['I1', 'goes on after its terminal event', [done(1), delta(2)]],
  [
    'I1',
    'goes on in another stream',
    [done(1, { stream: 'a' }), delta(1, { stream: 'b', event: 'done' }), done(2, { stream: 'b' })],
  ],
  ['I6', 'has two winners', [claim('gw1', true), claim('gw2', true)]],
  ['I9', 'allows what nobody allowed', [decision(true)]],
  ['I9', 'allows what was answered too late', [reply(true, 404), decision(true)]],
  ['I10', 'breaks on bad input', [answer('input', 500)]],
  ['I10', 'takes bad input', [answer('input', 200)]],
  ['I10', 'breaks on a forged token', [answer('token', 500)]],
]

describe('the checker', () => {
  for (const [name, history] of Object.entries(CLEAN))
    it(`finds nothing in ${name}`, () => {
      expect(check(timed(history))).to.deep.equal([])
    })

  for (const [rule, name, history] of BROKEN)
    it(`${rule}: finds what ${name}, and shows it`, () => {
      const violations = check(timed(history)).filter((violation) => violation.rule === rule)
      expect(violations, `found ${rulesIn(history).join()}`).to.have.lengthOf(1)
      expect(violations[0]?.evidence).to.not.have.lengthOf(0)
      for (const shown of violations[0]?.evidence ?? []) expect(timed(history)).to.deep.include(shown)
    })

  it('finds the same whatever order the logs are merged in', () => {
    const history = timed(
      BROKEN.flatMap(([, , entries], at) => entries.map((each) => ({ ...each, run: `r${at}` }) as Entry)),
    )
    const byTime = listed(history)
    expect(listed(history.toReversed())).to.deep.equal(byTime)
    expect(byTime).to.have.length.above(30)
  })

  const stream = fc.integer({ min: 2, max: 60 })
  it('N5: finds any one frame lost, doubled or exchanged, wherever it was', () => {
    const what = fc.constantFrom('lost', 'doubled', 'exchanged')
    fc.assert(
      fc.property(stream, fc.nat(), what, (count, place, harm) => {
        const history = frames(count)
        const at = place % (count - 1)
        const [one, two] = history.slice(at, at + 2)
        if (!one || !two) throw new Error('the place is within the stream')
        if (harm === 'lost') history.splice(at, 1)
        if (harm === 'doubled') history.splice(at, 0, one)
        if (harm === 'exchanged') history.splice(at, 2, { ...two, t: one.t }, { ...one, t: two.t })
        expect(rulesIn(history)).to.include('N5')
      }),
    )
  })

  it('finds nothing in any whole streams, however interleaved', () => {
    fc.assert(
      fc.property(fc.array(stream, { maxLength: 5 }), fc.integer({ min: 1, max: 7 }), (counts, stride) => {
        const history = counts.flatMap((count, run) =>
          frames(count).map((frame, at) => ({ ...frame, run: `r${run}`, t: at * stride + run })),
        )
        expect(check(history)).to.deep.equal([])
      }),
    )
  })
})
